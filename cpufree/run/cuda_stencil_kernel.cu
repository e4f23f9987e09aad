// The Jacobi kernels for any tile, as CUDA launches them.
#include "cpufree/engines/cuda_p2p/port.cuh"
#include "cpufree/run/cuda_stencil_kernel.hpp"
#include "cpufree/stencils/jacobi.hpp"

namespace cpufree {

namespace {

template <int D, bool kSource, class T>
__global__ void __launch_bounds__(kCudaStencilThreads, 1)
    sweep_wavefront(const __grid_constant__ cuda_p2p::Shared shared,
                    const __grid_constant__ JacobiArgs<T> args) {
  extern __shared__ double2 fast[];  // tiles that stay on chip
  cuda_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  jacobi_kernel<D, kSource>(port, args);
}

template <bool kSource, class T>
const void* wavefront_kernel(int dims) {
  return dims == 2 ? reinterpret_cast<const void*>(sweep_wavefront<2, kSource, T>)
                   : reinterpret_cast<const void*>(sweep_wavefront<3, kSource, T>);
}

}  // namespace

template <class T>
const void* cuda_wavefront_kernel(int dims, bool source) {
  return source ? wavefront_kernel<true, T>(dims) : wavefront_kernel<false, T>(dims);
}

template const void* cuda_wavefront_kernel<float>(int, bool);
template const void* cuda_wavefront_kernel<double>(int, bool);

}  // namespace cpufree
