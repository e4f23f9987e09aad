// How wide a slice is, and how its columns are stored. For host and kernels.
#pragma once

#include <cstdint>
#include <limits>

#include "cpufree/formats/slices/slice_places.hpp"
#include "cpufree/problem/blocks/slice_cost.hpp"

namespace cpufree {

inline constexpr std::int32_t kNoWindow = 0x7fffffff;  // of no column

// The windows that columns fall into: their halves, sorted.
class SliceWindows {
 public:
  CPUFREE_FN void add(std::int32_t column) {
    const std::int32_t bucket = column >> kBucketBits;
    if (bucket == last_ || count_ > kMost) return;
    last_ = bucket;
    int place = count_;
    while (place > 0 && buckets_[place - 1] >= bucket) --place;
    if (place < count_ && buckets_[place] == bucket) return;
    for (int k = count_; k > place; --k) buckets_[k] = buckets_[k - 1];
    buckets_[place] = bucket;
    ++count_;
  }
  // Sets the bases. False: there are more windows than a code can tell apart.
  CPUFREE_FN bool place(WarpSlice& slice) const {
    if (count_ > kMost) return false;
    int window = 0;
    for (int k = 0; k < count_; ++window) {
      if (window == kWindows) return false;
      const std::int32_t first = buckets_[k];
      slice.base[window] = first << kBucketBits;
      while (k < count_ && buckets_[k] <= first + 1) ++k;
    }
    // Unused ones are of no column.
    for (; window < kWindows; ++window) slice.base[window] = kNoWindow;
    return true;
  }

 private:
  static constexpr int kBucketBits = kWindowBits - 1;  // a window covers two
  static constexpr int kMost = 2 * kWindows;
  std::int32_t buckets_[kMost + 1] = {};
  int count_ = 0;
  std::int32_t last_ = -1;
};

// The columns of a slice, as far as codes depend on them.
struct ColumnRange {
  std::int32_t least = 0x7fffffff;
  std::int32_t most = 0;
  SliceWindows windows;

  CPUFREE_FN void add(std::int32_t column) {
    least = column < least ? column : least;
    most = column > most ? column : most;
    windows.add(column);
  }
  // Whether distances from the base are 16 bits.
  CPUFREE_FN bool near() const { return most - least <= kFarthest; }
  CPUFREE_FN std::int32_t base() const { return most <= kFarthest ? 0 : least; }

 private:
  static constexpr std::int32_t kFarthest = 0xffff;
};

// As runs of nodes: the same windows reach three times as far. False: that cannot be.
template <class Source>
CPUFREE_FN bool choose_node_runs(const Source& source, const LaneRows& rows, std::int32_t least,
                                 WarpSlice& slice) {
  const std::int32_t rest = least % kRun;
  bool whole = true;
  SliceWindows windows;
  each_run(source, rows, slice.width, [&](int, std::int64_t, std::int64_t, std::int32_t first) {
    whole = whole && first % kRun == rest;
    windows.add(first / kRun);
  });
  if (!whole || !windows.place(slice)) return false;
  slice.code = ColumnCode::node_runs;
  for (std::int32_t& base : slice.base)
    if (base < kNoWindow) base = kRun * base + rest;
  return true;
}

// As runs, if it can be done.
template <class Source>
CPUFREE_FN bool choose_runs(const Source& source, const LaneRows& rows, WarpSlice& slice) {
  WarpSlice coded = slice;
  ColumnRange range;
  const auto add = [&](int, std::int64_t, std::int64_t, std::int32_t first) { range.add(first); };
  if (!each_run(source, rows, slice.width, add)) return false;
  coded.code = ColumnCode::runs;
  if (range.near()) {
    for (std::int64_t w = 0; w < kWindows; ++w) {
      const std::int64_t base = range.base() + (w << kWindowBits);
      coded.base[w] = base < kNoWindow ? static_cast<std::int32_t>(base) : kNoWindow;
    }
  } else if (!range.windows.place(coded) && !choose_node_runs(source, rows, range.least, coded)) {
    return false;
  }
  slice = coded;
  return true;
}

// Chooses the code of columns that takes least, and its bases; `runs`: columns in runs, too.
template <class Source>
CPUFREE_FN void choose_code(const Source& source, const LaneRows& rows, bool runs,
                            WarpSlice& slice) {
  if (slice.width == 0) return;
  if (runs && choose_runs(source, rows, slice)) return;
  WarpSlice coded = slice;
  ColumnRange range;
  each_place(source, rows, coded.width,
             [&](int, std::int64_t, std::int64_t, std::int32_t column) { range.add(column); });
  if (range.near()) {
    coded.code = ColumnCode::near;
    coded.base[0] = range.base();
  } else if (range.windows.place(coded)) {
    coded.code = ColumnCode::far;
  }
  if (coded.code != ColumnCode::plain) slice = coded;
}

// What may be coded, and whether slices may be narrower than their longest rows.
struct Codes {
  bool columns = true;
  bool values = true;  // only where columns are
  bool runs = true;    // the same
  bool tails = true;
  // Values as they are in single precision; the slices that have some are listed in full besides,
  // as tails of all their entries.
  bool single = false;
};

// Sets width and code of a slice of these rows. Returns the entries that its lanes have beyond that
// width.
template <class Source>
CPUFREE_FN std::int64_t choose_slice(const Source& source, const LaneRows& rows, const Codes& codes,
                                     WarpSlice& slice) {
  std::int64_t length[kSliceRows] = {};
  std::int64_t longest = 0;
  for (int l = 0; l < kSliceRows; ++l) {
    length[l] = lane_entries(source, rows, l).count;
    longest = length[l] > longest ? length[l] : longest;
  }
  slice.width = static_cast<std::int32_t>(codes.tails ? best_slice_width(length).width : longest);
  if (codes.columns) choose_code(source, rows, codes.runs, slice);
  std::int64_t beyond = 0;
  for (int l = 0; l < kSliceRows; ++l)
    if (length[l] > slice.width) beyond += length[l] - slice.width;
  return beyond;
}

// A column, or the first one of a run, in the slice's code, which is not plain.
CPUFREE_FN std::uint32_t code_of(const WarpSlice& slice, std::int32_t column) {
  if (slice.code == ColumnCode::near) return static_cast<std::uint32_t>(column - slice.base[0]);
  const std::int32_t step = window_step(slice.code);
  std::uint32_t window = 0;
  while (column < slice.base[window] || (column - slice.base[window]) / step >= 1 << kWindowBits)
    ++window;
  return window << kWindowBits | static_cast<std::uint32_t>((column - slice.base[window]) / step);
}

}  // namespace cpufree
