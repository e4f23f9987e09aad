#include "cpufree/formats/warp_slices_build.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/slices/slice_writer.hpp"

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
    const std::size_t place = place_of(value);
    if (table_[place] == kEmpty) {
      if (values_.size() == kMostValues) return {};
      table_[place] = static_cast<std::int16_t>(values_.size());
      values_.push_back(value);
    }
    return static_cast<std::uint8_t>(table_[place]);
  }
  const std::vector<T>& values() const { return values_; }
  // Of a value that is there.
  std::uint8_t number(T value) const { return static_cast<std::uint8_t>(table_[place_of(value)]); }

 private:
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr std::int16_t kEmpty = -1;

  // Where a value is in the table, or would be.
  std::size_t place_of(T value) const {
    const Bits bits = std::bit_cast<Bits>(value);
    std::size_t place = value_place(bits);
    while (table_[place] != kEmpty && std::bit_cast<Bits>(values_[at(table_[place])]) != bits)
      place = (place + 1) % kValuePlaces;
    return place;
  }

  std::vector<T> values_;
  std::array<std::int16_t, kValuePlaces> table_ = [] {
    std::array<std::int16_t, kValuePlaces> empty{};
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
void append_slices(const ShareSource<T>& source, const std::vector<LaneRows>& ranges,
                   WarpSliceShape& shape) {
  for (const LaneRows& range : ranges)
    for (std::int32_t k = 0; k < range.slices(); ++k) {
      const LaneRows rows = range.of_slice(k);
      std::int64_t lengths[kSliceRows];
      for (int l = 0; l < kSliceRows; ++l) lengths[l] = lane_entries(source, rows, l).count;
      WarpSlice slice;
      const std::int64_t beyond = choose_slice(source, rows, source.codes, slice);
      shape.append(slice, rows, lengths, beyond, sizeof(T));
    }
}

}  // namespace

void WarpSliceShape::append(WarpSlice chosen, const LaneRows& of,
                            const std::int64_t (&lengths)[kSliceRows], std::int64_t beyond,
                            std::int64_t value_bytes) {
  chosen.first = static_cast<std::uint32_t>(units);
  const bool all = single && chosen.width > 0 && plain_values(chosen);
  if (all || beyond > 0) {
    const auto place = static_cast<std::int32_t>(tail_ptr.size());
    chosen.tails = all ? tails_of_all(place, beyond > 0) : place;
    tail_ptr.push_back(tail_entries);
    for (const std::int64_t length : lengths) {
      tail_entries += std::max<std::int64_t>(length - before_tail(chosen), 0);
      tail_ptr.push_back(tail_entries);
    }
  }
  const std::int64_t bytes = slice_bytes(chosen, !dictionary.empty(), stored_bytes(value_bytes));
  units += (bytes + kSliceUnit - 1) / kSliceUnit;
  slice.push_back(chosen);
  rows.push_back(of);
}

bool WarpSliceShape::may_be_simple() const {
  return units * kSliceUnit <= kMostOnChip && simple() == Simple::no &&
         std::ranges::any_of(slice, [](const WarpSlice& s) { return in_runs(s.code); });
}

Simple WarpSliceShape::simple() const {
  if (!tail_ptr.empty()) return Simple::no;
  const auto is = [](Simple which) {
    return [which](const WarpSlice& s) { return s.width == 0 || simple_code(s) == which; };
  };
  if (std::ranges::all_of(slice, is(Simple::columns))) return Simple::columns;
  return std::ranges::all_of(slice, is(Simple::runs)) ? Simple::runs : Simple::no;
}

SliceKinds WarpSliceShape::kinds() const {
  SliceKinds found = dictionary.empty() ? kPlainValues : kCodedValues;
  for (const WarpSlice& s : slice) {
    found |= in_runs(s.code) ? kRuns : kSingles;
    if (lists_all(s.tails)) found |= kSingleValues;
  }
  const Simple which = simple();
  if (which == Simple::columns) found |= kSimpleColumns;
  if (which == Simple::runs) found |= kSimpleRuns;
  return found;
}

template <class T>
std::int32_t usual_run(const ShareSource<T>& source, RowRange rows) {
  std::int32_t in_runs = 0;
  for (std::int32_t row = rows.begin; row < rows.end; ++row)
    in_runs += row_in_runs(source, row) ? 1 : 0;
  return usual_run(in_runs, rows.size());
}

template <class T>
WarpSliceShape shape_of(const ShareSource<T>& source, const std::vector<LaneRows>& ranges) {
  WarpSliceShape shape;
  shape.single = source.codes.single;
  if (source.codes.columns && source.codes.values)
    shape.dictionary = find_dictionary(source.local, ranges);
  append_slices(source, ranges, shape);
  if (shape.may_be_simple()) {
    WarpSliceShape simple;
    simple.single = shape.single;
    simple.dictionary = shape.dictionary;
    ShareSource<T> without = source;
    without.codes.runs = false;
    append_slices(without, ranges, simple);
    if (simple.simple() != Simple::no) return simple;
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
    const SliceWriter<T, Dictionary<T>> writer(
        slice, shape.dictionary.empty() ? nullptr : &dictionary, shape.single,
        to + (slice.first - origin) * kSliceUnit);
    const std::int32_t any = in_runs(slice.code) ? any_run(source, shape.rows[s]) : kNoRun;
    for (int l = 0; l < kSliceRows; ++l) writer.put_lane(source, shape.rows[s], l, any);
  }
}

template <class T>
void fill_tails(const ShareSource<T>& source, const WarpSliceShape& shape, std::int32_t* col,
                T* val) {
  for (std::size_t s = 0; s < shape.slice.size(); ++s) {
    if (shape.slice[s].tails == -1) continue;
    const std::int64_t* const tail = shape.tail_ptr.data() + place_of_tails(shape.slice[s].tails);
    for (int l = 0; l < kSliceRows; ++l) {
      const LaneEntries of = lane_entries(source, shape.rows[s], l);
      for (std::int64_t to = tail[l]; to < tail[l + 1]; ++to) {
        const std::int64_t from = of.entry(before_tail(shape.slice[s]) + to - tail[l]);
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
