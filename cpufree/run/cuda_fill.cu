#include "cpufree/run/cuda_fill.hpp"

#include <algorithm>

#include "cpufree/engines/cuda_p2p/bootstrap.hpp"

namespace cpufree {

namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;

template <class T>
__global__ void fill_rows(const __grid_constant__ BoxFill<T> fill) {
  for (std::int64_t r = blockIdx.x; r < fill.rows(); r += gridDim.x)
    fill.fill_row(r, threadIdx.x, blockDim.x);
}

}  // namespace

template <class T>
void cuda_fill_box(int device, const BoxFill<T>& fill) {
  const cuda_p2p::OnDevice here(device);
  const auto bytes = static_cast<std::size_t>(fill.values) * sizeof(T);
  cuda_p2p::check(cudaMemsetAsync(fill.begin, 0, bytes, nullptr), "cudaMemsetAsync of a box");
  const auto blocks = static_cast<unsigned>(std::min(fill.rows(), kMostBlocks));
  fill_rows<<<blocks, kThreads>>>(fill);
  cuda_p2p::check(cudaGetLastError(), "the kernel that fills a box");
  cuda_p2p::check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

template void cuda_fill_box(int, const BoxFill<float>&);
template void cuda_fill_box(int, const BoxFill<double>&);

}  // namespace cpufree
