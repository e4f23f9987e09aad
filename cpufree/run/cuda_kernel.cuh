// The solver kernel as CUDA launches it.
#pragma once

#include <type_traits>

#include "cpufree/engines/cuda_p2p/port.cuh"
#include "cpufree/run/cuda_kernel.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/solvers/warp_slices.hpp"

namespace cpufree {

template <template <class, class> class Algorithm, class M, class T, class P>
__global__ void __launch_bounds__(kCudaThreads, 1)
    solve(const __grid_constant__ cuda_p2p::Shared shared,
          const __grid_constant__ SolveArgs<WarpSlices<T>> args) {
  extern __shared__ double2 fast[];  // what stays on chip: see Residency
  P port(shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<Algorithm, M>(port, args);
}

template <Study S, template <class, class> class Algorithm, class M, class T, class P>
__global__ void __launch_bounds__(kCudaThreads, 1)
    study(const __grid_constant__ cuda_p2p::Shared shared,
          const __grid_constant__ SolveArgs<WarpSlices<T>> args) {
  extern __shared__ double2 fast[];
  P port(shared, reinterpret_cast<std::byte*>(fast));
  study_kernel<S, Algorithm, M>(port, args);
}

template <template <class, class> class Algorithm, class M, class T>
CudaKernels cuda_kernels() {
  return {reinterpret_cast<const void*>(solve<Algorithm, M, T, cuda_p2p::Port>),
          reinterpret_cast<const void*>(solve<Algorithm, M, T, cuda_p2p::StreamingPort>)};
}

// What does not compute does not stream.
template <Study S, template <class, class> class Algorithm>
CudaKernels cuda_study_kernels() {
  using M = Identity<double>;
  using Streaming =
      std::conditional_t<S == Study::no_compute, cuda_p2p::Port, cuda_p2p::StreamingPort>;
  return {reinterpret_cast<const void*>(study<S, Algorithm, M, double, cuda_p2p::Port>),
          reinterpret_cast<const void*>(study<S, Algorithm, M, double, Streaming>)};
}

}  // namespace cpufree
