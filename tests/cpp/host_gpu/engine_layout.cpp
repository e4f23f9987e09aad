// The kernels that lay a matrix out, on threads of the host.
#include "cpufree/base/parallel.hpp"
#include "cpufree/engines/cpu_threads/free_port.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"

namespace cpufree {

template <class K>
void launch_layout(const K& kernel, std::int64_t items, gpuStream_t stream) {
  static_cast<void>(gpuStreamSynchronize(stream));
  const int blocks = static_cast<int>(std::clamp<std::int64_t>(items, 1, 7));
  const auto run = [&](int block) {
    const cpu_threads::FreePort port(block, blocks);
    kernel.run(port);
  };
  if (items > 2000) return in_parallel(blocks, run);
  for (int block = blocks - 1; block >= 0; --block) run(block);  // an order as good as any
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
