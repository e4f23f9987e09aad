// Host-driven counterparts of the stencils: the same points by the same arithmetic, driven by the
// CPU. See docs/design/baselines.md.
#pragma once

#include "cpufree/baselines/drivers/solvers.hpp"
#include "cpufree/problem/grid.hpp"

namespace cpufree {

struct StencilBaselineSpec {
  std::string kind;
  Grid grid;
  int pes = 1;
  std::vector<int> gpus = {};  // the device of each PE; empty: 0, 1, ...
  // Options. The defaults are what a user would get.
  bool threads = true;            // a host thread for each GPU; false: one for all, without graphs
  int unroll = 16;                // iterations in a graph, even
  int depth = 0;                  // planes that a thread computes; 0: by trial
  double wait_limit = 60.0;       // seconds
  std::string nccl_library = "";  // path; empty: where the system finds it
  std::string nvshmem_library = "";
  std::string exchange = "auto";  // nvshmem: meet, signal, meet_beside, ...; auto: by trial
  // nvshmem: this process is PE `rank` of those that have the same id (make_shmem_id).
  int rank = 0;
  std::string nvshmem_id = "";
};

struct StencilBaselineFacts {
  std::string kind;
  int pes = 1;
  std::string staging;          // of edges: "none", "peer", "host"
  std::int64_t planes = 0;      // of the largest slab
  int depth = 0;                // planes that a thread computes
  std::int64_t halo_bytes = 0;  // that a slab sends to one neighbour in an iteration
  std::string exchange;         // nvshmem: how an iteration is launched
  // Of the trials: an iteration on the slowest PE.
  std::vector<std::pair<std::string, double>> exchange_seconds;
  std::vector<std::pair<std::string, std::string>> versions;
  std::vector<std::string> notes;
  double setup_seconds = 0.0;
};

template <class T>
class StencilBaseline {
 public:
  virtual ~StencilBaseline() = default;
  virtual const StencilBaselineFacts& facts() const = 0;
  // Does N iterations, and returns the seconds from the first launch to the end of the last
  // kernel. `start`: the first values; empty: whatever the GPUs hold, which is enough to take the
  // time. `out`: where the values go; empty: nowhere; where a PE is a process (nvshmem), its own
  // planes are written alone. `variant`: full, no-compute, no-comm. Throws InvalidInput,
  // Unsupported, EngineError. After an EngineError nothing more can be done.
  virtual double run(std::span<const T> start, std::span<T> out, std::int64_t iterations,
                     const std::string& variant) = 0;
};

// All kinds, with their state on this machine, except NVSHMEM, which is not looked for here. Their
// only method is "jacobi".
std::vector<BaselineKind> stencil_baseline_kinds(const std::string& nccl_library);

// Throws InvalidInput, Unsupported (with what is missing), OutOfMemory, EngineError. nvshmem:
// returns when all processes have made theirs, of the same grid; its memory is free again when the
// process ends.
template <class T>
std::unique_ptr<StencilBaseline<T>> make_stencil_baseline(const StencilBaselineSpec& spec);

}  // namespace cpufree
