#include "cpufree/formats/warp_slices_build.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/slice_choice.hpp"
#include "cpufree/formats/slice_places.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"

namespace cpufree {

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
                                    const std::vector<LaneRows>& ranges) {
  Dictionary<T> dictionary;
  std::int64_t entries = 0;
  for (const LaneRows& range : ranges)
    for (std::int64_t k = local.row_ptr[at(range.begin)]; k < local.row_ptr[at(range.end)]; ++k) {
      const T value = local.val[at(k)];
      // NaNs differ in bits that a conversion may change.
      if (value != value || !dictionary.add(value)) return {};
      ++entries;
    }
  if (entries == 0) return {};
  return {dictionary.values().begin(), dictionary.values().end()};
}

// What a slice's code would be in a simple share.
Simple simple_code(const WarpSlice& slice) {
  if (slice.base[0] != 0) return Simple::no;
  if (slice.code == ColumnCode::near) return Simple::columns;
  const bool one_window = slice.base[kWindows - 1] == (kWindows - 1) << kWindowBits;
  return slice.code == ColumnCode::runs && one_window ? Simple::runs : Simple::no;
}

template <class T>
void append_slice(const ShareSource<T>& source, const LaneRows& rows, WarpSliceShape& shape) {
  std::array<std::int64_t, kSliceRows> length{};
  for (int l = 0; l < kSliceRows; ++l) length[at(l)] = lane_entries(source.local, rows, l).count;
  WarpSlice slice;
  slice.first = static_cast<std::uint32_t>(shape.units);
  slice.width = static_cast<std::int32_t>(source.codes.tails ? best_slice_width(length).width
                                                             : *std::ranges::max_element(length));
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
void append_slices(const ShareSource<T>& source, const std::vector<LaneRows>& ranges,
                   WarpSliceShape& shape) {
  for (const LaneRows& range : ranges) {
    const std::int32_t most = kSliceRows >> range.lanes_log2;
    for (std::int32_t begin = range.begin; begin < range.end; begin += most)
      append_slice(
          source,
          {{begin, std::min(begin + most, range.end)}, range.lanes_log2, range.thin, range.run},
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
    const std::int64_t from = kSliceRows * first * (column_bytes + value_bytes());
    const std::int64_t place = place_of(l, k - first, n);
    if (coded_)
      store(place, static_cast<std::uint16_t>(code_of(slice_, column)), from);
    else
      store(place, column, from);
    put_value(place, value, from + kSliceRows * n * column_bytes);
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
    const std::int64_t from = kSliceRows * (k / kRun) * (2 + kRun * value_bytes());
    const std::int64_t in_run = k % kRun;
    if (in_run == 0) store(l, static_cast<std::uint16_t>(code_of(slice_, column)), from);
    put_value(in_run < 2 ? 2 * l + in_run : 2 * kSliceRows + l, value, from + kSliceRows * 2);
  }
  // In a chunk of n: pairs if coded, and what is left over behind them.
  std::int64_t place_of(int l, std::int64_t k, std::int64_t n) const {
    if (!coded_ || k == n - n % 2) return kSliceRows * k + l;
    return 2 * (kSliceRows * (k / 2) + l) + k % 2;
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

}  // namespace

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
WarpSliceShape shape_of(const ShareSource<T>& source, const std::vector<LaneRows>& ranges) {
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
  std::fill_n(to, (shape.end_of(end - 1) - origin) * kSliceUnit, std::byte{0});
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
    for (int l = 0; l < kSliceRows; ++l) {
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
template WarpSliceShape shape_of(const ShareSource<float>&, const std::vector<LaneRows>&);
template WarpSliceShape shape_of(const ShareSource<double>&, const std::vector<LaneRows>&);
template void fill_warp_slices(const ShareSource<float>&, const WarpSliceShape&, std::size_t,
                               std::size_t, std::byte*);
template void fill_warp_slices(const ShareSource<double>&, const WarpSliceShape&, std::size_t,
                               std::size_t, std::byte*);
template void fill_tails(const ShareSource<float>&, const WarpSliceShape&, std::int32_t*, float*);
template void fill_tails(const ShareSource<double>&, const WarpSliceShape&, std::int32_t*, double*);

}  // namespace cpufree
