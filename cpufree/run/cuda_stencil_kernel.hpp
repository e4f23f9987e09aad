// The addresses of the Jacobi kernels of the GPU engine, for host code. Their parameters are a
// cuda_p2p::Shared and a JacobiArgs<T>, by value.
#pragma once

#include <span>

#include "cpufree/stencils/register_shape.hpp"

namespace cpufree {

inline constexpr int kCudaStencilThreads = 512;  // of a block, at most

// Which tiles the kernels in registers are made for, for values of so many bytes.
std::span<const RegisterShape> register_shapes(std::size_t value_bytes);
// Iterations of a pass that kernels for values in memory are made for.
std::span<const int> stream_layers(int dims);

// Each of them null where there is no such kernel.
template <class T>
const void* cuda_wavefront_kernel(int dims, bool source);
template <class T>
const void* cuda_register_kernel(const RegisterShape& shape, bool source);
template <class T>
const void* cuda_stream_kernel(int dims, int layers, bool source);

}  // namespace cpufree
