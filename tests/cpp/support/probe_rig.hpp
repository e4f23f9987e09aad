// Probes on the testing engines: memory, orders, and what the kernels find.
#pragma once

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cpufree/engines/cpu_fibers/port.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/probes/host/prober.hpp"
#include "cpufree/probes/kernel.hpp"

namespace probe_rig {

using namespace cpufree;

// All orders that make sense, of small messages.
inline std::vector<ProbeOrder> orders(int rounds, int warm_ups, int repeats) {
  std::vector<ProbeOrder> all;
  const auto add = [&](ProbeWay way, ProbeMode mode, std::int64_t values, int messages) {
    all.push_back({way, mode, 8 * values, messages, rounds, warm_ups, repeats, 60.0});
  };
  for (int w = 0; w < kProbeWays; ++w) {
    const auto way = static_cast<ProbeWay>(w);
    for (const std::int64_t values : {1, 7}) {
      add(way, ProbeMode::single, values, 1);
      add(way, ProbeMode::window, values, 3);
      if (way != ProbeWay::get) add(way, ProbeMode::send, values, 1);
      if (way < ProbeWay::packets) add(way, ProbeMode::receive, values, 1);
    }
  }
  add(ProbeWay::store_block, ProbeMode::flag, 1, 1);
  for (const std::int64_t values : {1, 2, 4, 8})
    add(ProbeWay::store_block, ProbeMode::allreduce, values, 1);
  for (const std::int64_t values : {0, 7}) add(ProbeWay::store_block, ProbeMode::fence, values, 1);
  return all;
}

// The memory of all PEs, and the arguments of each.
class Rig {
 public:
  Rig(int pes, int blocks, int threads, const ProbeOrder& order)
      : order_(order),
        memory_(pes, blocks, 1024),
        heaps_(pes, memory_.bytes()),
        ticks_(static_cast<std::size_t>(order.repeats), kNever),
        wrong_(static_cast<std::size_t>(pes * blocks * threads)) {
    for (int pe = 0; pe < pes; ++pe) {
      args_.push_back(memory_.args(order, heaps_.base(pe)));
      args_.back().ticks = ticks_.data();
      args_.back().clock = &clock_;
      args_.back().wrong = wrong_.data() + pe * blocks * threads;
    }
  }

  std::byte* const* heaps() const { return heaps_.bases(); }
  template <class P>
  void run(P& port) {
    probe_kernel(order_.way, port, args_[static_cast<std::size_t>(port.pe())]);
  }
  // Values that arrived wrong, and repeats that have a time.
  std::int64_t wrong() const {
    return std::accumulate(wrong_.begin(), wrong_.end(), std::int64_t{0});
  }
  int timed() const {
    return static_cast<int>(
        ticks_.size() - static_cast<std::size_t>(std::count(ticks_.begin(), ticks_.end(), kNever)));
  }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  ProbeOrder order_;
  ProbeMemory memory_;
  cpu_threads::SymmetricHeaps heaps_;
  ProbeClock clock_;
  std::vector<std::uint64_t> ticks_;
  std::vector<std::int64_t> wrong_;
  std::vector<ProbeArgs> args_;
};

}  // namespace probe_rig
