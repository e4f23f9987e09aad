// Slices that the host builds, read by the words of the format's description and multiplied.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/formats/local.hpp"
#include "cpufree/formats/warp_slices_build.hpp"
#include "harness.hpp"
#include "matrices.hpp"

namespace testing_slices {

using namespace cpufree;
using namespace testing_matrices;

// Rows of the lengths given; entry k of row i is in column 3 k + i % 3 and has a value of its own.
template <class T = double>
LocalSystem<T> rows_of(const std::vector<std::int32_t>& lengths) {
  LocalSystem<T> local;
  local.row_ptr.push_back(0);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    local.global_row.push_back(static_cast<std::int32_t>(i));
    for (std::int32_t k = 0; k < lengths[i]; ++k) {
      local.col.push_back(3 * k + static_cast<std::int32_t>(i % 3));
      local.val.push_back(static_cast<T>(local.val.size() + 1));
    }
    local.row_ptr.push_back(static_cast<std::int64_t>(local.col.size()));
  }
  local.interior = local.rows();
  return local;
}

template <class T>
struct Built {
  ShareSource<T> source;
  WarpSliceShape shape;
  std::vector<std::uint64_t> words;  // the bytes, aligned
  std::vector<std::int32_t> tail_col;
  std::vector<T> tail_val;
  std::vector<T> dictionary;

  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words.data()); }
  WarpSlices<T> matrix() const {
    return {bytes(),         shape.slice.data(), shape.tail_ptr.data(),
            tail_col.data(), tail_val.data(),    dictionary.empty() ? nullptr : dictionary.data(),
            shape.size()};
  }
};

template <class T>
Built<T> build(const LocalSystem<T>& local, const std::vector<RowRange>& ranges,
               bool compress = true, std::int32_t lanes_log2 = 0, std::int32_t run = 1) {
  Built<T> built{{local, nullptr, {compress, compress}}, {}, {}, {}, {}, {}};
  std::vector<LaneRows> rows;
  for (const RowRange range : ranges) rows.push_back({range, lanes_log2, 0, run});
  built.shape = shape_of(built.source, rows);
  built.words.assign(at(built.shape.units * kSliceUnit / 8), 0x5a5a5a5a5a5a5a5aU);
  fill_warp_slices(built.source, built.shape, 0, built.shape.slice.size(),
                   reinterpret_cast<std::byte*>(built.words.data()));
  built.tail_col.assign(at(built.shape.tail_entries), -7);
  built.tail_val.assign(at(built.shape.tail_entries), T{-7});
  fill_tails(built.source, built.shape, built.tail_col.data(), built.tail_val.data());
  for (const double value : built.shape.dictionary)
    built.dictionary.push_back(static_cast<T>(value));
  return built;
}

template <class V>
V load(const std::byte* from, std::int64_t place) {
  V value;
  std::memcpy(&value, from + place * static_cast<std::int64_t>(sizeof(V)), sizeof(V));
  return value;
}

// The same where columns come in runs.
template <class T>
std::pair<std::int32_t, T> entry_of_run(const Built<T>& built, const WarpSlice& slice, int l,
                                        std::int32_t k) {
  const bool numbers = !built.dictionary.empty();
  const std::int64_t value_bytes = numbers ? 1 : sizeof(T);
  const std::byte* const run =
      built.bytes() + slice.first * kSliceUnit + k / 3 * 32 * (2 + 3 * value_bytes);
  const unsigned code = load<std::uint16_t>(run, l);
  const std::int32_t column =
      slice.base[code >> 14] + static_cast<std::int32_t>(code & 16383) + k % 3;
  const std::int64_t place = k % 3 < 2 ? 2 * l + k % 3 : 64 + l;
  if (!numbers) return {column, load<T>(run + 64, place)};
  return {column, built.dictionary[load<std::uint8_t>(run + 64, place)]};
}

// Entry k of row l of a slice, by the words of the format's description.
template <class T>
std::pair<std::int32_t, T> entry(const Built<T>& built, std::size_t s, int l, std::int32_t k) {
  const WarpSlice& slice = built.shape.slice[s];
  const bool plain = slice.code == ColumnCode::plain;
  const bool numbers = !plain && !built.dictionary.empty();
  if (slice.code == ColumnCode::runs) return entry_of_run(built, slice, l, k);
  const std::int64_t column_bytes = plain ? 4 : 2;
  const std::int64_t value_bytes = numbers ? 1 : sizeof(T);
  const std::int32_t before = k / 8 * 8;
  const std::int32_t n = std::min(slice.width - before, 8);
  const std::byte* const columns =
      built.bytes() + slice.first * kSliceUnit + 32 * before * (column_bytes + value_bytes);
  const std::byte* const values = columns + 32 * n * column_bytes;
  k -= before;
  if (plain) return {load<std::int32_t>(columns, 32 * k + l), load<T>(values, 32 * k + l)};
  const bool single = n % 2 == 1 && k == n - 1;
  const std::int64_t place = single ? 32 * (n - 1) + l : 2 * (32 * (k / 2) + l) + k % 2;
  const unsigned code = load<std::uint16_t>(columns, place);
  const std::int32_t column =
      slice.code == ColumnCode::near
          ? slice.base[0] + static_cast<std::int32_t>(code)
          : slice.base[code >> 14] + static_cast<std::int32_t>(code & 16383);
  if (!numbers) return {column, load<T>(values, place)};
  return {column, built.dictionary[load<std::uint8_t>(values, place)]};
}

// The columns that padding of row `row` may read: those of the row, or the row itself, or the last
// one where that is none; where they come in runs, those of any row of the slice.
template <class T>
std::set<std::int32_t> readable_by(const LocalSystem<T>& local, const LaneRows& rows,
                                   std::int32_t row, ColumnCode code) {
  const bool runs = code == ColumnCode::runs;
  std::set<std::int32_t> readable;
  if (!runs) readable.insert(std::min(row, local.rows() - 1));
  for (std::int64_t k = local.row_ptr[at(runs ? rows.begin : row)];
       k < local.row_ptr[at((runs ? rows.end - 1 : row) + 1)]; ++k)
    readable.insert(local.col[at(k)]);
  return readable;
}

// Checks a share against its rows: every entry once, in the order of its row; everything else is
// padding of value 0 that reads what may be read.
template <class T>
void check_built(const LocalSystem<T>& local, const Built<T>& built) {
  int wrong = 0;
  std::int64_t units = 0;
  for (std::size_t s = 0; s < built.shape.slice.size(); ++s) {
    const WarpSlice& slice = built.shape.slice[s];
    const LaneRows rows = built.shape.rows[s];
    const std::int32_t lanes = 1 << rows.lanes_log2;
    wrong += slice.first == units && rows.size() >= 1 && rows.size() <= 32 / lanes ? 0 : 1;
    units = built.shape.end_of(s);
    for (std::int32_t l = 0; l < 32; ++l) {
      const std::int32_t row = std::min(rows.begin + l / lanes, rows.end - 1);
      const std::int32_t run = lanes > 1 ? rows.run : 1;  // entries of a lane in turn
      const std::int64_t begin = local.row_ptr[at(row)] + l % lanes * run;
      const std::int64_t end =
          rows.begin + l / lanes < rows.end ? local.row_ptr[at(row) + 1] : begin;
      const auto readable = readable_by(local, rows, row, slice.code);
      std::int64_t k_of_lane = 0;
      const auto place = [&](std::int64_t k) { return begin + k / run * lanes * run + k % run; };
      const auto read = [&](std::int32_t col, T val) {
        const std::int64_t next = place(k_of_lane++);
        if (next < end)
          wrong += col == local.col[at(next)] && val == local.val[at(next)] ? 0 : 1;
        else
          wrong += val == T{0} && readable.contains(col) ? 0 : 1;
      };
      for (std::int32_t k = 0; k < slice.width; ++k) std::apply(read, entry(built, s, l, k));
      if (slice.tails >= 0)
        for (std::int64_t k = built.shape.tail_ptr[at(slice.tails + l)];
             k < built.shape.tail_ptr[at(slice.tails + l + 1)]; ++k)
          read(built.tail_col[at(k)], built.tail_val[at(k)]);
      wrong += place(k_of_lane) >= end ? 0 : 1;
    }
  }
  CHECK_EQ(wrong, 0);
  CHECK_EQ(units, built.shape.units);
}

// Nodes of three unknowns, with `neighbours` each: three neighbouring columns, three rows of
// the same columns. Values are all different.
template <class T = double>
LocalSystem<T> nodes(const std::vector<std::int32_t>& neighbours) {
  std::vector<std::int32_t> lengths;
  for (const std::int32_t count : neighbours)
    for (int k = 0; k < 3; ++k) lengths.push_back(3 * count);
  LocalSystem<T> local = rows_of<T>(lengths);
  for (std::size_t row = 0; row < lengths.size(); ++row)
    for (std::int64_t k = 0; k < lengths[row]; ++k)
      local.col[at(local.row_ptr[row] + k)] =
          static_cast<std::int32_t>(3 * (row / 3) + k + k / 3 * 3);
  return local;
}

// One of 64 threads: all that slices without tails ask of a port.
struct LanePort {
  static constexpr int warp_width = 32;
  int number;
  int lane() const { return number; }
  static constexpr int lanes() { return 64; }
  static unsigned warp_ballot(bool) { return 0; }
  static int lowest_bit(unsigned) { return 0; }
  template <class V>
  static V warp_broadcast(V value, int) {
    return value;
  }
  template <class V>
  static V warp_across(V value, int) {
    return value;
  }
  template <class V>
  static V warp_sum(V value) {
    return value;
  }
};

// A x, a thread after the other.
template <class T>
std::vector<T> product(const Built<T>& built, const std::vector<T>& x) {
  const auto rows = built.source.local.rows();
  std::vector<T> y(at(rows), T{-1});
  const WarpSlices<T> matrix = built.matrix();
  for (int lane = 0; lane < 64; ++lane) {
    LanePort port{lane};
    matrix.multiply(port, {0, rows, 0}, Operand<T>{x.data()},
                    [&](std::int32_t row, int, T value) { y[at(row)] = value; });
  }
  return y;
}

// Whether the cold product is that of exact sums, to the rounding of its result.
template <class T>
bool cold_product_right(const Built<T>& built, const std::vector<T>& x) {
  const auto& local = built.source.local;
  const WarpSlices<T> matrix = built.matrix();
  std::int32_t seen = 0;
  bool right = true;
  for (int lane = 0; lane < 64; ++lane) {
    LanePort port{lane};
    matrix.multiply(port, {0, local.rows(), 0}, ColdOperand{Operand<T>{x.data()}},
                    [&](std::int32_t row, int, const AccurateSum<T>& value) {
                      long double sum = 0.0L, size = 0.0L;
                      for (auto k = local.row_ptr[at(row)]; k < local.row_ptr[at(row) + 1]; ++k) {
                        const long double term =
                            static_cast<long double>(local.val[at(k)]) * x[at(local.col[at(k)])];
                        sum += term, size += std::abs(term);
                      }
                      const long double bound =
                          1.2e-16L * std::abs(sum) +
                          size * (std::is_same_v<T, double> ? 1e-18L : 1e-15L);
                      right = right && std::abs(-value.below(0.0) - sum) <= bound;
                      ++seen;
                    });
  }
  return right && seen == local.rows();
}

// 7-point operator on an n x n x n grid, its coefficients all different or all alike.
inline LocalSystem<double> grid(std::int32_t n, bool alike) {
  LocalSystem<double> local;
  local.row_ptr.push_back(0);
  for (std::int32_t row = 0; row < n * n * n; ++row) {
    local.global_row.push_back(row);
    for (const std::int32_t step : {-n * n, -n, -1, 0, 1, n, n * n})
      if (row + step >= 0 && row + step < n * n * n) {
        local.col.push_back(row + step);
        local.val.push_back(alike ? (step == 0 ? 6.0 : -1.0)
                                  : std::sin(static_cast<double>(local.val.size())));
      }
    local.row_ptr.push_back(static_cast<std::int64_t>(local.col.size()));
  }
  local.interior = local.rows();
  return local;
}

}  // namespace testing_slices
