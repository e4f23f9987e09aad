// The Jacobi kernels as CUDA launches them.
#include "cpufree/run/cuda_stencil_kernel.hpp"

#include "cpufree/engines/cuda_p2p/port.cuh"
#include "cpufree/stencils/jacobi.hpp"

namespace cpufree {

namespace {

template <int D, bool kSource, class T>
__global__ void __launch_bounds__(kCudaStencilThreads, 1)
    iterate_on_grid(const __grid_constant__ cuda_p2p::Shared shared,
                    const __grid_constant__ JacobiArgs<T> args) {
  extern __shared__ double2 fast[];  // tiles that stay on chip
  cuda_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  jacobi_kernel<D, kSource>(port, args);
}

}  // namespace

template <int D, bool kSource, class T>
const void* cuda_stencil_kernel() {
  return reinterpret_cast<const void*>(iterate_on_grid<D, kSource, T>);
}

template const void* cuda_stencil_kernel<2, false, float>();
template const void* cuda_stencil_kernel<2, true, float>();
template const void* cuda_stencil_kernel<3, false, float>();
template const void* cuda_stencil_kernel<3, true, float>();
template const void* cuda_stencil_kernel<2, false, double>();
template const void* cuda_stencil_kernel<2, true, double>();
template const void* cuda_stencil_kernel<3, false, double>();
template const void* cuda_stencil_kernel<3, true, double>();

}  // namespace cpufree
