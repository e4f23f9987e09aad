// Kernels that lay a matrix out on its GPUs: slices of blocks (warp_slices.hpp), their codes, and
// what goes with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpufree/formats/layout/rows.hpp"
#include "cpufree/formats/slices/slice_choice.hpp"
#include "cpufree/formats/slices/slice_writer.hpp"
#include "cpufree/problem/row_size.hpp"

namespace cpufree::layout {

// What slices are made from: the rows of a PE in its numbers.
template <class T>
struct LocalRows {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
  const T* val = nullptr;
  std::int32_t columns = 0x7fffffff;  // rows may be more
  // With halos of blocks: what kernels call the column of each entry, and the row itself.
  const std::int32_t* entry_name = nullptr;
  const std::int32_t* row_name = nullptr;

  CPUFREE_FN std::int64_t begin_of(std::int32_t row) const { return ptr[row]; }
  CPUFREE_FN std::int32_t column(std::int64_t entry) const {
    return entry_name == nullptr ? col[entry] : entry_name[entry];
  }
  // The column that padding of a row without entries reads, as ShareSource says.
  CPUFREE_FN std::int32_t name(std::int32_t row) const {
    const std::int32_t own = row < columns ? row : columns - 1;
    return row_name == nullptr ? own : row_name[own];
  }
  CPUFREE_FN T value(std::int64_t entry) const { return val[entry]; }
};

// Slices of a range of a block's rows, its interior or its boundary: `first` and those behind, to
// the `first` of the next range.
struct SliceRange {
  LaneRows rows;
  Codes codes = {};
  std::int32_t first = 0;
  std::int32_t block = 0;
};

// The range that has a place: the last one whose `first` is not behind it.
template <class Range>
CPUFREE_FN const Range& range_of(const Range* ranges, int count, std::int64_t place) {
  int low = 0, high = count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (ranges[middle].first <= place)
      low = middle;
    else
      high = middle - 1;
  }
  return ranges[low];
}

// The different values of a block, by their bits, hashed; 0 is not among them.
struct ValueTable {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};  // the bits of a NaN
  std::uint64_t bits[kValuePlaces];
  std::uint64_t first[kValuePlaces];  // the least entry that has it
  std::uint32_t number[kValuePlaces];
  std::uint32_t count;     // of values
  std::uint32_t overflow;  // too many, or a NaN
};

template <class T>
struct ClearTables {
  ValueTable* table = nullptr;
  int blocks = 1;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, std::int64_t{blocks} * kValuePlaces, [&](std::int64_t i) {
      ValueTable& mine = table[i / kValuePlaces];
      mine.bits[i % kValuePlaces] = mine.first[i % kValuePlaces] = ValueTable::kNone;
      if (i % kValuePlaces == 0) mine.count = mine.overflow = 0;
    });
  }
};

// Fills the tables of blocks from all of their rows, interior rows first. The value's place in the
// table is up to the sequence of threads, the least entry that has it is not.
template <class T>
struct FindValues {
  LocalRows<T> rows;
  const SliceRange* ranges = nullptr;  // of each block two: its interior, its boundary
  int range_count = 1;
  std::int64_t slices = 0;
  ValueTable* table = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, slices * kSliceRows, [&](std::int64_t i) {
      const std::int64_t s = i / kSliceRows;
      const SliceRange& range = range_of(ranges, range_count, s);
      const LaneRows mine = range.rows.of_slice(static_cast<std::int32_t>(s - range.first));
      const auto row = static_cast<std::int32_t>(mine.begin + i % kSliceRows);
      if (row >= mine.end) return;
      ValueTable& values = table[range.block];
      const std::uint64_t behind = static_cast<std::uint64_t>(&range - ranges) % 2 << 62U;
      std::uint64_t last = 0;
      for (std::int64_t k = rows.ptr[row]; k < rows.ptr[row + 1]; ++k) {
        const T value = rows.val[k];
        const std::uint64_t bits = bits_of(value);
        if (bits == last || bits == 0) continue;
        if (port.get(&values.overflow) != 0) return;
        last = bits;
        if (!(value == value) ||
            !insert(port, values, bits, static_cast<std::uint64_t>(k) | behind))
          port.join(&values.overflow, 1U);
      }
    });
  }
  template <class P>
  CPUFREE_KERNEL_FN static bool insert(const P& port, ValueTable& values, std::uint64_t bits,
                                       std::uint64_t entry) {
    std::uint32_t place = value_place(bits);
    std::uint64_t there = ValueTable::kNone;
    for (std::uint32_t looks = 0; looks < kValuePlaces; ++looks) {
      there = port.get(&values.bits[place]);
      if (there == ValueTable::kNone) {
        there = port.swap_if(&values.bits[place], ValueTable::kNone, bits);
        if (there == ValueTable::kNone) {
          if (port.add(&values.count, 1U) >= kMostValues - 1) return false;
          there = bits;
        }
      }
      if (there == bits) break;
      place = (place + 1) % kValuePlaces;
    }
    if (there != bits) return false;
    if (entry < port.get(&values.first[place])) port.lower(&values.first[place], entry);
    return true;
  }
};

// The dictionaries of blocks, their values in the order of the entries that have them first.
template <class T>
struct NumberValues {
  ValueTable* table = nullptr;
  int blocks = 1;
  T* value = nullptr;             // kMostValues of each
  std::int32_t* count = nullptr;  // of values with 0, which is the first; 0: they are too many

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, std::int64_t{blocks} * kValuePlaces, [&](std::int64_t i) {
      const std::int64_t b = i / kValuePlaces, place = i % kValuePlaces;
      ValueTable& mine = table[b];
      const bool too_many = mine.overflow != 0 || mine.count >= kMostValues;
      T* const values = value + b * static_cast<std::int64_t>(kMostValues);
      if (place == 0) {
        count[b] = too_many ? 0 : static_cast<std::int32_t>(mine.count + 1);
        values[0] = T{0};
      }
      if (too_many || mine.bits[place] == ValueTable::kNone) return;
      std::uint32_t number = 1;
      for (std::uint32_t other = 0; other < kValuePlaces; ++other)
        if (mine.first[other] < mine.first[place]) ++number;
      mine.number[place] = number;
      values[number] = value_of(mine.bits[place], T{});
    });
  }
  CPUFREE_FN static double value_of(std::uint64_t bits, double value) {
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  CPUFREE_FN static float value_of(std::uint64_t bits, float value) {
    const auto half = static_cast<std::uint32_t>(bits);
    std::memcpy(&value, &half, sizeof(value));
    return value;
  }
};

// Width and code of each slice, and what its lanes have beyond that width.
template <class T>
struct ShapeSlices {
  LocalRows<T> rows;
  const SliceRange* ranges = nullptr;
  int range_count = 1;
  std::int64_t slices = 0;
  WarpSlice* slice = nullptr;
  std::int64_t* beyond = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, slices, [&](std::int64_t s) {
      const SliceRange& range = range_of(ranges, range_count, s);
      const LaneRows mine = range.rows.of_slice(static_cast<std::int32_t>(s - range.first));
      WarpSlice chosen;
      beyond[s] = choose_slice(rows, mine, range.codes, chosen);
      slice[s] = chosen;
    });
  }
};

// The entries of each lane of some slices, listed by number.
template <class T>
struct CountLanes {
  LocalRows<T> rows;
  const SliceRange* ranges = nullptr;
  int range_count = 1;
  const std::int32_t* list = nullptr;
  std::int64_t count = 0;
  std::int64_t* lengths = nullptr;  // kSliceRows of each

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count * kSliceRows, [&](std::int64_t i) {
      const std::int64_t s = list[i / kSliceRows];
      const SliceRange& range = range_of(ranges, range_count, s);
      const LaneRows mine = range.rows.of_slice(static_cast<std::int32_t>(s - range.first));
      lengths[i] = lane_entries(rows, mine, static_cast<int>(i % kSliceRows)).count;
    });
  }
};

// How many rows of each range have nothing but runs.
template <class T>
struct CountRuns {
  LocalRows<T> rows;
  const SliceRange* ranges = nullptr;
  int range_count = 1;
  std::int64_t slices = 0;
  std::uint32_t* in_runs = nullptr;  // of each range; zeroed before

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, slices, [&](std::int64_t s) {
      const SliceRange& range = range_of(ranges, range_count, s);
      const LaneRows mine = range.rows.of_slice(static_cast<std::int32_t>(s - range.first));
      std::uint32_t found = 0;
      for (std::int32_t row = mine.begin; row < mine.end; ++row)
        found += row_in_runs(rows, row) ? 1U : 0U;
      if (found > 0) port.add(&in_runs[&range - ranges], found);
    });
  }
};

// The numbers of a block's values.
template <class T>
struct TableNumbers {
  const ValueTable* table;
  CPUFREE_FN std::uint8_t number(T value) const {
    const std::uint64_t bits = bits_of(value);
    if (bits == 0) return 0;
    std::uint32_t place = value_place(bits);
    while (table->bits[place] != bits) place = (place + 1) % kValuePlaces;
    return static_cast<std::uint8_t>(table->number[place]);
  }
};

// Where a block's slices lie.
struct BlockPlace {
  std::int64_t first_unit = 0;
  std::int32_t coded = 0;   // values are numbers in the dictionary
  std::int32_t single = 0;  // others are in single precision
};

// Writes the slices, a thread for each lane. Bytes are zero before.
template <class T>
struct FillSlices {
  LocalRows<T> rows;
  const SliceRange* ranges = nullptr;
  int range_count = 1;
  std::int64_t slices = 0;
  const WarpSlice* slice = nullptr;
  const BlockPlace* place = nullptr;
  const ValueTable* table = nullptr;
  std::byte* bytes = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, slices * kSliceRows, [&](std::int64_t i) {
      const std::int64_t s = i / kSliceRows;
      const WarpSlice& mine = slice[s];
      if (mine.width == 0) return;
      const SliceRange& range = range_of(ranges, range_count, s);
      const LaneRows of = range.rows.of_slice(static_cast<std::int32_t>(s - range.first));
      const BlockPlace& block = place[range.block];
      const TableNumbers<T> numbers{table + range.block};
      const SliceWriter<T, TableNumbers<T>> writer(
          mine, block.coded != 0 ? &numbers : nullptr, block.single != 0,
          bytes + (block.first_unit + mine.first) * kSliceUnit);
      const std::int32_t any = in_runs(mine.code) ? any_run(rows, of) : kNoRun;
      writer.put_lane(rows, of, static_cast<int>(i % kSliceRows), any);
    });
  }
};

// Writes the tails of some slices, listed by number: `tail_ptr` has kSliceRows + 1 places of each
// in the arrays of the PE.
template <class T>
struct FillTails {
  LocalRows<T> rows;
  const SliceRange* ranges = nullptr;
  int range_count = 1;
  const WarpSlice* slice = nullptr;
  const std::int32_t* list = nullptr;
  std::int64_t count = 0;
  const std::int64_t* tail_ptr = nullptr;
  std::int32_t* col = nullptr;
  T* val = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count * kSliceRows, [&](std::int64_t i) {
      const std::int64_t s = list[i / kSliceRows];
      const int l = static_cast<int>(i % kSliceRows);
      const SliceRange& range = range_of(ranges, range_count, s);
      const LaneRows mine = range.rows.of_slice(static_cast<std::int32_t>(s - range.first));
      const LaneEntries of = lane_entries(rows, mine, l);
      const std::int64_t* const tail = tail_ptr + i / kSliceRows * (kSliceRows + 1) + l;
      for (std::int64_t to = tail[0]; to < tail[1]; ++to) {
        const std::int64_t from = of.entry(before_tail(slice[s]) + to - tail[0]);
        col[to] = rows.column(from);
        val[to] = rows.value(from);
      }
    });
  }
};

// The private rows of a block: `first` and those behind; its boundary rows, then its interior rows.
struct PrivateRange {
  std::int64_t first = 0;
  RowRange boundary, interior;
};

// The row at a place of the private vectors; -1 in gaps.
CPUFREE_FN std::int32_t private_row(const PrivateRange* ranges, int blocks, std::int64_t place) {
  const PrivateRange& mine = range_of(ranges, blocks, place);
  const std::int64_t k = place - mine.first;
  if (k < mine.boundary.size()) return static_cast<std::int32_t>(mine.boundary.begin + k);
  const std::int64_t inside = k - mine.boundary.size();
  return inside < mine.interior.size() ? static_cast<std::int32_t>(mine.interior.begin + inside)
                                       : -1;
}

// What stands at each place of the private vectors: the row's number in the matrix, -1 in gaps, and
// 1 / |a_ii|, 1 in gaps; the bound of the spectrum.
template <class T>
struct FillPrivate {
  LocalRows<T> rows;
  const std::int32_t* global_row = nullptr;  // null: row k is `first_row` + k
  std::int64_t first_row = 0;
  const PrivateRange* ranges = nullptr;
  int blocks = 1;
  std::int64_t count = 0;
  std::int32_t* name = nullptr;
  T* inverse = nullptr;
  Facts* facts = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    double bound = 0.0;
    each_item(port, count, [&](std::int64_t place) {
      const std::int32_t row = private_row(ranges, blocks, place);
      name[place] = row < 0                 ? -1
                    : global_row == nullptr ? static_cast<std::int32_t>(first_row + row)
                                            : global_row[row];
      inverse[place] = T{1};
      if (row < 0) return;
      RowSize size;
      for (std::int64_t k = rows.ptr[row]; k < rows.ptr[row + 1]; ++k)
        size.add(static_cast<double>(rows.val[k]), rows.col[k] == row);
      inverse[place] = static_cast<T>(size.inverse());
      if (size.bound() > bound) bound = size.bound();
    });
    if (bound > 0.0) port.raise(&facts->bound, bits_of(bound));
  }
};

}  // namespace cpufree::layout
