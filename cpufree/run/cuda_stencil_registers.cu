// The Jacobi kernels for tiles in registers, as CUDA launches them.
#include <array>

#include "cpufree/engines/cuda_p2p/port.cuh"
#include "cpufree/run/cuda_stencil_kernel.hpp"
#include "cpufree/stencils/registers.hpp"

namespace cpufree {

namespace {

template <int C, int R, bool kSource, class T>
__global__ void __launch_bounds__(kCudaStencilThreads, 1)
    sweep_registers(const __grid_constant__ cuda_p2p::Shared shared,
                    const __grid_constant__ JacobiArgs<T> args) {
  extern __shared__ double2 fast[];  // what warps pass to one another
  cuda_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  register_kernel<C, R, kSource>(port, args);
}

// The last ones are as large as registers allow: 64 floats a thread, 32 doubles.
constexpr RegisterShape kOfFloat[] = {{1, 1}, {1, 2}, {1, 4},  {2, 4},
                                      {4, 4}, {4, 8}, {4, 12}, {4, 16}};
constexpr RegisterShape kOfDouble[] = {{1, 1}, {1, 2}, {1, 4}, {2, 4}, {2, 8}, {2, 12}, {2, 16}};

template <class T>
constexpr auto shapes_of() {
  if constexpr (sizeof(T) == 4)
    return std::to_array(kOfFloat);
  else
    return std::to_array(kOfDouble);
}

template <class T, std::size_t K = 0>
const void* find(const RegisterShape& shape, bool source) {
  constexpr auto shapes = shapes_of<T>();
  if constexpr (K == shapes.size()) {
    return nullptr;
  } else {
    constexpr int columns = shapes[K].columns, rows = shapes[K].rows;
    if (shape.columns != columns || shape.rows != rows) return find<T, K + 1>(shape, source);
    return source ? reinterpret_cast<const void*>(sweep_registers<columns, rows, true, T>)
                  : reinterpret_cast<const void*>(sweep_registers<columns, rows, false, T>);
  }
}

}  // namespace

std::span<const RegisterShape> register_shapes(std::size_t value_bytes) {
  return value_bytes == 4 ? std::span<const RegisterShape>(kOfFloat)
                          : std::span<const RegisterShape>(kOfDouble);
}

template <class T>
const void* cuda_register_kernel(const RegisterShape& shape, bool source) {
  return find<T>(shape, source);
}

template const void* cuda_register_kernel<float>(const RegisterShape&, bool);
template const void* cuda_register_kernel<double>(const RegisterShape&, bool);

}  // namespace cpufree
