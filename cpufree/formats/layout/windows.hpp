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

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t k) {
      auto seam = static_cast<std::int32_t>(window * (k + 1));
      for (int by = 1;
           by < kMostOfNode && seam < interior && same_columns(ptr, col, seam - 1, seam); ++by)
        ++seam;
      begin[k] = seam;
    });
  }
};

// Sorts the rows of each window by length: longest first in even ones, shortest first in odd ones;
// rows of one length keep their sequence. Each row counts those before it: a thread for each has
// less to do than one that sorts a window.
template <class T>
struct SortWindows {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* begin = nullptr;  // windows + 1
  std::int32_t windows = 0;
  std::int32_t window = 1;  // as in FindSeams
  std::int32_t interior = 0;
  std::int32_t* order = nullptr;

  CPUFREE_KERNEL_FN std::int64_t length(std::int32_t row) const { return ptr[row + 1] - ptr[row]; }

  // Windows begin behind their multiples of `window`.
  CPUFREE_KERNEL_FN std::int32_t window_of(std::int32_t row) const {
    const std::int32_t w = row / window < windows ? row / window : windows - 1;
    return begin[w] <= row ? w : w - 1;
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, interior, [&](std::int64_t item) {
      const auto row = static_cast<std::int32_t>(item);
      const std::int32_t w = window_of(row);
      const std::int64_t own = length(row);
      std::int32_t place = begin[w];
      for (std::int32_t other = begin[w]; other < begin[w + 1]; ++other) {
        const std::int64_t of_other = length(other);
        const bool before = w % 2 == 0 ? of_other > own : of_other < own;
        if (before || (of_other == own && other < row)) ++place;
      }
      order[place] = row;
    });
  }
};

// Counts the entries of slices of windows, in the order of the rows or in another one, a lane for
// each row and kLanesOfLong: entries[2 w + 0, 1] of window w, zeroed before. A thread has the rows
// of a slice.
template <class T>
struct CountWindows {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* order = nullptr;  // null: that of the rows
  const std::int32_t* begin = nullptr;  // windows + 1
  std::int64_t windows = 0;
  std::int64_t parts = 1;  // slices of a window, at most
  std::uint64_t* entries = nullptr;

  CPUFREE_KERNEL_FN void count(std::int32_t from, std::int32_t end, std::uint64_t& alone,
                               std::uint64_t& shared) const {
    std::int64_t lengths[kSliceRows] = {};
    std::int64_t longest = 0;  // of the rows of a slice whose lanes share rows
    for (std::int32_t k = 0; k < kSliceRows && from + k < end; ++k) {
      const std::int32_t r = order == nullptr ? from + k : order[from + k];
      lengths[k] = ptr[r + 1] - ptr[r];
      longest = lengths[k] > longest ? lengths[k] : longest;
      if ((k + 1) % (kSliceRows / kLanesOfLong) != 0 && from + k + 1 < end) continue;
      shared +=
          static_cast<std::uint64_t>((longest + kLanesOfLong - 1) / kLanesOfLong * kSliceRows);
      longest = 0;
    }
    alone += static_cast<std::uint64_t>(best_slice_width(lengths).cost);
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, windows * parts, [&](std::int64_t item) {
      const std::int64_t w = item / parts;
      const auto from = static_cast<std::int32_t>(begin[w] + item % parts * kSliceRows);
      if (from >= begin[w + 1]) return;
      std::uint64_t alone = 0, shared = 0;
      count(from, begin[w + 1], alone, shared);
      port.add(&entries[2 * w], alone);
      port.add(&entries[2 * w + 1], shared);
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
