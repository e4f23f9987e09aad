// Matrix format: slices of 32 rows, entries column by column ("sliced ELL"), for engines whose
// threads run in warps of 32: one row per thread, coalesced loads. A slice is as wide as most of
// its rows need; what longer rows have beyond that is a tail of its own, which the whole warp sums.
//
// Order of summation of a row: its entries within the slice in the order of the columns, one after
// the other; then its tail, entry k by lane k mod 32, lanes by halves. It depends on the matrix
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpufree/device/port.hpp"

namespace cpufree {

inline constexpr int kWarp = 32;

// A slice: entry k of its row l is at `first + 32 k + l`, k < width. The tail of row l, if `tails`
// is not negative, is at [tail_ptr[tails + l], tail_ptr[tails + l + 1]) of the same arrays.
struct alignas(16) WarpSlice {
  std::int64_t first = 0;
  std::int32_t width = 0;
  std::int32_t tails = -1;
};

// One block's share of a matrix: its slices, interior rows first, each range of rows beginning with
// a slice of its own. Positions in `slice` and `tail_ptr` count from the share's `col` and `val`.
template <class T>
struct WarpSlices {
  using Value = T;
  const WarpSlice* slice = nullptr;
  const std::int64_t* tail_ptr = nullptr;
  const std::int32_t* col = nullptr;  // padding repeats a column of its row, or is the row itself
  const T* val = nullptr;             // padding is 0
  std::int64_t entries = 0;           // of col and val, tails and padding included
  std::int32_t slices = 0;
  std::int32_t tails = 0;  // entries of tail_ptr

  // Rows [begin, end); `start` is the slice that holds the first 32 of them.
  struct Rows {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::int32_t start = 0;
  };

  // Calls f(row, lane, (A x)(row)) for all rows of the range, each from the thread to which
  // `for_each` gives that row. `x` is the operand (see
  // PacketOperand).
  template <Port P, class X, class F>
  CPUFREE_KERNEL_FN void multiply(P& port, const Rows& rows, X&& x, F&& f) const {
    const int lane = port.lane() % kWarp;
    const int warps = port.lanes() / kWarp;
    std::int32_t row = rows.begin + port.lane();
    std::int32_t s = rows.start + port.lane() / kWarp;
    if (row - lane >= rows.end) return;
    WarpSlice mine = slice[s];
    while (true) {
      const std::int32_t next = row + port.lanes();
      WarpSlice ahead = mine;
      if (next - lane < rows.end) ahead = slice[s + warps];  // on its way while this one is summed
      T sum = slice_sum(mine, lane, x);
      if (mine.tails >= 0) sum += tail_sum(port, mine, lane, x);
      if (row < rows.end) f(row, 0, sum);
      if (next - lane >= rows.end) return;
      mine = ahead;
      row = next;
      s += warps;
    }
  }

  // A copy of my block's share in `fast`. Ends with a barrier.
  template <Port P>
  CPUFREE_KERNEL_FN WarpSlices resident(P& port, std::byte* fast) const {
    WarpSlices copy = *this;
    copy.val = move(port, val, entries, fast);
    copy.col = move(port, col, entries, fast);
    copy.slice = move(port, slice, slices, fast);
    copy.tail_ptr = move(port, tail_ptr, tails, fast);
    port.sync_block();
    return copy;
  }

 private:
  // sum + N entries of a row, all of them loaded before the first is used.
  template <int N, class X>
  CPUFREE_KERNEL_FN static T chunk(const T* v, const std::int32_t* c, X&& x, T sum) {
    std::int32_t column[N];
    T value[N];
    T operand[N];
    CPUFREE_UNROLL
    for (int u = 0; u < N; ++u) column[u] = c[kWarp * u];
    CPUFREE_UNROLL
    for (int u = 0; u < N; ++u) value[u] = v[kWarp * u];
    x.fetch(column, operand);
    CPUFREE_UNROLL
    for (int u = 0; u < N; ++u) sum += value[u] * operand[u];
    return sum;
  }

  // The same for the number of entries that is left, at most N: known lengths take half the
  // instructions of one loop with conditions.
  template <int N, class X>
  CPUFREE_KERNEL_FN static T rest(int left, const T* v, const std::int32_t* c, X&& x, T sum) {
    if constexpr (N == 0)
      return sum;
    else
      return left == N ? chunk<N>(v, c, x, sum) : rest<N - 1>(left, v, c, x, sum);
  }

  template <class X>
  CPUFREE_KERNEL_FN T slice_sum(const WarpSlice& mine, int lane, X&& x) const {
    constexpr int kAhead = std::remove_reference_t<X>::ahead;
    const T* v = val + mine.first + lane;
    const std::int32_t* c = col + mine.first + lane;
    T sum = 0;
    int left = mine.width;
    for (; left > kAhead; left -= kAhead, v += kWarp * kAhead, c += kWarp * kAhead)
      sum = chunk<kAhead>(v, c, x, sum);
    return rest<kAhead>(left, v, c, x, sum);
  }

  template <Port P, class X>
  CPUFREE_KERNEL_FN T tail_sum(P& port, const WarpSlice& mine, int lane, X&& x) const {
    T sum = 0;
    std::int64_t begin = tail_ptr[mine.tails + lane];
    std::int64_t end = tail_ptr[mine.tails + lane + 1];
    for (unsigned rows = port.warp_ballot(begin < end); rows != 0U; rows &= rows - 1U) {
      const int l = port.lowest_bit(rows);
      const std::int64_t last = port.warp_broadcast(end, l);
      T part = 0;
      for (std::int64_t k = port.warp_broadcast(begin, l) + lane; k < last; k += kWarp)
        part += val[k] * x(col[k]);
      part = port.warp_sum(part);
      if (lane == l) sum = part;
    }
    return sum;
  }

  template <Port P, class V>
  CPUFREE_KERNEL_FN static const V* move(P& port, const V* from, std::int64_t count,
                                         std::byte*& fast) {
    V* const to = reinterpret_cast<V*>(fast);
    for (std::int64_t k = port.lane(); k < count; k += port.lanes()) to[k] = from[k];
    fast += (static_cast<std::size_t>(count) * sizeof(V) + 15) / 16 * 16;
    return to;
  }
};

}  // namespace cpufree
