// The rings of a launch that is traced on GPUs, in their memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/live_waits.hpp"
#include "cpufree/launch/trace.hpp"

namespace cpufree {

class GpuTrace {
 public:
  // For the PEs of this process, a GPU each, from PE `first` on. Slots count from `heaps`, their
  // symmetric memory.
  GpuTrace(const TraceSpec& spec, const TraceShape& shape, const std::vector<int>& devices,
           const std::vector<std::byte*>& heaps, int first);

  // For `run_traced`: of the k-th PE of the process.
  const TraceRing* rings(std::size_t k) const { return pes_[k].rings.data(); }
  // Watches the PEs of this process; null where nobody listens.
  LiveWaits* watch() { return watch_ ? &*watch_ : nullptr; }
  // What the blocks of all PEs have written, once their kernels have ended; every member of a team
  // calls it. Each GPU has a clock of its own.
  TraceReport report(Team* team) const;

 private:
  struct Pe {
    int device = 0;
    gpu::DeviceArray<TraceRecord> records;
    gpu::DeviceArray<std::uint64_t> written, bytes;
    gpu::DeviceArray<TraceRing> rings;
    gpu::MappedArray<Published> told;
  };
  TraceShape shape_;
  int first_;
  std::vector<Pe> pes_;
  std::optional<LiveWaits> watch_;
};

}  // namespace cpufree
