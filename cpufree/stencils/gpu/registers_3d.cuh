// The Jacobi kernels for tiles in registers in three dimensions, as CUDA launches them, and as
// studies of them (device/study.hpp), which there are without a source term.
#pragma once

#include <array>

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/stencils/gpu/kernel.hpp"
#include "cpufree/stencils/registers_3d.hpp"

namespace cpufree {

template <Study S, int C, int Z, bool kSource, class T>
__global__ void __launch_bounds__(kCudaStencilThreads, 1)
    sweep_registers_3d(const __grid_constant__ gpu_p2p::Shared shared,
                       const __grid_constant__ JacobiArgs<T> args) {
  extern __shared__ double2 fast[];  // rows
  gpu_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  run_as<S>(port, [&](auto& p) { tile3d_kernel<C, Z, kSource>(p, args); });
}

template <class T>
constexpr auto tile3d_shapes_of() {
  if constexpr (sizeof(T) == 4)
    return std::to_array(kTiles3dOfFloat);
  else
    return std::to_array(kTiles3dOfDouble);
}

template <Study S, class T, std::size_t K = 0>
const void* find_registers_3d_kernel(const StencilKernel& wanted) {
  constexpr auto shapes = tile3d_shapes_of<T>();
  if constexpr (K == shapes.size()) {
    return nullptr;
  } else {
    constexpr int columns = shapes[K].columns, planes = shapes[K].planes;
    if (wanted.tile3d.columns != columns || wanted.tile3d.planes != planes)
      return find_registers_3d_kernel<S, T, K + 1>(wanted);
    if (!wanted.source)
      return reinterpret_cast<const void*>(sweep_registers_3d<S, columns, planes, false, T>);
    if constexpr (S == Study::none)
      return reinterpret_cast<const void*>(sweep_registers_3d<S, columns, planes, true, T>);
    return nullptr;
  }
}

template <Study S, class T>
const void* cuda_registers_3d_kernel(const StencilKernel& wanted) {
  return find_registers_3d_kernel<S, T>(wanted);
}

}  // namespace cpufree
