#include "cpufree/problem/blocks/slice_width.hpp"

#include <algorithm>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

std::vector<std::int64_t> slice_costs(std::span<const std::int64_t> row_ptr, RowRange rows) {
  constexpr std::int32_t kTogether = 1 << 12;  // slices that are worth a thread
  const std::int32_t slices = (rows.size() + kSliceRows - 1) / kSliceRows;
  std::vector<std::int64_t> costs(at(slices));
  in_parallel((slices + kTogether - 1) / kTogether, [&](int task) {
    const std::int32_t first = task * kTogether;
    for (std::int32_t s = first; s < std::min(first + kTogether, slices); ++s) {
      const std::int32_t begin = rows.begin + s * kSliceRows;
      std::int64_t lengths[kSliceRows] = {};
      for (std::int32_t k = 0; k < std::min(kSliceRows, rows.end - begin); ++k)
        lengths[k] = row_ptr[at(begin + k) + 1] - row_ptr[at(begin + k)];
      costs[at(s)] = best_slice_width(lengths).cost;
    }
  });
  return costs;
}

}  // namespace cpufree
