// The rings of a launch that is traced on the CPU engine.
#pragma once

#include <cstddef>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/engines/cpu_threads/memory.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

class CpuTrace {
 public:
  // For the PEs of this process.
  CpuTrace(const TraceShape& shape, const cpu_threads::LaunchConfig& config)
      : shape_(shape), first_(config.first) {
    const std::uint64_t start = cpu_threads::Port::now();
    for (int k = 0; k < config.here; ++k) {
      Pe pe{Array<TraceRecord>(shape.records()),
            Array<std::uint64_t>(shape.counts()),
            Array<std::uint64_t>(shape.bytes()),
            {}};
      pe.rings = trace_rings(shape, pe.records.data(), pe.written.data(), pe.bytes.data(),
                             config.heaps[config.first + k], start);
      pes_.push_back(std::move(pe));
    }
    start_ = start;
  }

  const TraceRing* rings(std::size_t k) const { return pes_[k].rings.data(); }

  // What the blocks of all PEs have written; every member of a team calls it. Processes of one
  // machine read one clock, and count from the start of each.
  TraceReport report(Team* team) const {
    TraceReport own;
    for (std::size_t k = 0; k < pes_.size(); ++k) {
      const Pe& pe = pes_[k];
      collect_trace(own, first_ + static_cast<int>(k), shape_,
                    {pe.records.data(), pe.records.size()}, {pe.written.data(), pe.written.size()},
                    {pe.bytes.data(), pe.bytes.size()});
    }
    own.starts.assign(pes_.size(), start_);
    if (team == nullptr) return own;
    return {join(*team, "tracks of a trace", own.tracks),
            join(*team, "records of a trace", own.records),
            join(*team, "bytes of a trace", own.bytes),
            join(*team, "clocks of a trace", own.starts)};
  }

 private:
  template <class V>
  using Array = cpu_threads::Array<V>;
  struct Pe {
    Array<TraceRecord> records;
    Array<std::uint64_t> written, bytes;
    std::vector<TraceRing> rings;
  };

  TraceShape shape_;
  int first_;
  std::uint64_t start_ = 0;
  std::vector<Pe> pes_;
};

}  // namespace cpufree
