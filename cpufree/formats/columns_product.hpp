// Products of a matrix with several vectors at once, which lie row by row side by side: each entry
// of the matrix is read once for all of them. In every column a row is summed in the order in which
// the format sums it for a single vector.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpufree/device/block.hpp"
#include "cpufree/device/columns.hpp"
#include "cpufree/formats/csr_rows.hpp"
#include "cpufree/formats/slices/slice_turns.hpp"
#include "cpufree/formats/slices/sliced.hpp"

namespace cpufree {

// Calls f(row, lane) for all rows of a range, each from the thread and the lane to which
// multiply_columns gives that row.
template <class M, Port P, class F>
CPUFREE_KERNEL_FN void each_of_columns(P& port, const typename M::Rows& rows, F&& f) {
  if constexpr (std::is_same_v<typename M::Rows, SliceRows>) {
    each_thin(port, rows, f);
  } else {
    const std::int64_t stride = P::width * port.lanes();
    std::int64_t i = rows.begin + P::width * port.lane();
    for (; i + P::width <= rows.end; i += stride)
      for (int l = 0; l < P::width; ++l) f(static_cast<std::int32_t>(i) + l, l);
    for (int l = 0; i + l < rows.end; ++l) f(static_cast<std::int32_t>(i) + l, l);
  }
}

// Calls f(row, lane, (A x)(row)) for all rows of a range. x[column] is a row of the operand.
template <class Format, Port P, class T, int K, class F>
CPUFREE_KERNEL_FN void multiply_columns(P& port, const CsrRows<T>& matrix,
                                        const typename CsrRows<T>::Rows& rows,
                                        const Columns<T, K>* x, F&& f) {
  const std::uint32_t base = rows.begin < rows.end ? matrix.row_ptr[rows.begin] : 0U;
  each_of_columns<CsrRows<T>>(port, rows, [&](std::int32_t i, int lane) {
    const std::int64_t first = rows.start + static_cast<std::uint32_t>(matrix.row_ptr[i] - base);
    const auto count = static_cast<std::uint32_t>(matrix.row_ptr[i + 1] - matrix.row_ptr[i]);
    Columns<T, K> sum = {};
    for (std::int64_t k = first; k < first + count; ++k) sum += matrix.val[k] * x[matrix.col[k]];
    f(i, lane, sum);
  });
}

// One column of the operand, for products as accurate as those of a single vector.
template <class T, int K>
struct ColumnOperand {
  static constexpr bool in_pieces = true;
  const Columns<T, K>* values;
  int column;
  template <int N>
  CPUFREE_KERNEL_FN void fetch(const std::int32_t (&columns)[N], T (&out)[N]) const {
    CPUFREE_UNROLL
    for (int n = 0; n < N; ++n) out[n] = (*this)(columns[n]);
  }
  CPUFREE_KERNEL_FN T operator()(std::int32_t row) const { return values[row].values()[column]; }
};

// Calls f(row, lane, (A x)(row)) for all rows of a range and one column of x, as an AccurateSum.
template <class Format, Port P, class M, class T, int K, class F>
CPUFREE_KERNEL_FN void multiply_column(P& port, const M& matrix, const typename M::Rows& rows,
                                       const Columns<T, K>* x, int column, F&& f) {
  matrix.multiply(port, rows, ColdOperand{ColumnOperand<T, K>{x, column}}, f);
}

// Rows of a slice whose sums for K columns fit into eight vector registers of 32 bytes.
template <class T, int W, int K>
constexpr int rows_in_registers() {
  int rows = W;
  while (rows > 1 && rows * K * static_cast<int>(sizeof(T)) > 256) rows /= 2;
  return rows;
}

// f(row of the slice, sum) for the rows [Begin, Begin + N) of a slice.
template <class Format, int N, class T, int W, int K, class F>
CPUFREE_KERNEL_FN void sum_some_rows(const Sliced<T, W>& matrix, std::int64_t slice, int begin,
                                     const Columns<T, K>* x, F&& f) {
  Columns<T, K> sums[N];
  for (int l = 0; l < N; ++l) sums[l] = {};  // one by one, or it is not done in registers
  const std::int64_t end = matrix.slice_ptr[slice + 1];
  const auto* v =
      matrix.template values<Format, Operand<T>>() + matrix.slice_ptr[slice] * W + begin;
  for (std::int64_t c = matrix.slice_ptr[slice]; c < end; ++c, v += W) {
    __builtin_prefetch(v + Sliced<T, W>::kAhead * W);
    const std::int32_t first = matrix.base[c];
    if (first >= 0) {
      const Columns<T, K>* const from = x + first + begin;
      for (int l = 0; l < N; ++l) sums[l] += static_cast<T>(v[l]) * from[l];
    } else {
      const std::int32_t* const index =
          matrix.gather + static_cast<std::int64_t>(~first) * W + begin;
      for (int l = 0; l < N; ++l) sums[l] += static_cast<T>(v[l]) * x[index[l]];
    }
  }
  for (int l = 0; l < N; ++l) f(begin + l, sums[l]);
}

template <class Format, Port P, class T, int W, int K, class F>
CPUFREE_KERNEL_FN void multiply_columns(P&, const Sliced<T, W>& matrix,
                                        const typename Sliced<T, W>::Rows& rows,
                                        const Columns<T, K>* x, F&& f) {
  static_assert(P::width == W, "slices are as wide as the engine's lanes");
  constexpr int N = rows_in_registers<T, W, K>();
  std::int64_t slice = rows.start;
  std::int32_t row = rows.begin;
  for (; row + W <= rows.end; row += W, ++slice)
    for (int begin = 0; begin < W; begin += N)
      sum_some_rows<Format, N>(matrix, slice, begin, x,
                               [&](int l, const Columns<T, K>& sum) { f(row + l, l, sum); });
  for (int begin = 0; row + begin < rows.end; begin += N)
    sum_some_rows<Format, N>(matrix, slice, begin, x, [&](int l, const Columns<T, K>& sum) {
      if (row + l < rows.end) f(row + l, l, sum);
    });
}

}  // namespace cpufree
