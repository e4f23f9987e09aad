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

// To see that code compiles, most methods do with the kernels for any code.
#if defined(CPUFREE_FAST_COMPILE)
inline constexpr bool kFewKernels = true;
#else
inline constexpr bool kFewKernels = false;
#endif

// With a preconditioner of several products kernels are long, and compile for minutes: those for
// any code will do.
template <template <class, class> class Algorithm, class M, class T>
CudaKernels cuda_kernels() {
  using namespace cuda_p2p;
  const CudaKernelPair runs = {
      reinterpret_cast<const void*>(solve<Algorithm, M, T, RunsPort>),
      reinterpret_cast<const void*>(solve<Algorithm, M, T, StreamingRunsPort>)};
  if constexpr (kFewKernels && !std::is_same_v<M, Identity<double>>) {
    return for_any_code(runs);
  } else {
    const void* const on_chip = reinterpret_cast<const void*>(solve<Algorithm, M, T, OnChipPort>);
    if constexpr (!M::pointwise)
      return for_any_code(runs, on_chip);
    else
      return {{reinterpret_cast<const void*>(solve<Algorithm, M, T, cuda_p2p::Port>),
               reinterpret_cast<const void*>(solve<Algorithm, M, T, StreamingPort>)},
              runs,
              on_chip};
  }
}

// What does not compute does not stream. Studies tell of where time goes, and make do with the
// kernels for any code.
template <Study S, template <class, class> class Algorithm>
CudaKernels cuda_study_kernels() {
  using M = Identity<double>;
  using cuda_p2p::RunsPort;
  constexpr bool computes = S != Study::no_compute;
  using Streaming = std::conditional_t<computes, cuda_p2p::StreamingRunsPort, RunsPort>;
  using OnChip = std::conditional_t<computes, cuda_p2p::OnChipPort, RunsPort>;
  return for_any_code({reinterpret_cast<const void*>(study<S, Algorithm, M, double, RunsPort>),
                       reinterpret_cast<const void*>(study<S, Algorithm, M, double, Streaming>)},
                      reinterpret_cast<const void*>(study<S, Algorithm, M, double, OnChip>));
}

}  // namespace cpufree
