// What GPUs in several nodes have besides: tables of what goes between nodes, and kernels that send
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpufree/device/node_table.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/launch/gpu/node_arrays.hpp"
#include "cpufree/problem/remote_plan.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/gpu/kernels/remote_kernel.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// One PE's, on its GPU.
class RemoteTables {
 public:
  RemoteTables() = default;
  RemoteTables(int device, const NodeTable& nodes, const RemotePlan& plan);
  Remote view(const NodeBoard& board) const;

 private:
  NodeArrays nodes_;
  gpu::DeviceArray<RemoteRun> runs_;
  gpu::DeviceArray<RemoteRuns> of_block_;
};

// The kernels of a solve between nodes, from the system's file of them; all members of its team
// call this together. Throws Unsupported, EngineError.
template <class T>
GpuKernels remote_kernels(const SystemSpec& system, const SolveSpec& spec);

}  // namespace cpufree
