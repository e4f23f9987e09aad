// The Jacobi kernels for tiles in registers, as CUDA launches them, and as studies of them
// (device/study.hpp), which there are without a source term.
#pragma once

#include <array>

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/stencils/gpu/kernel.hpp"
#include "cpufree/stencils/registers.hpp"

namespace cpufree {

template <Study S, int C, int R, bool kSource, class T>
__global__ void __launch_bounds__(kCudaStencilThreads, 1)
    sweep_registers(const __grid_constant__ gpu_p2p::Shared shared,
                    const __grid_constant__ JacobiArgs<T> args) {
  extern __shared__ double2 fast[];  // what warps pass to one another
  gpu_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  run_as<S>(port, [&](auto& p) { register_kernel<C, R, kSource>(p, args); });
}

template <class T>
constexpr auto shapes_of() {
  if constexpr (sizeof(T) == 4)
    return std::to_array(kRegistersOfFloat);
  else
    return std::to_array(kRegistersOfDouble);
}

template <Study S, class T, std::size_t K = 0>
const void* find_registers_kernel(const StencilKernel& wanted) {
  constexpr auto shapes = shapes_of<T>();
  if constexpr (K == shapes.size()) {
    return nullptr;
  } else {
    constexpr int columns = shapes[K].columns, rows = shapes[K].rows;
    if (wanted.shape.columns != columns || wanted.shape.rows != rows)
      return find_registers_kernel<S, T, K + 1>(wanted);
    if (!wanted.source)
      return reinterpret_cast<const void*>(sweep_registers<S, columns, rows, false, T>);
    if constexpr (S == Study::none)
      return reinterpret_cast<const void*>(sweep_registers<S, columns, rows, true, T>);
    return nullptr;
  }
}

template <Study S, class T>
const void* cuda_registers_kernel(const StencilKernel& wanted) {
  return find_registers_kernel<S, T>(wanted);
}

}  // namespace cpufree
