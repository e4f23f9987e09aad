// Kernels that lay a matrix out on its GPUs: what slices of rows take, and rows sorted by length
// within windows (problem/blocks/length_windows.hpp says why).
#pragma once

#include <cstdint>

#include "cpufree/formats/layout/rows.hpp"
#include "cpufree/problem/blocks/slice_cost.hpp"

namespace cpufree::layout {

inline constexpr int kMostOfNode = 8;   // rows that a window's end is moved by, at most
inline constexpr int kLanesOfLong = 4;  // that share a row

// Where windows would begin: some `window` rows apart, and not within a node's.
template <class T>
struct FindSeams {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
  std::int32_t interior = 0;
  std::int32_t window = 1;
  std::int64_t count = 0;  // of seams
  std::int32_t* begin = nullptr;

  CPUFREE_KERNEL_FN bool same_columns(std::int32_t a, std::int32_t b) const {
    const std::int64_t length = ptr[a + 1] - ptr[a];
    if (ptr[b + 1] - ptr[b] != length) return false;
    for (std::int64_t k = 0; k < length; ++k)
      if (col[ptr[a] + k] != col[ptr[b] + k]) return false;
    return true;
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t k) {
      auto seam = static_cast<std::int32_t>(window * (k + 1));
      for (int by = 1; by < kMostOfNode && seam < interior && same_columns(seam - 1, seam); ++by)
        ++seam;
      begin[k] = seam;
    });
  }
};

// Sorts the rows of each window by length: longest first in even ones, shortest first in odd ones;
// rows of one length keep their sequence. Counts the entries of slices before and after, a lane for
// each row and kLanesOfLong: entries[4 w + 0, 1, 2, 3].
template <class T>
struct SortWindows {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* begin = nullptr;  // windows + 1
  std::int64_t windows = 0;
  std::int32_t* order = nullptr;
  std::int64_t* entries = nullptr;

  CPUFREE_KERNEL_FN std::int64_t length(std::int32_t row) const { return ptr[row + 1] - ptr[row]; }

  CPUFREE_KERNEL_FN std::int64_t taken(std::int32_t first, std::int32_t end, int lanes) const {
    const std::int32_t of_slice = kSliceRows / lanes;
    std::int64_t all = 0;
    for (std::int32_t from = first; from < end; from += of_slice) {
      std::int64_t lengths[kSliceRows] = {};
      std::int64_t longest = 0;
      for (std::int32_t k = from; k < from + of_slice && k < end; ++k) {
        lengths[k - from] = length(order[k]);
        longest = lengths[k - from] > longest ? lengths[k - from] : longest;
      }
      all +=
          lanes > 1 ? (longest + lanes - 1) / lanes * kSliceRows : best_slice_width(lengths).cost;
    }
    return all;
  }
  CPUFREE_KERNEL_FN void sort(std::int32_t first, std::int32_t end, bool longest_first) const {
    for (std::int32_t k = first + 1; k < end; ++k) {
      const std::int32_t row = order[k];
      const std::int64_t own = length(row);
      std::int32_t place = k;
      for (; place > first; --place) {
        const std::int64_t before = length(order[place - 1]);
        if (longest_first ? before >= own : before <= own) break;
        order[place] = order[place - 1];
      }
      order[place] = row;
    }
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, windows, [&](std::int64_t w) {
      const std::int32_t first = begin[w], end = begin[w + 1];
      for (std::int32_t k = first; k < end; ++k) order[k] = k;
      std::int64_t* const count = entries + 4 * w;
      count[0] = taken(first, end, 1);
      count[2] = taken(first, end, kLanesOfLong);
      sort(first, end, w % 2 == 0);
      count[1] = taken(first, end, 1);
      count[3] = taken(first, end, kLanesOfLong);
    });
  }
};

// What slices of rows [begin, end) take.
template <class T>
struct CostSlices {
  const std::int64_t* ptr = nullptr;
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int64_t* cost = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, (end - begin + kSliceRows - 1) / kSliceRows, [&](std::int64_t s) {
      const std::int64_t first = begin + s * kSliceRows;
      std::int64_t lengths[kSliceRows] = {};
      for (std::int64_t k = 0; k < kSliceRows && first + k < end; ++k)
        lengths[k] = ptr[first + k + 1] - ptr[first + k];
      cost[s] = best_slice_width(lengths).cost;
    });
  }
};

}  // namespace cpufree::layout
