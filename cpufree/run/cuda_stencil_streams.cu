// The Jacobi kernels for values in memory, as CUDA launches them.
#include "cpufree/engines/cuda_p2p/port.cuh"
#include "cpufree/run/cuda_stencil_kernel.hpp"
#include "cpufree/stencils/streams.hpp"

namespace cpufree {

namespace {

constexpr int kLayers2d[] = {1, 2, 4, 8};
constexpr int kLayers3d[] = {1};

template <int D, int K, bool kSource, class T>
__global__ void __launch_bounds__(kCudaStencilThreads, 1)
    sweep_streams(const __grid_constant__ cuda_p2p::Shared shared,
                  const __grid_constant__ JacobiArgs<T> args) {
  extern __shared__ double2 fast[];  // planes, in three dimensions
  cuda_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  stream_kernel<D, K, kSource>(port, args);
}

template <bool kSource, class T>
const void* stream_kernel_for(int dims, int layers) {
  if (dims == 3)
    return layers == 1 ? reinterpret_cast<const void*>(sweep_streams<3, 1, kSource, T>) : nullptr;
  switch (layers) {
    case 1:
      return reinterpret_cast<const void*>(sweep_streams<2, 1, kSource, T>);
    case 2:
      return reinterpret_cast<const void*>(sweep_streams<2, 2, kSource, T>);
    case 4:
      return reinterpret_cast<const void*>(sweep_streams<2, 4, kSource, T>);
    case 8:
      return reinterpret_cast<const void*>(sweep_streams<2, 8, kSource, T>);
    default:
      return nullptr;
  }
}

}  // namespace

std::span<const int> stream_layers(int dims) {
  return dims == 2 ? std::span<const int>(kLayers2d) : std::span<const int>(kLayers3d);
}

template <class T>
const void* cuda_stream_kernel(int dims, int layers, bool source) {
  return source ? stream_kernel_for<true, T>(dims, layers)
                : stream_kernel_for<false, T>(dims, layers);
}

template const void* cuda_stream_kernel<float>(int, int, bool);
template const void* cuda_stream_kernel<double>(int, int, bool);

}  // namespace cpufree
