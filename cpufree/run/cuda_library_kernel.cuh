// The solver kernel whose sums are NVSHMEM's as CUDA launches it.
#pragma once

#include "cpufree/engines/cuda_p2p/port.cuh"
#include "cpufree/engines/nvshmem/sum_port.cuh"
#include "cpufree/run/cuda_kernel.hpp"
#include "cpufree/run/cuda_remote_kernel.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/solvers/warp_slices.hpp"

namespace cpufree {

template <template <class, class> class Algorithm, class M, class Base>
__device__ void solve_by_library(const cuda_p2p::Shared& shared,
                                 const LibrarySolveArgs<WarpSlices<double>>& args) {
  extern __shared__ double2 fast[];
  using P = nvshmem::SumPort<Base>;
  static_assert(LibraryPort<P>);
  P port(args.board, shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<Algorithm, M>(port, args.solve);
}

}  // namespace cpufree

// extern "C": the host knows kernels by their names.
#define CPUFREE_LIBRARY_KERNEL(name, algorithm, preconditioner, base)                             \
  extern "C" __global__ void __launch_bounds__(cpufree::kCudaThreads, 1)                          \
      name(const __grid_constant__ cpufree::cuda_p2p::Shared shared,                              \
           const __grid_constant__ cpufree::LibrarySolveArgs<cpufree::WarpSlices<double>> args) { \
    cpufree::solve_by_library<cpufree::algorithm, cpufree::preconditioner<double>,                \
                              cpufree::cuda_p2p::base>(shared, args);                             \
  }
