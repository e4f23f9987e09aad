// Builds the slices of one range of rows (host code).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cpufree/base/pages.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/problem/row_size.hpp"

namespace cpufree {

// Slices in memory of their own. Offsets (`slice_ptr`, gather columns in `base`) count from 0.
template <class T, int W>
struct SlicedRows {
  static_assert(W <= 8);
  PageVector<std::int64_t> slice_ptr;
  PageVector<std::int32_t> base;
  PageVector<std::int32_t> gather;
  PageVector<T> val;
  PageVector<std::uint8_t> real;  // of each column: a bit for each row, 0 where it is padding
};

// Calls f(lane, column) for the entries of slice `s`, in the order of each row's columns, and
// writes what it returns in their places.
template <class T, int W, class F>
void rewrite_slice(SlicedRows<T, W>& slices, std::size_t s, F&& f) {
  for (auto c = static_cast<std::size_t>(slices.slice_ptr[s]);
       c < static_cast<std::size_t>(slices.slice_ptr[s + 1]); ++c) {
    const std::int32_t base = slices.base[c];
    const std::int32_t* const gather =
        base < 0 ? slices.gather.data() + static_cast<std::size_t>(~base) * W : nullptr;
    for (int l = 0; l < W; ++l)
      if ((slices.real[c] >> l & 1) != 0)
        slices.val[c * W + static_cast<std::size_t>(l)] =
            f(l, gather == nullptr ? base + l : gather[l]);
  }
}

// The sizes of the rows of slice `s`, the first of which is `row`, by the order of their columns.
template <class T, int W>
std::array<RowSize, W> row_sizes(const SlicedRows<T, W>& slices, std::size_t s, std::int32_t row) {
  double sum[W] = {}, diagonal[W] = {};
  for (auto c = static_cast<std::size_t>(slices.slice_ptr[s]);
       c < static_cast<std::size_t>(slices.slice_ptr[s + 1]); ++c) {
    const T* const val = slices.val.data() + c * W;
    for (int l = 0; l < W; ++l) sum[l] += std::fabs(static_cast<double>(val[l]));
    const std::int32_t base = slices.base[c];
    if (base >= 0 && base != row) continue;
    const std::int32_t* const gather =
        base < 0 ? slices.gather.data() + static_cast<std::size_t>(~base) * W : nullptr;
    for (int l = 0; l < W; ++l)
      if ((slices.real[c] >> l & 1) != 0 && (gather == nullptr || gather[l] == row + l))
        diagonal[l] = std::fabs(static_cast<double>(val[l]));
  }
  std::array<RowSize, W> sizes;
  for (int l = 0; l < W; ++l) sizes[static_cast<std::size_t>(l)] = {sum[l], diagonal[l]};
  return sizes;
}

// Makes room for the slices of rows with so many entries: what is not written then takes no memory,
// and growing would write all of them again.
template <class T, int W>
void reserve_slices(std::int64_t entries, SlicedRows<T, W>& out);

// Appends the slices of `rows` of `local` to `out`.
template <class T, int W>
void append_slices(const LocalSystem<T>& local, RowRange rows, SlicedRows<T, W>& out);

}  // namespace cpufree
