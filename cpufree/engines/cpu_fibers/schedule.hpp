// A machine that runs kernels one step at a time, in an order drawn from a seed: for testing
// protocols, not for speed. Every block is a fiber on one thread. At every use of the port another
// fiber may go on, and stores to other PEs take effect late and in any order that `publish` allows,
// as on a machine with weak memory. Puts to other nodes read their source and arrive piece by
// piece, whenever that may be. A wait that can never end is found at once, without a clock.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <ucontext.h>

#include "cpufree/device/types.hpp"

namespace cpufree::cpu_fibers {

// What goes wrong on purpose. Signals are flag and packet stores, counted from 0 per block.
struct Fault {
  enum class Kind { none, drop_signal, repeat_signal, delay_signal, kill_block, skip_publish };
  Kind kind = Kind::none;
  int pe = 0;
  int block = 0;
  std::int64_t at = 0;  // number of the signal, or of the port call for kill_block
};

struct Config {
  int pes = 1;
  int blocks = 1;
  std::byte* const* heaps = nullptr;
  std::uint64_t seed = 0;
  Fault fault;
  std::int64_t step_limit = 20'000'000;  // bound of a schedule that never ends
};

// Thrown inside a fiber that is killed; caught at its root.
struct Killed {};

class Machine {
 public:
  Machine(const Config& config, std::function<void(int pe, int block)> body);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Runs all fibers to their end. True if no wait was given up.
  bool run();

  const Config& config() const { return config_; }
  const std::vector<WaitRecord>& records() const { return records_; }
  WaitRecord& my_record() { return records_[current_]; }
  std::int64_t steps() const { return steps_; }

  // --- For the port, inside fibers ---
  void call();  // a port call: others may run before it
  void look();  // a port call that reads what others store; several may belong to one wait
  bool wait();  // nothing found: others run; false when the wait can never end
  // Others run until one of them wakes this fiber; false when that can never be. For what fibers
  // alone wait for, and not memory: who would look in vain takes no turns.
  bool park();
  void wake(std::size_t fiber);
  std::size_t fiber() const { return current_; }
  void changed() { ++version_; }  // memory, without a store: who waits looks again
  void give_up() { leave(); }
  bool leaving() const { return leaving_; }
  // Stores `size` <= 16 bytes some time later, after all that was stored before the last publish.
  void store(void* to, const void* from, std::size_t size);
  void signal(void* to, const void* from, std::size_t size);  // the same, and subject to faults
  // Copies `size` bytes some time later, in pieces and in any order, from what is there then, and
  // after the last piece sets `flag`. What was stored before the last publish has taken effect when
  // the first piece is read. Subject to faults as a signal is.
  void send(void* to, const void* from, std::size_t size, Epoch* flag, Epoch epoch);
  // Throws where a flag between nodes gets another epoch than the next but one after its last.
  void expect_rise(const Epoch* flag, Epoch epoch);
  void publish();
  // Adds 1 at once, after all that was stored before the last publish; returns what it was.
  Epoch count_in(Epoch* counter);

 private:
  static constexpr std::size_t kStackBytes = 256 << 10;

  struct Pending {
    void* to = nullptr;
    std::uint64_t bytes[8] = {};  // a row of several columns at most
    std::size_t size = 0;
    std::int64_t barrier = 0;
    std::int64_t not_before = 0;  // step
  };
  // A put to another node, on its way.
  struct Transfer {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::vector<std::pair<std::size_t, std::size_t>> pieces;  // [begin, end) of what has not come
    Epoch* flag = nullptr;                                    // null: the signal is lost
    Epoch epoch = 0;
    std::size_t fiber = 0;  // the sender, and its barrier
    std::int64_t barrier = 0;
    std::int64_t not_before = 0;  // step
    bool done = false;
  };
  struct Fiber {
    std::unique_ptr<std::byte[]> stack;
    ucontext_t start{};
    std::jmp_buf resume{};
    bool started = false, waiting = false, parked = false;
    std::size_t turn = 0;         // its place in `turns_`, unless it is done or parked
    bool looking = false;         // has looked since its last wait
    std::uint64_t looked_at = 0;  // version of memory at the first of these looks
    std::int64_t barrier = 0, signals = 0, calls = 0;
    std::vector<Pending> pending;
  };

  static void enter();
  void main_of_current();
  void switch_to(std::size_t fiber);
  void switch_back();
  std::size_t pick();
  void takes_turns(std::size_t fiber, bool from_now_on);
  void leave();
  void deliver_some();
  bool deliver_one(Fiber& fiber);
  void carry_some();
  void carry(Transfer& transfer);
  bool stuck() const;
  bool hit(Fault::Kind kind, std::int64_t count) const;
  void note_pending(std::size_t fiber);

  Config config_;
  std::function<void(int, int)> body_;
  std::vector<Fiber> fibers_;
  // What is asked at each step is kept, not looked up among all fibers, of which there are
  // hundreds.
  std::size_t live_ = 0;                // fibers that are not done
  std::vector<std::size_t> turns_;      // of these, those that are not parked, in any order
  std::size_t awake_ = 0;               // of these, those that do not wait
  std::vector<std::uint64_t> pending_;  // a bit for each fiber: has stores under way
  std::vector<Transfer> transfers_;
  std::map<const Epoch*, Epoch> risen_;  // of flags between nodes: the last that was sent
  std::vector<WaitRecord> records_;
  std::mt19937_64 random_;
  std::jmp_buf scheduler_{};
  std::size_t current_ = 0;
  std::size_t starved_ = 0;    // a fiber that hardly ever runs, in some schedules
  unsigned eagerness_ = 0;     // how readily stores are delivered, in 1/16
  unsigned haste_ = 0;         // how fast puts to other nodes are, in 1/64
  unsigned unrest_ = 0;        // how readily a port call lets others run, in 1/16
  std::uint64_t version_ = 0;  // of memory: counts delivered stores
  std::int64_t steps_ = 0;
  bool leaving_ = false;
};

}  // namespace cpufree::cpu_fibers
