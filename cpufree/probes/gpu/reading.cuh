// What a grid of kReadingThreads threads a block does to have read some values.
#pragma once

#include <cstdint>

namespace cpufree {

// `sum` is written where the values are not numbers, which they are: they must be read for that.
__device__ inline void read_all(const double* values, std::int64_t count, double* sum) {
  double mine = 0.0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    mine += values[i];
  if (!(mine == mine)) *sum = mine;
}

}  // namespace cpufree
