// The Jacobi kernels for values in memory, as CUDA launches them, and as studies of them
// (device/study.hpp), which there are without a source term.
#pragma once

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/stencils/gpu/kernel.hpp"
#include "cpufree/stencils/time_tiles.hpp"

namespace cpufree {

// P: the port, of which studies are made.
template <class P, Study S, int D, int K, bool kSource, class T>
__global__ void __launch_bounds__(time_tile_threads(D), 1)
    sweep_time_tiles(const __grid_constant__ gpu_p2p::Shared shared,
                     const __grid_constant__ JacobiArgs<T> args) {
  extern __shared__ double2 fast[];  // planes, in three dimensions
  P port(shared, reinterpret_cast<std::byte*>(fast));
  run_as<S>(port, [&](auto& p) { time_tile_kernel<D, K, kSource>(p, args); });
}

template <class P, Study S, bool kSource, class T>
const void* find_time_tiles_kernel(int dims, int layers) {
  if (dims == 3) {
    if (layers == 1) return reinterpret_cast<const void*>(sweep_time_tiles<P, S, 3, 1, kSource, T>);
    if (layers == 2) return reinterpret_cast<const void*>(sweep_time_tiles<P, S, 3, 2, kSource, T>);
    return nullptr;
  }
  switch (layers) {
    case 1:
      return reinterpret_cast<const void*>(sweep_time_tiles<P, S, 2, 1, kSource, T>);
    case 2:
      return reinterpret_cast<const void*>(sweep_time_tiles<P, S, 2, 2, kSource, T>);
    case 4:
      return reinterpret_cast<const void*>(sweep_time_tiles<P, S, 2, 4, kSource, T>);
    case 8:
      return reinterpret_cast<const void*>(sweep_time_tiles<P, S, 2, 8, kSource, T>);
    default:
      return nullptr;
  }
}

template <Study S, class T>
const void* cuda_time_tiles_kernel(const StencilKernel& wanted) {
  if (!wanted.source)
    return find_time_tiles_kernel<gpu_p2p::Port, S, false, T>(wanted.dims, wanted.layers);
  if constexpr (S == Study::none)
    return find_time_tiles_kernel<gpu_p2p::Port, S, true, T>(wanted.dims, wanted.layers);
  return nullptr;
}

}  // namespace cpufree
