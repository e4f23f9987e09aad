// Products of a matrix in slices of warps (warp_slices.hpp) with several vectors at once, which lie
// row by row side by side. A chunk's columns and values are loaded once, all together, and used for
// all vectors; the operand comes in pieces, as many entries at a time as registers allow.
#pragma once

#include <cstdint>

#include "cpufree/device/columns.hpp"
#include "cpufree/device/pack.hpp"
#include "cpufree/device/port.hpp"
#include "cpufree/formats/columns_product.hpp"
#include "cpufree/formats/warp_slices.hpp"

namespace cpufree {

// What a lane of a warp tells others (slice_turns.hpp), column by column.
template <class P, class T, int K>
CPUFREE_KERNEL_FN Columns<T, K> sum_across(P& port, const Columns<T, K>& sum, int bits) {
  return Columns<T, K>::each([&](int k) { return port.warp_across(sum[k], bits); });
}
template <class P, class T, int K>
CPUFREE_KERNEL_FN Columns<T, K> sum_broadcast(P& port, const Columns<T, K>& sum, int from) {
  return Columns<T, K>::each([&](int k) { return port.warp_broadcast(sum[k], from); });
}

template <class T, int K>
class WarpColumns {
 public:
  using Values = Columns<T, K>;
  CPUFREE_KERNEL_FN WarpColumns(const WarpSlices<T>& matrix, const Values* x)
      : matrix_(matrix), x_(x) {}

  // What slice s holds of my lane, times x.
  template <SliceKinds kKinds, class P>
  CPUFREE_KERNEL_FN Values lane_sum(P& port, std::int32_t s, int lane) const {
    const WarpSlice& slice = matrix_.slice[s];
    const SliceHead mine = slice;
    Values sum = {};
    with_entries<T, kKinds, Loops::all>(mine.code, slice.base, matrix_.dictionary != nullptr,
                                        matrix_.dictionary, matrix_.bytes + kSliceUnit * mine.first,
                                        lane, [&](auto entries) {
                                          add_chunks(entries, mine.width, sum);
                                          return T{0};
                                        });
    if (mine.tails >= 0) sum += tail_sum(port, mine.tails, lane, 0);
    if constexpr (has_kind(kKinds, kSingleValues))
      if (lists_all(mine.tails) && goes_beyond(mine.tails))
        sum += tail_sum(port, place_of_tails(mine.tails), lane, mine.width);
    return sum;
  }

  // The same of one column.
  template <SliceKinds kKinds, class P>
  CPUFREE_KERNEL_FN AccurateSum<T> accurate_sum(P& port, std::int32_t s, int lane,
                                                int column) const {
    const ColdOperand x{ColumnOperand<T, K>{x_, column}};
    const WarpSlice& slice = matrix_.slice[s];
    auto sum = matrix_.template slice_sum<kKinds>(slice, slice.base, lane, x);
    matrix_.template add_tail<kKinds>(port, slice, lane, x, sum);
    return sum;
  }

 private:
  // Entries whose operands are loaded together: 128 bytes.
  static constexpr int kTogether = 128 / (K * static_cast<int>(sizeof(T)));

  template <class E>
  CPUFREE_KERNEL_FN void add_chunks(E entries, int left, Values& sum) const {
    CPUFREE_ONE_COPY
    for (; left >= E::kWidth; left -= E::kWidth, entries.at += E::kChunkBytes) {
      std::int32_t column[E::kWidth];
      T value[E::kWidth];
      entries.take_columns(column);
      entries.take_values(value);
      add_products<E::kWidth>(column, value, E::kWidth, sum);
    }
    if (left == 0) return;
    std::int32_t column[E::kWidth] = {};
    T value[E::kWidth] = {};
    SliceSums<T>::template take_some<E::kWidth - E::kGrain>(left, entries, column, value);
    add_products<E::kWidth>(column, value, left, sum);
  }

  // sum += the first n of N entries. Operands beyond are looked up in vain, of pieces that have one
  // that counts.
  template <int N>
  CPUFREE_KERNEL_FN void add_products(const std::int32_t (&column)[N], const T (&value)[N], int n,
                                      Values& sum) const {
    constexpr int kPieces = kTogether < 1 ? 1 : kTogether < N ? kTogether : N;
    CPUFREE_UNROLL
    for (int first = 0; first < N; first += kPieces) {
      if (first >= n) continue;
      T operand[kPieces][K];
      CPUFREE_UNROLL
      for (int q = 0; q < kPieces; ++q)
        if (first + q < N)
          load_pack(x_[column[first + q < n ? first + q : first]].values(), operand[q]);
      CPUFREE_UNROLL
      for (int q = 0; q < kPieces; ++q)
        if (first + q < N && first + q < n) {
          CPUFREE_UNROLL
          for (int k = 0; k < K; ++k) sum[k] += value[first + q] * operand[q][k];
        }
    }
  }

  // All of a lane's tail but its first `without` entries.
  template <class P>
  CPUFREE_KERNEL_FN Values tail_sum(P& port, std::int32_t tails, int lane,
                                    std::int32_t without) const {
    Values sum = {};
    const std::int64_t begin = matrix_.tail_ptr[tails + lane] + without;
    const std::int64_t end = matrix_.tail_ptr[tails + lane + 1];
    for (unsigned rows = port.warp_ballot(begin < end); rows != 0U; rows &= rows - 1U) {
      const int l = port.lowest_bit(rows);
      const std::int64_t last = port.warp_broadcast(end, l);
      Values part = {};
      for (std::int64_t k = port.warp_broadcast(begin, l) + lane; k < last; k += kSliceRows)
        part += matrix_.tail_val[k] * x_[matrix_.tail_col[k]];
      CPUFREE_UNROLL
      for (int k = 0; k < K; ++k) {
        const T all = port.warp_sum(part[k]);
        if (lane == l) sum[k] = all;
      }
    }
    return sum;
  }

  const WarpSlices<T>& matrix_;
  const Values* x_;
};

// Of one column, as in columns_product.hpp.
template <class Format, Port P, class T, int K, class F>
CPUFREE_KERNEL_FN void multiply_column(P& port, const WarpSlices<T>& matrix, const SliceRows& rows,
                                       const Columns<T, K>* x, int column, F&& f) {
  if (!has_rows(port, rows)) return;
  const WarpColumns<T, K> product(matrix, x);
  const int lane = port.lane() % P::warp_width;
  each_turn<AccurateSum<T>>(port, rows, f, [&](std::int32_t s) {
    return product.template accurate_sum<Format::kinds>(port, s, lane, column);
  });
}

// Rows go to threads as each_thin gives them, lanes sharing rows or not.
template <class Format, Port P, class T, int K, class F>
CPUFREE_KERNEL_FN void multiply_columns(P& port, const WarpSlices<T>& matrix, const SliceRows& rows,
                                        const Columns<T, K>* x, F&& f) {
  if (!has_rows(port, rows)) return;
  const WarpColumns<T, K> product(matrix, x);
  const int lane = port.lane() % P::warp_width;
  each_turn<Columns<T, K>>(port, rows, f, [&](std::int32_t s) {
    return product.template lane_sum<Format::kinds>(port, s, lane);
  });
}

}  // namespace cpufree
