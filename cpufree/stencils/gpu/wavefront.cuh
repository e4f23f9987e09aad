// The Jacobi kernels for any tile, as CUDA launches them, and as studies of them
// (device/study.hpp), which there are without a source term.
#pragma once

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/stencils/gpu/kernel.hpp"
#include "cpufree/stencils/jacobi.hpp"

namespace cpufree {

template <Study S, int D, bool kSource, class T>
__global__ void __launch_bounds__(kCudaStencilThreads, 1)
    sweep_wavefront(const __grid_constant__ gpu_p2p::Shared shared,
                    const __grid_constant__ JacobiArgs<T> args) {
  extern __shared__ double2 fast[];  // tiles that stay on chip
  gpu_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  run_as<S>(port, [&](auto& p) { jacobi_kernel<D, kSource>(p, args); });
}

template <Study S, bool kSource, class T>
const void* find_wavefront_kernel(int dims) {
  return dims == 2 ? reinterpret_cast<const void*>(sweep_wavefront<S, 2, kSource, T>)
                   : reinterpret_cast<const void*>(sweep_wavefront<S, 3, kSource, T>);
}

template <Study S, class T>
const void* cuda_wavefront_kernel(const StencilKernel& wanted) {
  if (!wanted.source) return find_wavefront_kernel<S, false, T>(wanted.dims);
  if constexpr (S == Study::none) return find_wavefront_kernel<S, true, T>(wanted.dims);
  return nullptr;
}

}  // namespace cpufree
