// C = A B, or C + A B, of square tiles, by a grid of blocks: the part of a product that the host
// launches between the messages that it drives.
#pragma once

#include "cpufree/engines/gpu_p2p/threads.cuh"
#include "cpufree/probes/gpu/product_args.hpp"

namespace cpufree {

// A part of kTileEdge x kTileEdge entries of C, by a block.
__device__ inline void multiply_part(const ProductArgs& t, int part) {
  constexpr int kEach = kTileEdge * kTileEdge / kTileThreads;
  __shared__ double of_a[kTileEdge][kTileEdge], of_b[kTileEdge][kTileEdge];
  const int column = static_cast<int>(gpu_p2p::thread_of_block()) % kTileEdge;
  const int row = static_cast<int>(gpu_p2p::thread_of_block()) / kTileEdge * kEach;
  const int across = t.rows / kTileEdge;
  const std::int64_t n = t.rows;
  const std::int64_t at_row = std::int64_t{part / across} * kTileEdge + row;
  const std::int64_t at_column = std::int64_t{part % across} * kTileEdge + column;
  double sums[kEach];
  for (int i = 0; i < kEach; ++i) sums[i] = t.first ? 0.0 : t.c[(at_row + i) * n + at_column];
  for (std::int64_t begin = 0; begin < n; begin += kTileEdge) {
    for (int i = 0; i < kEach; ++i) {
      of_a[row + i][column] = t.a[(at_row + i) * n + begin + column];
      of_b[row + i][column] = t.b[(begin + row + i) * n + at_column];
    }
    gpu_p2p::sync_threads();
    for (int k = 0; k < kTileEdge; ++k)
      for (int i = 0; i < kEach; ++i) sums[i] += of_a[row + i][k] * of_b[k][column];
    gpu_p2p::sync_threads();
  }
  for (int i = 0; i < kEach; ++i) t.c[(at_row + i) * n + at_column] = sums[i];
}

__device__ inline void multiply_tiles(const ProductArgs& t) {
  const int parts = t.rows / kTileEdge * (t.rows / kTileEdge);
  for (int part = static_cast<int>(gpu_p2p::block_of_grid()); part < parts;
       part += static_cast<int>(gpu_p2p::blocks_of_grid()))
    multiply_part(t, part);
}

}  // namespace cpufree
