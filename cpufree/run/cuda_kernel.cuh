// The solver kernel as CUDA launches it.
#pragma once

#include "cpufree/engines/cuda_p2p/port.cuh"
#include "cpufree/run/cuda_kernel.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/solvers/warp_slices.hpp"

namespace cpufree {

template <template <class, class> class Algorithm, class M, class T>
__global__ void __launch_bounds__(kCudaThreads, 1)
    solve(const __grid_constant__ cuda_p2p::Shared shared,
          const __grid_constant__ SolveArgs<WarpSlices<T>> args) {
  extern __shared__ double2 fast[];  // what stays on chip: see Residency
  cuda_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<Algorithm, M>(port, args);
}

template <Study S, template <class, class> class Algorithm, class M, class T>
__global__ void __launch_bounds__(kCudaThreads, 1)
    study(const __grid_constant__ cuda_p2p::Shared shared,
          const __grid_constant__ SolveArgs<WarpSlices<T>> args) {
  extern __shared__ double2 fast[];
  cuda_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  study_kernel<S, Algorithm, M>(port, args);
}

template <template <class, class> class Algorithm, class M, class T>
const void* cuda_kernel() {
  return reinterpret_cast<const void*>(solve<Algorithm, M, T>);
}

template <Study S, template <class, class> class Algorithm>
const void* cuda_study_kernel() {
  return reinterpret_cast<const void*>(study<S, Algorithm, Identity<double>, double>);
}

}  // namespace cpufree
