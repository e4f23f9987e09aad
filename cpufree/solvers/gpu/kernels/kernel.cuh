// The solver kernel as CUDA launches it.
#pragma once

#include <type_traits>

#include "cpufree/engines/gpu_p2p/streaming_port.cuh"
#include "cpufree/formats/warp_columns.hpp"
#include "cpufree/formats/warp_slices.hpp"
#include "cpufree/multigrid/cycle.hpp"
#include "cpufree/solvers/block_cg.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/kernel.hpp"

namespace cpufree {

template <template <class, class> class Algorithm, class M, class T, class P, class Format,
          int K = 1>
__global__ void __launch_bounds__(kGpuThreads, 1)
    solve(const __grid_constant__ gpu_p2p::Shared shared,
          const __grid_constant__ SolveArgs<WarpSlices<T>, K> args) {
  extern __shared__ double2 fast[];  // what stays on chip: see Residency
  P port(shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<Algorithm, M, Format>(port, args);
}

// To see that code compiles, one kernel for any code is enough for most methods: the others differ
// from it by types that one method has all of.
#if defined(CPUFREE_FAST_COMPILE)
inline constexpr bool kFewKernels = true;
#else
inline constexpr bool kFewKernels = false;
#endif

// With a preconditioner of several products kernels are long, and compile for minutes: those for
// any code will do. Several columns have one kernel, and multigrid: their matrix is read where it
// is.
template <template <class, class> class Algorithm, class M, class T, int K>
GpuKernels gpu_kernels() {
  using gpu_p2p::Port, gpu_p2p::StreamingPort;
  const auto address = [](auto* kernel) { return reinterpret_cast<const void*>(kernel); };
  const void* const any = address(solve<Algorithm, M, T, Port, AnySlices, K>);
  constexpr bool few = kFewKernels && !std::is_same_v<M, Identity<double>>;
  if constexpr (K > 1) {
    return for_any_code({any, nullptr});
  } else if constexpr (std::is_same_v<M, Multigrid<T>>) {
    return for_any_code({any, any});
  } else if constexpr (few) {
    return for_any_code({any, any});
  } else {
    const GpuKernelPair runs = {any, address(solve<Algorithm, M, T, StreamingPort, AnySlices>)};
    const void* const on_chip = address(solve<Algorithm, M, T, Port, SlicesOnChip>);
    if constexpr (!M::pointwise)
      return for_any_code(runs, on_chip);
    else
      return {{address(solve<Algorithm, M, T, Port, SlicesWithoutRuns>),
               address(solve<Algorithm, M, T, StreamingPort, SlicesWithoutRuns>)},
              runs,
              on_chip};
  }
}

}  // namespace cpufree
