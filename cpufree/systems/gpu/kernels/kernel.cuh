// The solver kernel as CUDA launches it.
#pragma once

#include <type_traits>

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/formats/warp_slices.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/systems/gpu/kernels/kernel.hpp"

namespace cpufree {

template <template <class, class> class Algorithm, class M, class T, class P, class Format>
__global__ void __launch_bounds__(kGpuThreads, 1)
    solve(const __grid_constant__ gpu_p2p::Shared shared,
          const __grid_constant__ SolveArgs<WarpSlices<T>> args) {
  extern __shared__ double2 fast[];  // what stays on chip: see Residency
  P port(shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<Algorithm, M, Format>(port, args);
}

template <Study S, template <class, class> class Algorithm, class M, class T, class P, class Format>
__global__ void __launch_bounds__(kGpuThreads, 1)
    study(const __grid_constant__ gpu_p2p::Shared shared,
          const __grid_constant__ SolveArgs<WarpSlices<T>> args) {
  extern __shared__ double2 fast[];
  P port(shared, reinterpret_cast<std::byte*>(fast));
  study_kernel<S, Algorithm, M, Format>(port, args);
}

// To see that code compiles, one kernel for any code is enough for most methods: the others differ
// from it by types that one method has all of.
#if defined(CPUFREE_FAST_COMPILE)
inline constexpr bool kFewKernels = true;
#else
inline constexpr bool kFewKernels = false;
#endif

// With a preconditioner of several products kernels are long, and compile for minutes: those for
// any code will do.
template <template <class, class> class Algorithm, class M, class T>
GpuKernels gpu_kernels() {
  using namespace gpu_p2p;
  constexpr bool few = kFewKernels && !std::is_same_v<M, Identity<double>>;
  using Streaming = std::conditional_t<few, gpu_p2p::Port, StreamingPort>;
  const GpuKernelPair runs = {
      reinterpret_cast<const void*>(solve<Algorithm, M, T, gpu_p2p::Port, AnySlices>),
      reinterpret_cast<const void*>(solve<Algorithm, M, T, Streaming, AnySlices>)};
  if constexpr (few) {
    return for_any_code(runs);
  } else {
    const void* const on_chip =
        reinterpret_cast<const void*>(solve<Algorithm, M, T, gpu_p2p::Port, SlicesOnChip>);
    if constexpr (!M::pointwise)
      return for_any_code(runs, on_chip);
    else
      return {
          {reinterpret_cast<const void*>(solve<Algorithm, M, T, gpu_p2p::Port, SlicesWithoutRuns>),
           reinterpret_cast<const void*>(solve<Algorithm, M, T, StreamingPort, SlicesWithoutRuns>)},
          runs,
          on_chip};
  }
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
