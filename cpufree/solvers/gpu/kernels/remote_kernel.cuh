// The solver kernel for GPUs in several nodes as CUDA launches it.
#pragma once

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/engines/gpu_p2p/streaming_port.cuh"
#include "cpufree/engines/remote/port.cuh"
#include "cpufree/formats/warp_slices.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/gpu/kernels/remote_kernel.hpp"
#include "cpufree/solvers/kernel.hpp"

namespace cpufree {

template <template <class, class> class Algorithm, class M, class Base, class T>
__device__ void solve_in_nodes(const gpu_p2p::Shared& shared,
                               const RemoteSolveArgs<WarpSlices<T>>& args) {
  extern __shared__ double2 fast[];
  using P = remote::Port<Base>;
  static_assert(RemotePort<P>);
  P port(args.seat, shared.leave, shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<Algorithm, M>(port, args.solve);
  port.finish();
}

}  // namespace cpufree

// extern "C": the host knows kernels by their names.
#define CPUFREE_REMOTE_KERNEL(name, algorithm, preconditioner, base, type)                     \
  extern "C" __global__ void __launch_bounds__(cpufree::kGpuThreads, 1)                        \
      name(const __grid_constant__ cpufree::gpu_p2p::Shared shared,                            \
           const __grid_constant__ cpufree::RemoteSolveArgs<cpufree::WarpSlices<type>> args) { \
    cpufree::solve_in_nodes<cpufree::algorithm, cpufree::preconditioner<type>,                 \
                            cpufree::gpu_p2p::base, type>(shared, args);                       \
  }
