// Which entries of a matrix lie where in a slice, and the bytes that they take. For host and
// kernels: `Source` is a ShareSource, or what kernels have in its place.
#pragma once

#include <cstdint>

#include "cpufree/formats/lane_rows.hpp"
#include "cpufree/formats/warp_slices.hpp"

namespace cpufree {

// Calls f(k, entry or -1 for padding, column) for all places of a lane. Padding reads a column that
// the row reads anyway, so that it has arrived when the row is summed, or source.name(row).
template <class Source, class F>
CPUFREE_FN void each_place_of(const Source& source, const LaneRows& rows, std::int64_t width, int l,
                              F&& f) {
  const LaneEntries of = lane_entries(source, rows, l);
  std::int32_t last = source.name(of.row);
  for (std::int64_t k = 0; k < width; ++k) {
    const std::int64_t entry = k < of.count ? of.entry(k) : -1;
    if (entry >= 0) last = source.column(entry);
    f(k, entry, last);
  }
}

// Calls f(lane, k, entry or -1 for padding, column) for all places of a slice.
template <class Source, class F>
CPUFREE_FN void each_place(const Source& source, const LaneRows& rows, std::int64_t width, F&& f) {
  for (int l = 0; l < kSliceRows; ++l)
    each_place_of(
        source, rows, width, l,
        [&](std::int64_t k, std::int64_t entry, std::int32_t column) { f(l, k, entry, column); });
}

inline constexpr std::int32_t kNoRun = -1;

// The first column of the run that begins with entry k of a lane's; kNoRun if it is none.
template <class Source>
CPUFREE_FN std::int32_t run_at(const Source& source, const LaneEntries& of, std::int64_t k) {
  if (k + kRun > of.count) return kNoRun;
  const std::int32_t first = source.column(of.entry(k));
  for (std::int32_t q = 1; q < kRun; ++q)
    if (source.column(of.entry(k + q)) != first + q) return kNoRun;
  return first;
}

// The first run of the slice's lanes; kNoRun if there is none.
template <class Source>
CPUFREE_FN std::int32_t any_run(const Source& source, const LaneRows& rows) {
  std::int32_t any = kNoRun;
  for (int l = 0; l < kSliceRows && any == kNoRun; ++l)
    any = run_at(source, lane_entries(source, rows, l), 0);
  return any;
}

// Calls f(k, first entry or -1 for padding, first column) for all runs of a lane. Padding reads the
// last run of the lane, or one of another row, `any`, whose sum the warp has at the same time.
// False: not all entries come in runs.
template <class Source, class F>
CPUFREE_FN bool each_run_of(const Source& source, const LaneRows& rows, std::int64_t width, int l,
                            std::int32_t any, F&& f) {
  const LaneEntries of = lane_entries(source, rows, l);
  std::int32_t last = any;
  for (std::int64_t k = 0; k < width; k += kRun) {
    if (k < of.count) {
      const std::int32_t column = run_at(source, of, k);
      if (column == kNoRun) return false;
      last = column;
    }
    f(k, k < of.count ? of.entry(k) : -1, last);
  }
  return true;
}

// Calls f(lane, k, first entry or -1 for padding, first column) for all runs of a slice. False: not
// all entries come in runs, or there are none.
template <class Source, class F>
CPUFREE_FN bool each_run(const Source& source, const LaneRows& rows, std::int64_t width, F&& f) {
  if (width % kRun != 0) return false;
  const std::int32_t any = any_run(source, rows);
  if (any == kNoRun) return false;
  for (int l = 0; l < kSliceRows; ++l) {
    const bool runs = each_run_of(
        source, rows, width, l, any,
        [&](std::int64_t k, std::int64_t run, std::int32_t column) { f(l, k, run, column); });
    if (!runs) return false;
  }
  return true;
}

// Whether all entries of a row come in runs.
template <class Source>
CPUFREE_FN bool row_in_runs(const Source& source, std::int32_t row) {
  const LaneEntries of = lane_entries(source, {{row, row + 1}}, 0);
  for (std::int64_t k = 0; k < of.count; k += kRun)
    if (run_at(source, of, k) == kNoRun) return false;
  return true;
}

// Bytes of a slice, values of `value_bytes` as they are.
CPUFREE_FN std::int64_t slice_bytes(const WarpSlice& slice, bool coded_values,
                                    std::int64_t value_bytes) {
  const bool coded = slice.code != ColumnCode::plain;
  const std::int64_t columns = in_runs(slice.code) ? slice.width / kRun : slice.width;
  const std::int64_t value = coded && coded_values ? 1 : value_bytes;
  return std::int64_t{kSliceRows} * (columns * (coded ? 2 : 4) + slice.width * value);
}
template <class T>
CPUFREE_FN std::int64_t bytes_of(const WarpSlice& slice, bool coded_values) {
  return slice_bytes(slice, coded_values, sizeof(T));
}

}  // namespace cpufree
