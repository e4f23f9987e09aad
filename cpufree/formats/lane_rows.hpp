// Which rows a slice has, and which of their entries each of its lanes. For host and kernels.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/problem/blocks/slice_rows.hpp"
#include "cpufree/problem/row_range.hpp"

namespace cpufree {

// Rows, 2^lanes_log2 lanes for each, 32 / 2^thin for a warp at a time (WarpSlices::Rows). Lanes
// that share a row have `run` of its entries in turn, kRun or 1.
struct LaneRows : RowRange {
  std::int32_t lanes_log2 = 0;
  std::int32_t thin = 0;
  std::int32_t run = 1;

  constexpr std::int32_t rows_of_slice() const { return kSliceRows >> lanes_log2; }
  constexpr std::int32_t slices() const { return (size() + rows_of_slice() - 1) / rows_of_slice(); }
  // Slices that a warp takes at a time, and how often one does.
  constexpr std::int32_t slices_in_turn() const { return 1 << (lanes_log2 - thin); }
  constexpr std::int32_t turns() const {
    return (slices() + slices_in_turn() - 1) / slices_in_turn();
  }
  // The rows of slice k.
  constexpr LaneRows of_slice(std::int32_t k) const {
    LaneRows rows = *this;
    rows.begin += k * rows_of_slice();
    rows.end = rows.begin + rows_of_slice() < end ? rows.begin + rows_of_slice() : end;
    return rows;
  }
};

// The entries of a lane of a slice: `count` of its row's, from `first` on, `run` in turn that begin
// `step` apart. Lanes behind the last row's have none.
struct LaneEntries {
  std::int32_t row = 0;
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::int64_t run = 1;
  std::int64_t count = 0;

  CPUFREE_FN std::int64_t entry(std::int64_t k) const { return first + k / run * step + k % run; }
};

// `source.begin_of(row)`: where the entries of a row begin, those of the row before end.
template <class Source>
CPUFREE_FN LaneEntries lane_entries(const Source& source, const LaneRows& rows, int l) {
  const std::int32_t row = rows.begin + (l >> rows.lanes_log2);
  if (row >= rows.end) return {rows.end - 1};
  const std::int64_t lanes = std::int64_t{1} << rows.lanes_log2;
  const std::int64_t run = rows.lanes_log2 == 0 ? 1 : rows.run;
  const std::int64_t step = lanes * run;
  const std::int64_t begin = source.begin_of(row);
  const std::int64_t length = source.begin_of(row + 1) - begin;
  const std::int64_t before = l % lanes * run;  // of a turn, those of other lanes
  std::int64_t last = length % step - before;
  last = last < 0 ? 0 : last > run ? run : last;
  return {row, begin + before, step, run, length / step * run + last};
}

}  // namespace cpufree
