#include "cpufree/solvers/warp_slices_build.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/problem/slice_width.hpp"

namespace cpufree {

static_assert(kSliceRows == kWarp);

namespace {

// No multiprocessor has more shared memory.
constexpr std::int64_t kMostOnChip = 256 * 1024;

// The different values of a share, told apart by their bits, with their numbers.
template <class T>
class Dictionary {
 public:
  Dictionary() { add(T{0}); }  // padding is zero
  explicit Dictionary(const std::vector<double>& values) {
    for (const double value : values) add(static_cast<T>(value));
  }

  // The number of a value, new or not; none where that would be one too many.
  std::optional<std::uint8_t> add(T value) {
    const Bits bits = std::bit_cast<Bits>(value);
    std::size_t place = hash(bits);
    for (; table_[place] != kEmpty; place = (place + 1) % kPlaces)
      if (std::bit_cast<Bits>(values_[at(table_[place])]) == bits)
        return static_cast<std::uint8_t>(table_[place]);
    if (values_.size() == kMostValues) return {};
    table_[place] = static_cast<std::int16_t>(values_.size());
    values_.push_back(value);
    return static_cast<std::uint8_t>(table_[place]);
  }
  const std::vector<T>& values() const { return values_; }

 private:
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr std::size_t kPlaces = 4 * kMostValues;
  static constexpr std::int16_t kEmpty = -1;
  static std::size_t hash(Bits bits) {
    return (std::uint64_t{bits} * 0x9e3779b97f4a7c15U >> 40U) % kPlaces;
  }

  std::vector<T> values_;
  std::array<std::int16_t, kPlaces> table_ = [] {
    std::array<std::int16_t, kPlaces> empty{};
    empty.fill(kEmpty);
    return empty;
  }();
};

// The dictionary of the rows; empty where they have too many values, none, or NaN.
template <class T>
std::vector<double> find_dictionary(const LocalSystem<T>& local,
                                    const std::vector<SpreadRows>& ranges) {
  Dictionary<T> dictionary;
  std::int64_t entries = 0;
  for (const SpreadRows& range : ranges)
    for (std::int64_t k = local.row_ptr[at(range.begin)]; k < local.row_ptr[at(range.end)]; ++k) {
      const T value = local.val[at(k)];
      // NaNs differ in bits that a conversion may change.
      if (value != value || !dictionary.add(value)) return {};
      ++entries;
    }
  if (entries == 0) return {};
  return {dictionary.values().begin(), dictionary.values().end()};
}

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
LaneEntries lane_entries(const LocalSystem<T>& local, const SpreadRows& rows, int l) {
  const std::int32_t row = rows.begin + (l >> rows.spread);
  if (row >= rows.end) return {rows.end - 1};
  const std::int64_t lanes = std::int64_t{1} << rows.spread;
  const std::int64_t run = rows.spread == 0 ? 1 : rows.run;
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
void each_place(const ShareSource<T>& source, const SpreadRows& rows, std::int64_t width, F&& f) {
  for (int l = 0; l < kWarp; ++l) {
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
bool each_run(const ShareSource<T>& source, const SpreadRows& rows, std::int64_t width, F&& f) {
  if (width % kRun != 0) return false;
  std::optional<std::int32_t> any;
  for (int l = 0; l < kWarp && !any; ++l)
    any = run_at(source, lane_entries(source.local, rows, l), 0);
  if (!any) return false;
  for (int l = 0; l < kWarp; ++l) {
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

std::uint32_t code_of(const WarpSlice& slice, std::int32_t column) {
  if (slice.code == ColumnCode::near) return static_cast<std::uint32_t>(column - slice.base[0]);
  const std::int32_t step = window_step(slice.code);
  std::uint32_t window = 0;
  while (column < slice.base[window] || (column - slice.base[window]) / step >= 1 << kWindowBits)
    ++window;
  return window << kWindowBits | static_cast<std::uint32_t>((column - slice.base[window]) / step);
}

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
bool choose_runs(const ShareSource<T>& source, const SpreadRows& rows, WarpSlice& slice) {
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

// Chooses how the columns of a slice are stored.
template <class T>
void choose_code(const ShareSource<T>& source, const SpreadRows& rows, WarpSlice& slice) {
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

// What a slice's code would be in a simple share.
Simple simple_code(const WarpSlice& slice) {
  if (slice.base[0] != 0) return Simple::no;
  if (slice.code == ColumnCode::near) return Simple::columns;
  const bool one_window = slice.base[kWindows - 1] == (kWindows - 1) << kWindowBits;
  return slice.code == ColumnCode::runs && one_window ? Simple::runs : Simple::no;
}

// Bytes of a slice.
template <class T>
std::int64_t bytes_of(const WarpSlice& slice, bool coded_values) {
  const bool coded = slice.code != ColumnCode::plain;
  const std::int64_t columns = in_runs(slice.code) ? slice.width / kRun : slice.width;
  const std::int64_t value = coded && coded_values ? 1 : sizeof(T);
  return std::int64_t{kWarp} * (columns * (coded ? 2 : 4) + slice.width * value);
}

template <class T>
void append_slice(const ShareSource<T>& source, const SpreadRows& rows, WarpSliceShape& shape) {
  std::array<std::int64_t, kWarp> length{};
  for (int l = 0; l < kWarp; ++l) length[at(l)] = lane_entries(source.local, rows, l).count;
  WarpSlice slice;
  slice.first = static_cast<std::uint32_t>(shape.units);
  slice.width = static_cast<std::int32_t>(best_slice_width(length).width);
  choose_code(source, rows, slice);
  if (std::ranges::any_of(length, [&](std::int64_t count) { return count > slice.width; })) {
    slice.tails = static_cast<std::int32_t>(shape.tail_ptr.size());
    shape.tail_ptr.push_back(shape.tail_entries);
    for (const std::int64_t count : length) {
      shape.tail_entries += std::max<std::int64_t>(count - slice.width, 0);
      shape.tail_ptr.push_back(shape.tail_entries);
    }
  }
  shape.units += (bytes_of<T>(slice, !shape.dictionary.empty()) + kSliceUnit - 1) / kSliceUnit;
  shape.slice.push_back(slice);
  shape.rows.push_back(rows);
}

template <class T>
void append_slices(const ShareSource<T>& source, const std::vector<SpreadRows>& ranges,
                   WarpSliceShape& shape) {
  for (const SpreadRows& range : ranges) {
    const std::int32_t most = kWarp >> range.spread;
    for (std::int32_t begin = range.begin; begin < range.end; begin += most)
      append_slice(
          source, {{begin, std::min(begin + most, range.end)}, range.spread, range.thin, range.run},
          shape);
  }
}

// Writes one slice, all places of which are known by number.
template <class T>
class SliceWriter {
 public:
  SliceWriter(const WarpSlice& slice, Dictionary<T>* dictionary, std::byte* to)
      : slice_(slice),
        coded_(slice.code != ColumnCode::plain),
        dictionary_(coded_ ? dictionary : nullptr),
        to_(to) {}

  // Entry k of row l. Of a run, the first one's column counts.
  void put(int l, std::int64_t k, std::int32_t column, T value) const {
    if (in_runs(slice_.code)) return put_in_run(l, k, column, value);
    const std::int64_t first = k / kChunkWidth * kChunkWidth;  // of the chunk
    const std::int64_t n = std::min<std::int64_t>(slice_.width - first, kChunkWidth);
    const std::int64_t column_bytes = coded_ ? 2 : 4;
    const std::int64_t from = kWarp * first * (column_bytes + value_bytes());
    const std::int64_t place = place_of(l, k - first, n);
    if (coded_)
      store(place, static_cast<std::uint16_t>(code_of(slice_, column)), from);
    else
      store(place, column, from);
    put_value(place, value, from + kWarp * n * column_bytes);
  }

 private:
  std::int64_t value_bytes() const { return dictionary_ == nullptr ? sizeof(T) : 1; }
  void put_value(std::int64_t place, T value, std::int64_t from) const {
    if (dictionary_ == nullptr)
      store(place, value, from);
    else
      store(place, dictionary_->add(value).value(), from);
  }
  void put_in_run(int l, std::int64_t k, std::int32_t column, T value) const {
    const std::int64_t from = kWarp * (k / kRun) * (2 + kRun * value_bytes());
    const std::int64_t in_run = k % kRun;
    if (in_run == 0) store(l, static_cast<std::uint16_t>(code_of(slice_, column)), from);
    put_value(in_run < 2 ? 2 * l + in_run : 2 * kWarp + l, value, from + kWarp * 2);
  }
  // In a chunk of n: pairs if coded, and what is left over behind them.
  std::int64_t place_of(int l, std::int64_t k, std::int64_t n) const {
    if (!coded_ || k == n - n % 2) return kWarp * k + l;
    return 2 * (kWarp * (k / 2) + l) + k % 2;
  }
  template <class V>
  void store(std::int64_t place, V value, std::int64_t from) const {
    std::memcpy(to_ + from + place * static_cast<std::int64_t>(sizeof(V)), &value, sizeof(V));
  }

  const WarpSlice& slice_;
  bool coded_;
  Dictionary<T>* dictionary_;
  std::byte* to_;
};

// Entries of a row that travel together: those of the chunks of a portion.
template <class T>
std::int32_t portion_width(const WarpSliceShape& shape, const WarpSlice& slice) {
  WarpSlice chunk = slice;
  chunk.width = in_runs(slice.code) ? kRunWidth : kChunkWidth;
  const auto bytes = static_cast<int>(bytes_of<T>(chunk, !shape.dictionary.empty()));
  return chunk.width * chunks_of_portion(bytes);
}

// The item of the portion that begins with entry k of a slice's rows.
template <class T>
FeedItem item_of(const WarpSliceShape& shape, std::size_t s, std::int32_t k) {
  WarpSlice part = shape.slice[s];
  part.width = k;
  const bool coded_values = !shape.dictionary.empty();
  FeedItem item{part.first * static_cast<std::uint32_t>(kSliceUnit / kFeedGrain) +
                    static_cast<std::uint32_t>(bytes_of<T>(part, coded_values) / kFeedGrain),
                k == 0 ? static_cast<std::uint32_t>(s) + 1U : 0U};
  part.width = std::min(shape.slice[s].width - k, portion_width<T>(shape, part));
  item.what |= static_cast<std::uint32_t>(bytes_of<T>(part, coded_values) / kFeedGrain) << 24U;
  return item;
}

}  // namespace

template <class T>
SliceFeed feed_of(const WarpSliceShape& shape, const std::vector<SpreadRows>& ranges, int warps) {
  SliceFeed feed;
  require(shape.slice.size() <= at(kMostFeedSlices), "a block can have at most " +
                                                         std::to_string(kMostFeedSlices) +
                                                         " slices of 32 rows; use more GPUs");
  for (int w = 0; w < warps; ++w) {
    feed.first.push_back(static_cast<std::uint32_t>(feed.items.size()));
    std::int32_t begin = 0;  // of a range's slices
    for (const SpreadRows& range : ranges) {
      const std::int32_t end = begin + range.slices();
      const std::int32_t in_turn = range.slices_in_turn();
      for (std::int32_t turn = begin + w * in_turn; turn < end; turn += warps * in_turn)
        for (std::int32_t s = turn; s < std::min(turn + in_turn, end); ++s) {
          const WarpSlice& slice = shape.slice[at(s)];
          const std::int32_t step = portion_width<T>(shape, slice);
          std::int32_t k = 0;
          do feed.items.push_back(item_of<T>(shape, at(s), k));
          while ((k += step) < slice.width);
        }
      begin = end;
    }
  }
  feed.first.push_back(static_cast<std::uint32_t>(feed.items.size()));
  return feed;
}

template <class T>
std::int32_t slot_bytes(const WarpSliceShape& shape) {
  std::int64_t most = 0;
  for (WarpSlice part : shape.slice) {
    part.width = std::min(part.width, portion_width<T>(shape, part));
    most = std::max(most, bytes_of<T>(part, !shape.dictionary.empty()));
  }
  return static_cast<std::int32_t>((most + kSliceHead + kSliceUnit - 1) / kSliceUnit * kSliceUnit);
}

Simple WarpSliceShape::simple() const {
  if (!tail_ptr.empty()) return Simple::no;
  const auto is = [](Simple which) {
    return [which](const WarpSlice& s) { return s.width == 0 || simple_code(s) == which; };
  };
  if (std::ranges::all_of(slice, is(Simple::columns))) return Simple::columns;
  return std::ranges::all_of(slice, is(Simple::runs)) ? Simple::runs : Simple::no;
}

template <class T>
std::int32_t usual_run(const ShareSource<T>& source, RowRange rows) {
  std::int32_t in_runs = 0;
  for (std::int32_t row = rows.begin; row < rows.end; ++row) {
    const LaneEntries of = lane_entries(source.local, {{row, row + 1}}, 0);
    bool all = true;
    for (std::int64_t k = 0; k < of.count && all; k += kRun)
      all = run_at(source, of, k).has_value();
    in_runs += all ? 1 : 0;
  }
  return 10 * std::int64_t{in_runs} >= 9 * std::int64_t{rows.size()} ? kRun : 1;
}

template <class T>
WarpSliceShape shape_of(const ShareSource<T>& source, const std::vector<SpreadRows>& ranges) {
  WarpSliceShape shape;
  if (source.codes.columns && source.codes.values)
    shape.dictionary = find_dictionary(source.local, ranges);
  append_slices(source, ranges, shape);
  // Runs here and there: on chip a single code for all is worth more.
  if (shape.units * kSliceUnit <= kMostOnChip && shape.simple() == Simple::no &&
      std::ranges::any_of(shape.slice, [](const WarpSlice& s) { return in_runs(s.code); })) {
    WarpSliceShape single;
    single.dictionary = shape.dictionary;
    ShareSource<T> without = source;
    without.codes.runs = false;
    append_slices(without, ranges, single);
    if (single.simple() != Simple::no) return single;
  }
  return shape;
}

template <class T>
void fill_warp_slices(const ShareSource<T>& source, const WarpSliceShape& shape, std::size_t first,
                      std::size_t end, std::byte* to) {
  if (first == end) return;
  const std::int64_t origin = shape.slice[first].first;
  std::memset(to, 0, at((shape.end_of(end - 1) - origin) * kSliceUnit));
  Dictionary<T> dictionary(shape.dictionary);
  for (std::size_t s = first; s < end; ++s) {
    const WarpSlice& slice = shape.slice[s];
    const SliceWriter<T> writer(slice, shape.dictionary.empty() ? nullptr : &dictionary,
                                to + (slice.first - origin) * kSliceUnit);
    const auto put = [&](int l, std::int64_t k, std::int64_t entry, std::int32_t column) {
      writer.put(l, k, column, entry < 0 ? T{0} : source.local.val[at(entry)]);
    };
    if (!in_runs(slice.code))
      each_place(source, shape.rows[s], slice.width, put);
    else
      each_run(source, shape.rows[s], slice.width,
               [&](int l, std::int64_t k, std::int64_t run, std::int32_t column) {
                 for (int q = 0; q < kRun; ++q) put(l, k + q, run < 0 ? -1 : run + q, column);
               });
  }
}

template <class T>
void fill_tails(const ShareSource<T>& source, const WarpSliceShape& shape, std::int32_t* col,
                T* val) {
  for (std::size_t s = 0; s < shape.slice.size(); ++s) {
    if (shape.slice[s].tails < 0) continue;
    const std::int64_t* const tail = shape.tail_ptr.data() + shape.slice[s].tails;
    for (int l = 0; l < kWarp; ++l) {
      const LaneEntries of = lane_entries(source.local, shape.rows[s], l);
      for (std::int64_t to = tail[l]; to < tail[l + 1]; ++to) {
        const std::int64_t from = of.entry(shape.slice[s].width + to - tail[l]);
        col[to] = source.column(from);
        val[to] = source.local.val[at(from)];
      }
    }
  }
}

template std::int32_t usual_run(const ShareSource<float>&, RowRange);
template std::int32_t usual_run(const ShareSource<double>&, RowRange);
template SliceFeed feed_of<float>(const WarpSliceShape&, const std::vector<SpreadRows>&, int);
template SliceFeed feed_of<double>(const WarpSliceShape&, const std::vector<SpreadRows>&, int);
template std::int32_t slot_bytes<float>(const WarpSliceShape&);
template std::int32_t slot_bytes<double>(const WarpSliceShape&);
template WarpSliceShape shape_of(const ShareSource<float>&, const std::vector<SpreadRows>&);
template WarpSliceShape shape_of(const ShareSource<double>&, const std::vector<SpreadRows>&);
template void fill_warp_slices(const ShareSource<float>&, const WarpSliceShape&, std::size_t,
                               std::size_t, std::byte*);
template void fill_warp_slices(const ShareSource<double>&, const WarpSliceShape&, std::size_t,
                               std::size_t, std::byte*);
template void fill_tails(const ShareSource<float>&, const WarpSliceShape&, std::int32_t*, float*);
template void fill_tails(const ShareSource<double>&, const WarpSliceShape&, std::int32_t*, double*);

}  // namespace cpufree
