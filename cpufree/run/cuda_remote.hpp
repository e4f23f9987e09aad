// What GPUs in several nodes have besides: tables of what goes between nodes, and kernels that send
// it; and kernels that have NVSHMEM sum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpufree/device/node_table.hpp"
#include "cpufree/engines/cuda_p2p/memory.hpp"
#include "cpufree/problem/remote_plan.hpp"
#include "cpufree/run/cuda_kernel.hpp"
#include "cpufree/run/cuda_remote_kernel.hpp"
#include "cpufree/run/spec.hpp"

namespace cpufree {

// One PE's, on its GPU.
class RemoteTables {
 public:
  RemoteTables() = default;
  RemoteTables(int device, const NodeTable& nodes, const RemotePlan& plan);
  Remote view(const NodeBoard& board) const;

 private:
  cuda_p2p::DeviceArray<std::int32_t> of_pe_, place_, first_, pes_;
  cuda_p2p::DeviceArray<RemoteRun> runs_;
  cuda_p2p::DeviceArray<RemoteRuns> of_block_;
};

// The kernels of a solve between nodes, from the file that has them; those of one whose sums are
// NVSHMEM's, in double precision. Throw Unsupported, EngineError.
template <class T>
CudaKernels remote_kernels(const std::string& file, const SolveSpec& spec);
CudaKernels library_kernels(const std::string& file, const SolveSpec& spec);

}  // namespace cpufree
