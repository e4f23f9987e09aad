// The port of the CPU engine: a PE is a group of threads, one per block; lanes are a loop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "cpufree/device/port.hpp"
#include "cpufree/device/solo_block.hpp"
#include "cpufree/engines/cpu_threads/atomic.hpp"

namespace cpufree::cpu_threads {

using Clock = std::chrono::steady_clock;

// Where a block runs: on a thread that may have other blocks, too (workers.hpp). A class of virtual
// functions, as kernels are compiled into shared objects of their own.
class Seat {
 public:
  virtual ~Seat() = default;
  // Between two looks of a wait, of which `look` have failed before this one. May run other blocks
  // of the thread meanwhile, and return on another thread. True where that may have taken long.
  virtual bool pass(std::uint32_t look) = 0;
  // At a place where the block need not wait: it may change its thread there.
  void check_in() {
    if (called->load(std::memory_order_relaxed)) move();
  }

 protected:
  virtual void move() = 0;
  const std::atomic<bool>* called = nullptr;  // its thread has something else to do
};

// What all blocks of one launch share, and the host's window into it while the kernels run.
struct Shared {
  int pes = 1;
  int blocks = 1;
  int first = 0;  // the first PE of this process
  std::byte* const* heaps = nullptr;
  const Remote* remote = nullptr;  // of the PEs of this process, where there are several nodes
  // Where other processes have PEs too: symmetric, not 0 when all PEs are to leave.
  Flag* leave_flag = nullptr;
  std::chrono::nanoseconds wait_limit{0};

  alignas(128) std::atomic<bool> leave{false};  // all blocks leave their kernels
  alignas(128) std::atomic<unsigned> notes{0};  // from the host, see Note
  alignas(128) std::atomic<std::int64_t> iteration{0};
  std::atomic<double> residual{0.0};
  std::function<unsigned()> host;  // where the host's thread runs the kernel itself: asks for notes
  std::vector<WaitRecord> records;  // of all blocks of this process, each written by its block

  bool leaves() const {
    return leave.load(std::memory_order_acquire) ||
           (leave_flag != nullptr && load_flag(*leave_flag) != 0);
  }
  // Makes the PEs of all processes leave.
  void tell_all() {
    leave.store(true, std::memory_order_release);
    if (leave_flag == nullptr) return;
    const auto offset = reinterpret_cast<std::byte*>(leave_flag) - heaps[first];
    for (int pe = 0; pe < pes; ++pe) store_flag(*reinterpret_cast<Flag*>(heaps[pe] + offset), 1);
  }
};

class Port : public SoloBlock {
 public:
  static constexpr int width = 8;
  static constexpr int warp_width = 1;
  static constexpr int batch = 1;
  static constexpr bool slots_by_source = true;  // one writer per 128 bytes

  // State of one wait. The clock is read only where waiting may have become slow.
  struct Wait {
    std::uint32_t looks = 0;
    Clock::time_point start{};
  };

  // `seat`: null for a single block, which never waits.
  Port(Shared& shared, int pe, int block, Seat* seat = nullptr)
      : shared_(shared), pe_(pe), block_(block), seat_(seat) {}

  int pe() const { return pe_; }
  int pes() const { return shared_.pes; }
  int block() const { return block_; }
  int blocks() const { return shared_.blocks; }

  void sync_block() {
    if (seat_ != nullptr) seat_->check_in();
  }

  // The same object on another PE.
  template <class T>
  T* peer(T* object, int pe) const {
    auto* mine = shared_.heaps[pe_];
    return reinterpret_cast<T*>(shared_.heaps[pe] + (reinterpret_cast<std::byte*>(object) - mine));
  }
  template <class T>
  void put(T* object, int pe, T value) {
    *peer(object, pe) = value;
  }
  void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    store_packet(*peer(packet, pe), value, tag);
  }
  Packet get_packet(const Packet* packet) { return load_packet(*packet); }
  void put_flag(Flag* flag, int pe, Epoch epoch) { store_flag(*peer(flag, pe), epoch); }
  Epoch get_flag(const Flag* flag) { return load_flag(*flag); }
  Epoch arrive(Flag* counter) { return count_in(*counter); }
  void publish(Scope) {}  // every flag store is a release
  void acquire(Scope) {}  // every flag load is an acquire

  Wait start_wait() { return {}; }
  bool keep_waiting(Wait& wait);
  void give_up(const Wait& wait, WaitRecord record);

  unsigned host_notes() {
    return shared_.host ? shared_.host() : shared_.notes.load(std::memory_order_relaxed);
  }
  void report(std::int64_t iteration, double residual) {
    shared_.residual.store(residual, std::memory_order_relaxed);
    shared_.iteration.store(iteration, std::memory_order_relaxed);
  }

  static std::uint64_t now() {
    const auto since = Clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }
  static std::uint64_t ticks() { return now(); }

  WaitRecord& record() {
    return shared_
        .records[static_cast<std::size_t>((pe_ - shared_.first) * shared_.blocks + block_)];
  }

 protected:
  const Shared& shared() const { return shared_; }

 private:
  Shared& shared_;
  int pe_;
  int block_;
  Seat* seat_;
};

static_assert(cpufree::GridPort<Port>);

}  // namespace cpufree::cpu_threads
