// How wide a slice of 32 rows is best stored ("sliced ELL"): as its longest rows, or narrower, with
// tails for what these have beyond that (formats/warp_slices.hpp). For host and kernels.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/problem/blocks/slice_rows.hpp"

namespace cpufree {

struct SliceWidth {
  std::int64_t width = 0;  // entries of a row that are in the slice
  std::int64_t cost = 0;   // of the slice and its tails, in entries, padding included
};

// Longest first. Rows of a slice are often sorted already, or all alike.
CPUFREE_FN void sort_lengths(std::int64_t (&lengths)[kSliceRows]) {
  for (int k = 1; k < kSliceRows; ++k) {
    const std::int64_t length = lengths[k];
    int place = k;
    for (; place > 0 && lengths[place - 1] < length; --place) lengths[place] = lengths[place - 1];
    lengths[place] = length;
  }
}

// The cheapest width for rows of these lengths, which are sorted. Only lengths of rows come into
// question: between two of them the cost is linear. A row a few entries longer than the others
// widens the slice; a long one gets a tail.
CPUFREE_FN SliceWidth best_slice_width(std::int64_t (&lengths)[kSliceRows]) {
  constexpr std::int64_t kTailCost = 256;  // beyond its entries: the warp sums it on its own
  sort_lengths(lengths);
  SliceWidth best{lengths[0], kSliceRows * lengths[0]};
  std::int64_t longer = 0;  // entries of the rows before k
  for (int k = 1; k <= kSliceRows; ++k) {
    longer += lengths[k - 1];
    const std::int64_t width = k < kSliceRows ? lengths[k] : 0;
    const std::int64_t cost = kSliceRows * width + longer - k * width + k * kTailCost;
    if (cost < best.cost) best = {width, cost};
  }
  return best;
}

}  // namespace cpufree
