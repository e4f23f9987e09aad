// The solver kernel as CUDA launches it for a study.
#pragma once

#include "cpufree/solvers/gpu/kernels/kernel.cuh"
#include "cpufree/solvers/study.hpp"

namespace cpufree {

template <Study S, template <class, class> class Algorithm, class M, class T, class P, class Format>
__global__ void __launch_bounds__(kGpuThreads, 1)
    study(const __grid_constant__ gpu_p2p::Shared shared,
          const __grid_constant__ SolveArgs<WarpSlices<T>> args) {
  extern __shared__ double2 fast[];
  P port(shared, reinterpret_cast<std::byte*>(fast));
  study_kernel<S, Algorithm, M, Format>(port, args);
}

// What does not compute does not stream. Studies tell of where time goes, and make do with the
// kernels for any code.
template <Study S, template <class, class> class Algorithm>
GpuKernels gpu_study_kernels() {
  using M = Identity<double>;
  using gpu_p2p::Port;
  constexpr bool computes = S != Study::no_compute;
  using Streaming = std::conditional_t<computes && !kFewKernels, gpu_p2p::StreamingPort, Port>;
  using OnChip = std::conditional_t<computes && !kFewKernels, SlicesOnChip, AnySlices>;
  return for_any_code(
      {reinterpret_cast<const void*>(study<S, Algorithm, M, double, Port, AnySlices>),
       reinterpret_cast<const void*>(study<S, Algorithm, M, double, Streaming, AnySlices>)},
      reinterpret_cast<const void*>(study<S, Algorithm, M, double, Port, OnChip>));
}

}  // namespace cpufree
