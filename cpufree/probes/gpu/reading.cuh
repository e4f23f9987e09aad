// What a grid of kReadingThreads threads a block does to have read some values.
#pragma once

#include <cstdint>

#include "cpufree/engines/gpu_p2p/threads.cuh"

namespace cpufree {

// `sum` is written where the values are not numbers, which they are: they must be read for that.
__device__ inline void read_all(const double* values, std::int64_t count, double* sum) {
  double mine = 0.0;
  using namespace gpu_p2p;
  for (std::int64_t i =
           static_cast<std::int64_t>(block_of_grid()) * threads_of_block() + thread_of_block();
       i < count; i += static_cast<std::int64_t>(blocks_of_grid()) * threads_of_block())
    mine += values[i];
  if (!(mine == mine)) *sum = mine;
}

}  // namespace cpufree
