// The rings of a launch that is traced on the CPU engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/launch/trace.hpp"
#include "cpufree/trace/host_trace.hpp"

namespace cpufree {

class CpuTrace {
 public:
  // For the PEs of this process.
  CpuTrace(const TraceShape& shape, const cpu_threads::LaunchConfig& config)
      : here_(static_cast<std::size_t>(config.here)),
        start_(cpu_threads::Port::now()),
        own_(shape, {&config.heaps[config.first], here_}, start_, config.first) {}

  const TraceRing* rings(int k) const { return own_.rings(k); }

  // What the blocks of all PEs have written; every member of a team calls it. Processes of one
  // machine read one clock, and count from the start of each.
  TraceReport report(Team* team) const {
    TraceReport own = own_.report();
    own.starts.assign(here_, start_);
    return joined(team, std::move(own));
  }

 private:
  std::size_t here_;
  std::uint64_t start_;
  HostTrace own_;
};

}  // namespace cpufree
