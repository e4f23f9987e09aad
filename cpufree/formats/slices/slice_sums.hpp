// Sums over a row's entries in a chunk: what warp_slices.hpp does with entries once it has them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpufree/base/annotate.hpp"
#include "cpufree/formats/accurate_sum.hpp"
#include "cpufree/formats/slices/slice_entries.hpp"

namespace cpufree {

// `x` is the operand (Operand), `entries` the row's in the chunk (slice_entries.hpp).
template <class T>
struct SliceSums {
  // sum + N entries of a row, all of them loaded before the first is used.
  template <int N, class E, class X>
  CPUFREE_KERNEL_FN static T chunk(const E& entries, X&& x, T sum) {
    std::int32_t column[N];
    T value[N];
    T operand[N];
    entries.take_columns(column);
    entries.take_values(value);
    x.fetch(column, operand);
    CPUFREE_UNROLL
    for (int u = 0; u < N; ++u) sum += value[u] * operand[u];
    return sum;
  }

  // The same for the number of entries that is left, at most N: known lengths take half the
  // instructions of one loop with conditions.
  template <int N, class E, class X>
  CPUFREE_KERNEL_FN static T rest(int left, const E& entries, X&& x, T sum) {
    if constexpr (N <= 0)
      return sum;
    else
      return left == N ? chunk<N>(entries, x, sum) : rest<N - E::kGrain>(left, entries, x, sum);
  }

  // n entries, chunk by chunk. There is one copy of a full chunk.
  template <class E, class X>
  CPUFREE_KERNEL_FN static T chunks_sum(int n, E entries, X&& x) {
    T sum = 0;
    int left = n;
    CPUFREE_ONE_COPY
    for (; left >= E::kWidth; left -= E::kWidth, entries.at += E::kChunkBytes)
      sum = chunk<E::kWidth>(entries, x, sum);
    return left == 0 ? sum : rest<E::kWidth - E::kGrain>(left, entries, x, sum);
  }

  // The n entries of a chunk that is not full, at most N.
  template <int N, class E>
  CPUFREE_KERNEL_FN static void take_some(int n, const E& entries,
                                          std::int32_t (&column)[E::kWidth],
                                          T (&value)[E::kWidth]) {
    if constexpr (N > 0) {
      if (n != N) return take_some<N - E::kGrain>(n, entries, column, value);
      std::int32_t columns[N];
      T values[N];
      entries.take_columns(columns);
      entries.take_values(values);
      CPUFREE_UNROLL
      for (int k = 0; k < N; ++k) column[k] = columns[k], value[k] = values[k];
    }
  }

  // sum + the products of n entries. Columns beyond are looked up in vain.
  template <int N, class X>
  CPUFREE_KERNEL_FN static T times(const std::int32_t (&column)[N], const T (&value)[N], int n,
                                   X&& x, T sum) {
    std::int32_t columns[N];
    T operand[N];
    CPUFREE_UNROLL
    for (int q = 0; q < N; ++q) columns[q] = q < n ? column[q] : column[0];
    x.fetch(columns, operand);
    CPUFREE_UNROLL
    for (int q = 0; q < N; ++q)
      if (q < n) sum += value[q] * operand[q];
    return sum;
  }

  // The entries of a slice, `width` of each lane, chunk by chunk, as AnyEntries gives them.
  // go_on(at, end): all that was to be read of the chunk at `at` has been; where the next one is,
  // if that was not the end.
  template <class E, class X, class F>
  CPUFREE_KERNEL_FN static SumOf<T, X> any_sum(const E& entries, const std::byte* at, int width,
                                               X&& x, F&& go_on) {
    SumOf<T, X> sum = {};
    CPUFREE_ONE_COPY
    for (int left = width;;) {
      const int n = left < entries.width() ? left : entries.width();
      sum = entries.chunk(at, n, x, sum);
      left -= n;
      at = go_on(at, left == 0);
      if (left == 0) return sum;
    }
  }
};

}  // namespace cpufree
