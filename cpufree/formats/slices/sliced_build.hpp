// Builds the slices of one range of rows (host code).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpufree/base/pages.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/problem/row_size.hpp"

namespace cpufree {

// Where the entries of slices are, whatever their values (Sliced). Offsets count from 0.
struct SlicePattern {
  PageVector<std::int64_t> slice_ptr;
  PageVector<std::int32_t> base;
  PageVector<std::int32_t> origin;
  PageVector<std::uint16_t> narrow;
  PageVector<std::int32_t> gather;
  PageVector<std::uint8_t> real;  // of each column: a bit for each row, 0 where it is padding
  bool pairs = false;             // rows are those of complex numbers (Sliced::pairs)

  std::size_t slices() const { return origin.size(); }
  double bytes() const;
  // The index of a lane of a column of slice `s`.
  template <int W>
  std::int32_t index(std::size_t s, std::int64_t column, int lane) const {
    const std::int32_t first = base[static_cast<std::size_t>(column)];
    if (first >= 0) return first + lane;
    const auto place = static_cast<std::size_t>(~first) * W + static_cast<std::size_t>(lane);
    return origin[s] >= 0 ? origin[s] + narrow[place] : gather[place];
  }
};

// Slices in memory of their own. Those of several matrices may have one pattern.
template <class T, int W>
struct SlicedRows {
  static_assert(W <= 8);
  std::shared_ptr<SlicePattern> pattern = std::make_shared<SlicePattern>();
  PageVector<T> val;
  PageVector<float> single;  // of those that are also read in single precision: all, else none

  // M: Sliced, which reads narrow indices if there are any.
  template <class M>
  M view() const {
    const SlicePattern& p = *pattern;
    return {p.slice_ptr.data(), p.base.data(), p.origin.data(), p.narrow.data(),
            p.gather.data(),    val.data(),    single.data(),   p.pairs};
  }
};

// Calls f(lane, column, place of the value) for the entries of slice `s`, in the order of each
// row's columns. Padding is left out.
template <class T, int W, class F>
void each_entry(const SlicedRows<T, W>& slices, std::size_t s, F&& f) {
  const SlicePattern& pattern = *slices.pattern;
  for (std::int64_t c = pattern.slice_ptr[s]; c < pattern.slice_ptr[s + 1]; ++c)
    for (int l = 0; l < W; ++l)
      if ((pattern.real[static_cast<std::size_t>(c)] >> l & 1) != 0)
        f(l, pattern.template index<W>(s, c, l), static_cast<std::size_t>(c * W + l));
}

// The sizes of the rows of slice `s`, the first of which is `row`, by the order of their columns.
template <class T, int W>
std::array<RowSize, W> row_sizes(const SlicedRows<T, W>& slices, std::size_t s, std::int32_t row) {
  const SlicePattern& pattern = *slices.pattern;
  double sum[W] = {}, diagonal[W] = {};
  for (std::int64_t c = pattern.slice_ptr[s]; c < pattern.slice_ptr[s + 1]; ++c) {
    const T* const val = slices.val.data() + c * W;
    for (int l = 0; l < W; ++l) sum[l] += std::fabs(static_cast<double>(val[l]));
    const std::int32_t base = pattern.base[static_cast<std::size_t>(c)];
    if (base >= 0 && base != row) continue;
    for (int l = 0; l < W; ++l)
      if ((pattern.real[static_cast<std::size_t>(c)] >> l & 1) != 0 &&
          pattern.template index<W>(s, c, l) == row + l)
        diagonal[l] = std::fabs(static_cast<double>(val[l]));
  }
  std::array<RowSize, W> sizes;
  for (int l = 0; l < W; ++l) sizes[static_cast<std::size_t>(l)] = {sum[l], diagonal[l]};
  // The row 2 k + 1 has its real parts, its diagonal among them, in row 2 k.
  for (std::size_t l = 0; pattern.pairs && l < W; l += 2)
    sizes[l] = sizes[l + 1] = {sum[l] + sum[l + 1], diagonal[l]};
  return sizes;
}

// Makes room for the slices of rows with N entries: what is not written then takes no memory,
// and growing would write all of them again.
template <class T, int W>
void reserve_slices(std::int64_t entries, SlicedRows<T, W>& out);

enum class Indices { wide, narrow };

// Appends the slices of `rows` of `local` to `out`; narrow: indices of 16 bits where that can be.
template <class T, int W>
void append_slices(const LocalSystem<T>& local, RowRange rows, SlicedRows<T, W>& out,
                   Indices indices = Indices::wide);

}  // namespace cpufree
