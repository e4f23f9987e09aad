// The kernel for several right-hand sides as CUDA launches it.
#pragma once

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/formats/warp_columns.hpp"
#include "cpufree/solvers/columns_kernel.hpp"
#include "cpufree/systems/gpu/kernels/columns_kernel.hpp"
#include "cpufree/systems/gpu/kernels/kernel.hpp"

namespace cpufree {

template <class T, int K, bool kJacobi>
__global__ void __launch_bounds__(kGpuThreads, 1)
    solve_columns(const __grid_constant__ gpu_p2p::Shared shared,
                  const __grid_constant__ ColumnsArgs<WarpSlices<T>, K> args) {
  gpu_p2p::Port port(shared, nullptr);
  columns_kernel<PointwiseOfColumns<T, kJacobi>, K>(port, args);
}

template <class T, int K, bool kJacobi>
const void* gpu_columns_kernel() {
  return reinterpret_cast<const void*>(solve_columns<T, K, kJacobi>);
}

}  // namespace cpufree
