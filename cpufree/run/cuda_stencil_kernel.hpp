// The addresses of the Jacobi kernels of the GPU engine, for host code.
#pragma once

namespace cpufree {

inline constexpr int kCudaStencilThreads = 512;  // of a block

// The kernel for D dimensions, with or without a source term, for values of type T; its parameters
// are a cuda_p2p::Shared and a JacobiArgs<T>, by value.
template <int D, bool kSource, class T>
const void* cuda_stencil_kernel();

}  // namespace cpufree
