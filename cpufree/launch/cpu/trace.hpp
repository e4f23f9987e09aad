// The rings of a launch that is traced on the CPU engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/launch/cpu/process_heaps.hpp"
#include "cpufree/launch/live_waits.hpp"
#include "cpufree/launch/trace.hpp"
#include "cpufree/trace/host_trace.hpp"

namespace cpufree {

class CpuTrace {
 public:
  // For the PEs of this process; every member of a team makes one.
  CpuTrace(const TraceSpec& spec, const cpu_threads::LaunchConfig& config, Team* team)
      : shape_(
            TraceShape::of(config.pes, config.blocks, 1, 1, spec.events, spec.kinds, spec.every)),
        here_(static_cast<std::size_t>(config.here > 0 ? config.here : config.pes)),
        first_(config.first),
        start_(cpu_threads::Port::now()),
        board_(team == nullptr ? CpuHeaps(config.pes, board_bytes())
                               : CpuHeaps(*team, board_bytes())) {
    std::vector<Published*> mine;
    for (std::size_t k = 0; k < here_; ++k)
      mine.push_back(told(config.first + static_cast<int>(k)));
    own_.emplace(shape_, std::span{&config.heaps[config.first], here_}, start_, config.first, mine);
    if (!spec.heard) return;
    std::vector<PublishedPe> pes;
    for (int pe = 0; pe < config.pes; ++pe)
      pes.push_back({told(pe), team == nullptr ? nullptr : alive(pe)});
    watch_.emplace(spec, shape_, 0, std::move(pes));
  }

  const TraceRing* rings(int k) const { return own_->rings(k); }

  // `progress`, which says that this process is alive, and looks at the waits of all PEs.
  Progress watched(const Progress& progress) {
    return [this, looking = cpufree::watched(progress, watch_ ? &*watch_ : nullptr)](
               std::int64_t iteration, double residual) {
      for (std::size_t k = 0; k < here_; ++k)
        cpu_threads::count_in(*alive(first_ + static_cast<int>(k)));
      return !looking || looking(iteration, residual);
    };
  }

  // What the blocks of all PEs have written; every member of a team calls it. Processes of one
  // machine read one clock, and count from the start of each.
  TraceReport report(Team* team) const {
    TraceReport own = own_->report();
    own.starts.assign(here_, start_);
    return joined(team, std::move(own));
  }

 private:
  // Of a PE: a sign of life, and what its blocks tell.
  std::size_t board_bytes() const { return sizeof(Flag) + shape_.counts() * sizeof(Published); }
  Flag* alive(int pe) const { return reinterpret_cast<Flag*>(board_.base(pe)); }
  Published* told(int pe) const {
    return reinterpret_cast<Published*>(board_.base(pe) + sizeof(Flag));
  }

  TraceShape shape_;
  std::size_t here_;
  int first_;
  std::uint64_t start_;
  CpuHeaps board_;
  std::optional<HostTrace> own_;
  std::optional<LiveWaits> watch_;
};

}  // namespace cpufree
