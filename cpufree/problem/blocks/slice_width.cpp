#include "cpufree/problem/blocks/slice_width.hpp"

#include <algorithm>

#include "cpufree/base/index.hpp"

namespace cpufree {

void append_padded(std::span<const std::int64_t> row_ptr, RowRange rows,
                   std::vector<std::int64_t>& padded) {
  for (std::int32_t begin = rows.begin; begin < rows.end; begin += kSliceRows) {
    const std::int32_t count = std::min(kSliceRows, rows.end - begin);
    std::int64_t lengths[kSliceRows] = {};
    for (std::int32_t k = 0; k < count; ++k)
      lengths[k] = row_ptr[at(begin + k) + 1] - row_ptr[at(begin + k)];
    const std::int64_t cost = best_slice_width(lengths).cost;
    const std::int64_t before = padded.back();
    for (std::int32_t k = 1; k <= count; ++k) padded.push_back(before + cost * k / count);
  }
}

}  // namespace cpufree
