#include "cpufree/solvers/gpu/kernels/layout.hpp"

#include "cpufree/engines/gpu_p2p/free_port.cuh"
#include "cpufree/gpu/error.hpp"

namespace cpufree {

namespace {

template <class K>
__global__ void __launch_bounds__(layout::kThreads) run(const __grid_constant__ K kernel) {
  const gpu_p2p::FreePort port;
  kernel.run(port);
}

}  // namespace

template <class K>
void launch_layout(const K& kernel, std::int64_t items, gpuStream_t stream) {
  if (items <= 0) return;
  run<<<layout_blocks(items), layout::kThreads, 0, stream>>>(kernel);
  gpu::check_launch("launch of a kernel that lays a matrix out");
}

#define CPUFREE_LAYOUT_ONE(K) template void launch_layout(const K&, std::int64_t, gpuStream_t);
CPUFREE_ALL_LAYOUT_KERNELS

template <class T>
void prepare_layout(std::span<const int>) {}
template void prepare_layout<float>(std::span<const int>);
template void prepare_layout<double>(std::span<const int>);
template <class T>
void prepare_inverse(std::span<const int>) {}
template void prepare_inverse<float>(std::span<const int>);
template void prepare_inverse<double>(std::span<const int>);
void prepare_hierarchy(std::span<const int>) {}

}  // namespace cpufree
