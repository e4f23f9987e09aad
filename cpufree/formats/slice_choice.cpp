#include "cpufree/formats/slice_choice.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/slice_places.hpp"

namespace cpufree {

namespace {

constexpr std::int32_t kNoWindow = std::numeric_limits<std::int32_t>::max();

// The windows that columns fall into.
class Windows {
 public:
  void add(std::int32_t column) {
    const std::int32_t bucket = column >> kBucketBits;
    if (bucket == last_ || count_ > kMost) return;
    last_ = bucket;
    const auto end = buckets_.begin() + count_;
    const auto place = std::lower_bound(buckets_.begin(), end, bucket);
    if (place != end && *place == bucket) return;
    std::copy_backward(place, end, end + 1);
    *place = bucket;
    ++count_;
  }
  // Sets the bases. False: there are more windows than a code can tell apart.
  bool place(WarpSlice& slice) const {
    if (count_ > kMost) return false;
    int window = 0;
    for (std::ptrdiff_t k = 0; k < count_; ++window) {
      if (window == kWindows) return false;
      const std::int32_t first = buckets_[at(k)];
      slice.base[window] = first << kBucketBits;
      while (k < count_ && buckets_[at(k)] <= first + 1) ++k;
    }
    // Unused ones are of no column.
    for (; window < kWindows; ++window) slice.base[window] = kNoWindow;
    return true;
  }

 private:
  static constexpr int kBucketBits = kWindowBits - 1;  // a window covers two
  static constexpr std::ptrdiff_t kMost = 2 * kWindows;
  std::array<std::int32_t, at(kMost) + 1> buckets_{};
  std::ptrdiff_t count_ = 0;
  std::int32_t last_ = -1;
};

// The columns of a slice, as far as codes depend on them.
struct ColumnRange {
  std::int32_t least = std::numeric_limits<std::int32_t>::max();
  std::int32_t most = 0;
  Windows windows;

  void add(std::int32_t column) {
    least = std::min(least, column);
    most = std::max(most, column);
    windows.add(column);
  }
  // Whether distances from the base are 16 bits.
  bool near() const { return most - least <= kFarthest; }
  std::int32_t base() const { return most <= kFarthest ? 0 : least; }

 private:
  static constexpr std::int32_t kFarthest = std::numeric_limits<std::uint16_t>::max();
};

// As runs, if it can be done.
template <class T>
bool choose_runs(const ShareSource<T>& source, const LaneRows& rows, WarpSlice& slice) {
  WarpSlice coded = slice;
  ColumnRange range;
  const auto add = [&](int, std::int64_t, std::int64_t, std::int32_t first) { range.add(first); };
  if (!each_run(source, rows, slice.width, add)) return false;
  coded.code = ColumnCode::runs;
  if (range.near()) {
    for (std::int64_t w = 0; w < kWindows; ++w)
      coded.base[w] = static_cast<std::int32_t>(
          std::min<std::int64_t>(range.base() + (w << kWindowBits), kNoWindow));
  } else if (!range.windows.place(coded)) {
    // Of nodes: the same windows reach three times as far.
    const std::int32_t rest = range.least % kRun;
    bool whole = true;
    Windows windows;
    each_run(source, rows, slice.width, [&](int, std::int64_t, std::int64_t, std::int32_t first) {
      whole = whole && first % kRun == rest;
      windows.add(first / kRun);
    });
    if (!whole || !windows.place(coded)) return false;
    coded.code = ColumnCode::node_runs;
    for (std::int32_t& base : coded.base)
      if (base < kNoWindow) base = kRun * base + rest;
  }
  slice = coded;
  return true;
}

}  // namespace

template <class T>
void choose_code(const ShareSource<T>& source, const LaneRows& rows, WarpSlice& slice) {
  if (!source.codes.columns || slice.width == 0) return;
  if (source.codes.runs && choose_runs(source, rows, slice)) return;
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

std::uint32_t code_of(const WarpSlice& slice, std::int32_t column) {
  if (slice.code == ColumnCode::near) return static_cast<std::uint32_t>(column - slice.base[0]);
  const std::int32_t step = window_step(slice.code);
  std::uint32_t window = 0;
  while (column < slice.base[window] || (column - slice.base[window]) / step >= 1 << kWindowBits)
    ++window;
  return window << kWindowBits | static_cast<std::uint32_t>((column - slice.base[window]) / step);
}

template void choose_code(const ShareSource<float>&, const LaneRows&, WarpSlice&);
template void choose_code(const ShareSource<double>&, const LaneRows&, WarpSlice&);

}  // namespace cpufree
