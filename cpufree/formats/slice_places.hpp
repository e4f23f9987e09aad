// Which entries of a matrix lie where in a slice, and the bytes that they take (host code).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/warp_slices_build.hpp"

namespace cpufree {

// The entries of a lane of a slice: `count` of its row's, from `first` on, `run` in turn that begin
// `step` apart. Lanes behind the last row's have none.
struct LaneEntries {
  std::int32_t row = 0;
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::int64_t run = 1;
  std::int64_t count = 0;

  std::int64_t entry(std::int64_t k) const { return first + k / run * step + k % run; }
};

template <class T>
LaneEntries lane_entries(const LocalSystem<T>& local, const LaneRows& rows, int l) {
  const std::int32_t row = rows.begin + (l >> rows.lanes_log2);
  if (row >= rows.end) return {rows.end - 1};
  const std::int64_t lanes = std::int64_t{1} << rows.lanes_log2;
  const std::int64_t run = rows.lanes_log2 == 0 ? 1 : rows.run;
  const std::int64_t step = lanes * run;
  const std::int64_t length = local.row_ptr[at(row) + 1] - local.row_ptr[at(row)];
  const std::int64_t before = l % lanes * run;  // of a turn, those of other lanes
  const std::int64_t last = std::clamp<std::int64_t>(length % step - before, 0, run);
  return {row, local.row_ptr[at(row)] + before, step, run, length / step * run + last};
}

// Calls f(lane, k, entry or -1 for padding, column) for all places of a slice. Padding reads a
// column that the row reads anyway, so that it has arrived when the row is summed, or the row
// itself.
template <class T, class F>
void each_place(const ShareSource<T>& source, const LaneRows& rows, std::int64_t width, F&& f) {
  for (int l = 0; l < kSliceRows; ++l) {
    const LaneEntries of = lane_entries(source.local, rows, l);
    std::int32_t last = source.name(of.row);
    for (std::int64_t k = 0; k < width; ++k) {
      const std::int64_t entry = k < of.count ? of.entry(k) : -1;
      if (entry >= 0) last = source.column(entry);
      f(l, k, entry, last);
    }
  }
}

// The first column of the run that begins with entry k of a lane's; none if it is no run.
template <class T>
std::optional<std::int32_t> run_at(const ShareSource<T>& source, const LaneEntries& of,
                                   std::int64_t k) {
  if (k + kRun > of.count) return {};
  const std::int32_t first = source.column(of.entry(k));
  for (std::int32_t q = 1; q < kRun; ++q)
    if (source.column(of.entry(k + q)) != first + q) return {};
  return first;
}

// Calls f(lane, k, first entry or -1 for padding, first column) for all runs of a slice. Padding
// reads the last run of the lane, or one of another row, whose sum the warp has at the same time.
// False: not all entries come in runs, or there are none.
template <class T, class F>
bool each_run(const ShareSource<T>& source, const LaneRows& rows, std::int64_t width, F&& f) {
  if (width % kRun != 0) return false;
  std::optional<std::int32_t> any;
  for (int l = 0; l < kSliceRows && !any; ++l)
    any = run_at(source, lane_entries(source.local, rows, l), 0);
  if (!any) return false;
  for (int l = 0; l < kSliceRows; ++l) {
    const LaneEntries of = lane_entries(source.local, rows, l);
    std::int32_t last = *any;
    for (std::int64_t k = 0; k < width; k += kRun) {
      if (k < of.count) {
        const auto column = run_at(source, of, k);
        if (!column) return false;
        last = *column;
      }
      f(l, k, k < of.count ? of.entry(k) : -1, last);
    }
  }
  return true;
}

// Bytes of a slice.
template <class T>
std::int64_t bytes_of(const WarpSlice& slice, bool coded_values) {
  const bool coded = slice.code != ColumnCode::plain;
  const std::int64_t columns = in_runs(slice.code) ? slice.width / kRun : slice.width;
  const std::int64_t value = coded && coded_values ? 1 : sizeof(T);
  return std::int64_t{kSliceRows} * (columns * (coded ? 2 : 4) + slice.width * value);
}

}  // namespace cpufree
