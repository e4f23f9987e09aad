// Patterns of messages on the testing engines: memory, orders, and what the kernels find.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/probes/host/prober.hpp"
#include "cpufree/probes/patterns.hpp"

namespace pattern_rig {

using namespace cpufree;

// `bytes` from each PE to the next one.
inline PatternOrder ring(int pes, std::int64_t bytes, int repeats) {
  PatternOrder order;
  order.repeats = repeats;
  order.bytes.assign(static_cast<std::size_t>(pes * pes), 0);
  for (int pe = 0; pe < pes; ++pe)
    order.bytes[static_cast<std::size_t>(pe * pes + (pe + 1) % pes)] = bytes;
  return order;
}

// From all PEs to the first one, each a value more than the one before.
inline PatternOrder many_to_one(int pes, int repeats) {
  PatternOrder order;
  order.repeats = repeats;
  order.bytes.assign(static_cast<std::size_t>(pes * pes), 0);
  for (int pe = 1; pe < pes; ++pe) order.bytes[static_cast<std::size_t>(pe * pes)] = 8 * pe;
  return order;
}

inline PatternOrder product(int tile, bool puts, bool overlapped, bool local, int repeats) {
  PatternOrder order;
  order.kind = PatternKind::gemm;
  order.tile = tile;
  order.puts = puts;
  order.overlapped = overlapped;
  order.local = local;
  order.repeats = repeats;
  return order;
}

// The memory of all PEs, and the arguments of each.
class Rig {
 public:
  Rig(int pes, int blocks, int threads, const PatternOrder& order)
      : memory_(pes, blocks, 8192),
        heaps_(pes, memory_.bytes()),
        table_(memory_.table(order)),
        clocks_(static_cast<std::size_t>(pes)),
        wrong_(static_cast<std::size_t>(pes * blocks * threads)) {
    const auto repeats = static_cast<std::size_t>(order.repeats);
    ticks_.assign(static_cast<std::size_t>(pes), std::vector<std::uint64_t>(repeats, kNever));
    comm_ = ticks_;
    const auto entries = static_cast<std::size_t>(order.tile * order.tile);
    products_.assign(static_cast<std::size_t>(pes), std::vector<double>(entries));
    for (std::size_t pe = 0; pe < ticks_.size(); ++pe) {
      PatternArgs& args =
          args_.emplace_back(memory_.args(order, heaps_.base(static_cast<int>(pe))));
      args.values = table_.data();
      args.places = table_.data() + table_.size() / 2;
      args.product = products_[pe].data();
      args.ticks = ticks_[pe].data();
      args.comm_ticks = comm_[pe].data();
      args.clock = &clocks_[pe];
      args.wrong = wrong_.data() + pe * static_cast<std::size_t>(blocks * threads);
    }
  }

  std::byte* const* heaps() const { return heaps_.bases(); }
  template <class P>
  void run(P& port) {
    pattern_kernel(port, args_[static_cast<std::size_t>(port.pe())]);
  }
  std::int64_t wrong() const {
    return std::accumulate(wrong_.begin(), wrong_.end(), std::int64_t{0});
  }
  // Repeats of all PEs that have a time.
  int timed() const {
    int count = 0;
    for (const auto& of_pe : ticks_)
      for (const std::uint64_t one : of_pe) count += one != kNever ? 1 : 0;
    return count;
  }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  ProbeMemory memory_;
  cpu_threads::SymmetricHeaps heaps_;
  std::vector<std::int64_t> table_;
  std::vector<ProbeClock> clocks_;
  std::vector<std::vector<std::uint64_t>> ticks_, comm_;
  std::vector<std::vector<double>> products_;
  std::vector<std::int64_t> wrong_;
  std::vector<PatternArgs> args_;
};

}  // namespace pattern_rig
