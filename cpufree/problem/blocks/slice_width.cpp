#include "cpufree/problem/blocks/slice_width.hpp"

#include <algorithm>
#include <functional>

#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

// What a tail costs beyond its entries: the warp sums it on its own, row by row. In entries.
constexpr std::int64_t kTailCost = 256;

}  // namespace

// Only lengths of rows come into question: between two of them the cost is linear. A row a few
// entries longer than the others widens the slice; a long one gets a tail.
SliceWidth best_slice_width(std::array<std::int64_t, kSliceRows> lengths) {
  std::ranges::sort(lengths, std::greater<>());
  SliceWidth best{lengths[0], kSliceRows * lengths[0]};
  std::int64_t longer = 0;  // entries of the rows before k
  for (std::size_t k = 1; k <= at(kSliceRows); ++k) {
    longer += lengths[k - 1];
    const std::int64_t width = k < at(kSliceRows) ? lengths[k] : 0;
    const auto tails = static_cast<std::int64_t>(k);
    const std::int64_t cost = kSliceRows * width + longer - tails * width + tails * kTailCost;
    if (cost < best.cost) best = {width, cost};
  }
  return best;
}

void append_padded(std::span<const std::int64_t> row_ptr, RowRange rows,
                   std::vector<std::int64_t>& padded) {
  for (std::int32_t begin = rows.begin; begin < rows.end; begin += kSliceRows) {
    const std::int32_t count = std::min(kSliceRows, rows.end - begin);
    std::array<std::int64_t, kSliceRows> lengths{};
    for (std::int32_t k = 0; k < count; ++k)
      lengths[at(k)] = row_ptr[at(begin + k) + 1] - row_ptr[at(begin + k)];
    const std::int64_t cost = best_slice_width(lengths).cost;
    const std::int64_t before = padded.back();
    for (std::int32_t k = 1; k <= count; ++k) padded.push_back(before + cost * k / count);
  }
}

}  // namespace cpufree
