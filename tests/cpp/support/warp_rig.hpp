// Blocks of warps on fibers (cpu_fibers/schedule.hpp): every thread of every block is a fiber, so
// that kernels for GPUs run as they are, under random schedules. Memory is weak for packets and
// flags only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <typeindex>
#include <vector>

#include "cpufree/device/warp_port.hpp"
#include "cpufree/engines/cpu_fibers/port.hpp"

namespace warp_rig {

using namespace cpufree;

inline constexpr int kWarp = 32;

// Where fibers meet: of a block, or of a warp.
class Meeting {
  static constexpr int kPatience = 10'000;

 public:
  explicit Meeting(int size) : size_(size) {}
  void wait(cpu_fibers::Machine& machine) {
    machine.call();
    const std::int64_t here = generation_;
    waiting_.push_back(machine.fiber());
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++generation_;
      for (const std::size_t fiber : waiting_) machine.wake(fiber);
      waiting_.clear();
      return;
    }
    // Those who have been told to leave still meet on their way, as threads of a GPU do.
    for (int alone = 0; generation_ == here;) {
      if (machine.park()) continue;
      if (++alone > kPatience) throw cpu_fibers::Killed{};
      machine.call();
    }
  }
  std::int64_t generation() const { return generation_; }

 private:
  int size_;
  int arrived_ = 0;
  std::int64_t generation_ = 0;
  std::vector<std::size_t> waiting_;
};

// What the lanes of a warp bring to a verb. Two sets: a lane that has come to the verb after the
// next one has seen all others leave this one.
struct Warp {
  Meeting meeting{kWarp};
  double brought[2][kWarp] = {};
};

struct Block {
  Block(int threads, std::size_t fast_bytes)
      : meeting(threads), fast(std::max<std::size_t>(1, (fast_bytes + 15) / 16)) {
    for (int w = 0; w < threads / kWarp; ++w) warps.push_back(std::make_unique<Warp>());
    brought.resize(static_cast<std::size_t>(threads));
    for (auto& values : brought) values.resize(kReduceMost);
  }
  static constexpr std::size_t kReduceMost = 8;
  struct alignas(16) Chunk {
    std::byte bytes[16];
  };
  Meeting meeting;
  std::vector<Chunk> fast;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<std::vector<double>> brought;
  // Bulk copies under way, by the barrier that waits for them.
  struct Bulk {
    std::byte* to;
    const std::byte* from;
    std::uint32_t bytes;
  };
  std::map<const std::uint64_t*, std::vector<Bulk>> bulks;
  std::map<const std::uint64_t*, std::uint32_t> announced;
  unsigned bulk_count = 0;
  double total[kReduceMost] = {};
  unsigned bits = 0;
  bool all[2] = {true, true};
  std::map<std::type_index, std::shared_ptr<void>> kept;
};

class Port : public cpu_fibers::Port {
 public:
  static constexpr int width = 1;
  static constexpr int warp_width = kWarp;
  static constexpr int batch = 3;

  Port(cpu_fibers::Machine& machine, Block& block, int pe, int fiber, int threads)
      : cpu_fibers::Port(machine, pe, fiber),
        machine_(machine),
        block_(block),
        threads_(threads),
        lane_(fiber % threads) {}

  int block() const { return cpu_fibers::Port::block() / threads_; }
  int blocks() const { return cpu_fibers::Port::blocks() / threads_; }
  int lane() const { return lane_; }
  int lanes() const { return threads_; }
  int warp() const { return lane_ / kWarp; }
  int warps() const { return threads_ / kWarp; }
  int warp_lane() const { return lane_ % kWarp; }

  void sync_block() { block_.meeting.wait(machine_); }
  bool all(bool value) {
    bool& mine = block_.all[block_.meeting.generation() % 2];
    mine = mine && value;
    sync_block();
    const bool result = mine;
    sync_block();
    mine = true;
    sync_block();
    return result;
  }

  template <class T>
  T warp_up(T value) {
    return from_lane(value, warp_lane() == 0 ? 0 : warp_lane() - 1);
  }
  template <class T>
  T warp_down(T value) {
    return from_lane(value, warp_lane() == kWarp - 1 ? warp_lane() : warp_lane() + 1);
  }
  unsigned warp_or(unsigned bits) {
    double (&set)[kWarp] = bring(bits);
    unsigned joined = 0;
    for (const double b : set) joined |= static_cast<unsigned>(b);
    return joined;
  }
  bool warp_all(bool value) { return alone_ ? value : warp_or(value ? 0U : 1U) == 0U; }
  void warp_sync() { bring(0.0); }
  template <class T>
  static T product(T a, T b) {
    volatile T rounded = a * b;
    return rounded;
  }
  // Nothing is there before it is waited for.
  template <class T>
  void copy_in(T* to, const T* from, bool really) {
    if (really) copies_.push_back({to, from, copy_group_});
  }
  void end_copies() { ++copy_group_; }
  template <int N>
  void await_copies() {
    const auto there = [&](const Copy& copy) {
      if (copy.group >= copy_group_ - N) return false;
      std::memcpy(copy.to, copy.from, 16);
      return true;
    };
    copies_.erase(std::remove_if(copies_.begin(), copies_.end(), there), copies_.end());
  }
  template <class T>
  static T* in_memory(T* values) {
    return values;
  }

  template <int K, class F>
  void scatter(const double (&partial)[K], int targets, unsigned note, F&& store) {
    for (int k = 0; k < K; ++k) block_.brought[at_lane()][static_cast<std::size_t>(k)] = partial[k];
    sync_block();
    if (lane_ == 0)
      for (int k = 0; k < K; ++k) {
        double sum = 0.0;
        for (const auto& values : block_.brought) sum += values[static_cast<std::size_t>(k)];
        for (int pe = 0; pe < targets; ++pe) store(pe, k, sum, note);
      }
    sync_block();
  }
  // The first lane collects for all, without the others of its warp.
  template <int K, class F, class G>
  void combine(double (&total)[K], unsigned& bits, bool, F&& prepare, G&& body) {
    if (lane_ == 0) {
      alone_ = true;
      for (int k = 0; k < K; ++k) block_.total[k] = body(prepare(k, 0, 1));
      alone_ = false;
      block_.bits = bits;
    }
    sync_block();
    for (int k = 0; k < K; ++k) total[k] = block_.total[k];
    bits = block_.bits;
    sync_block();
  }
  bool bookkeeper() const { return lane_ == 0; }

  template <class T>
  using Kept = const T&;
  template <class T>
  const T& keep(const T& value) {
    sync_block();
    if (lane_ == 0) block_.kept[typeid(T)] = std::make_shared<T>(value);
    sync_block();
    return *static_cast<const T*>(block_.kept[typeid(T)].get());
  }
  template <class T>
  using Held = T&;
  template <class T>
  T& hold(const T& value) {
    return const_cast<T&>(keep(value));
  }
  std::byte* fast_memory() const { return block_.fast[0].bytes; }
  // GPUs would read something else where an array is not in fast memory.
  template <class T>
  T* on_chip(T* array) const {
    const auto* const begin = static_cast<const void*>(block_.fast.data());
    const auto* const end = static_cast<const void*>(block_.fast.data() + block_.fast.size());
    if (std::less<>()(array, begin) || !std::less<>()(array, end))
      throw std::logic_error("an array is not on chip");
    return array;
  }

  // Lanes that wait together look again when all of them have come round, whatever they saw: the
  // machine is not to think that one of them has looked in vain.
  bool keep_waiting(Wait&) {
    machine_.changed();
    return machine_.wait();
  }

  // Late and in any order, as all packets; lost where the machine has them lost.
  void send_packet(Packet* there, double value, std::uint64_t tag) {
    send_whole(there, Packet{value, tag});
  }
  void send_packet(FloatPacket* there, const float (&values)[3], std::uint32_t number) {
    send_whole(there, FloatPacket{{values[0], values[1], values[2]}, number});
  }
  void send_packet(SmallPacket* there, float value, std::uint32_t number) {
    send_whole(there, SmallPacket{value, number});
  }
  using cpu_fibers::Port::get_packet;
  SmallPacket get_packet(const SmallPacket* packet) {
    machine_.look();
    return *packet;
  }
  FloatPacket get_packet(const FloatPacket* packet) {
    machine_.look();
    return *packet;
  }

  // At once: the machine's `publish` knows the stores of one fiber, this one's those of its block.
  template <class T>
  void put(T* object, int pe, T value) {
    machine_.call();
    *peer(object, pe) = value;
  }

 protected:
  cpu_fibers::Machine& machine() { return machine_; }
  Block& shared_block() { return block_; }
  template <class K>
  void send_whole(K* there, const K& packet) {
    static_assert(sizeof(K) == alignof(K));
    machine_.call();
    machine_.signal(there, &packet, sizeof(packet));
  }
  template <class T>
  T from_lane(T value, int lane) {
    return static_cast<T>(bring(static_cast<double>(value))[lane]);
  }
 double (&bring(double value)) [kWarp] {
   Warp& w = *block_.warps[static_cast<std::size_t>(warp())];
   double (&set)[kWarp] = w.brought[w.meeting.generation() % 2];
   set[warp_lane()] = value;
   w.meeting.wait(machine_);
   return set;
 }

 private : std::size_t at_lane() const {
    return static_cast<std::size_t>(lane_);
  }
  cpu_fibers::Machine& machine_;
  Block& block_;
  int threads_;
  int lane_;
  struct Copy {
    void* to;
    const void* from;
    int group;
  };
  std::vector<Copy> copies_;
  int copy_group_ = 0;
  bool alone_ = false;
};

static_assert(WarpPort<Port>);

// With all that lanes of a warp tell one another.
class LanesPort : public Port {
 public:
  using Port::Port;

  unsigned warp_ballot(bool value) { return warp_or(value ? 1U << warp_lane() : 0U); }
  static int lowest_bit(unsigned bits) { return std::countr_zero(bits); }
  template <class T>
  T warp_broadcast(T value, int from) {
    return from_lane(value, from);
  }
  template <class T>
  T warp_across(T value, int bits) {
    return from_lane(value, warp_lane() ^ bits);
  }
  // Lanes by halves, as GPUs do.
  template <class T>
  T warp_sum(T value) {
    for (int half = kWarp / 2; half > 0; half /= 2) value += warp_across(value, half);
    return value;
  }
};

// What goes wrong in a run on purpose (blocks of the machine are threads here: those of a PE are
// numbered through), when it ends at the latest, and what threads have filed by then.
struct Mishap {
  cpu_fibers::Fault fault;
  std::int64_t step_limit = 500'000'000;
  std::vector<WaitRecord> records = {};
};

// Runs kernel(port, pe) on all threads of all blocks. True if no wait was given up.
template <class P = Port, class F>
bool run(int pes, int blocks, int threads, std::size_t fast_bytes, std::byte* const* heaps,
         std::uint64_t seed, F&& kernel, Mishap* mishap = nullptr) {
  std::vector<std::unique_ptr<Block>> all;
  for (int b = 0; b < pes * blocks; ++b)
    all.push_back(std::make_unique<Block>(threads, fast_bytes));
  std::unique_ptr<cpu_fibers::Machine> machine;
  const Mishap none;
  cpu_fibers::Config config{pes, blocks * threads, heaps, seed, (mishap ? *mishap : none).fault};
  config.step_limit = (mishap ? *mishap : none).step_limit;
  machine = std::make_unique<cpu_fibers::Machine>(config, [&](int pe, int fiber) {
    Block& block = *all[static_cast<std::size_t>(pe * blocks + fiber / threads)];
    P port(*machine, block, pe, fiber, threads);
    kernel(port, pe);
  });
  const bool ended = machine->run();
  if (mishap) mishap->records = machine->records();
  return ended;
}

}  // namespace warp_rig
