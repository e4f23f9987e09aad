// Matrix format: slices of 32 rows, entries column by column ("sliced ELL"), for engines whose
// threads run in warps of 32: one row per thread, coalesced loads. A slice is as wide as most of
// its rows need; what longer rows have beyond that is a tail of its own, which the whole warp sums.
//
// Columns take 16 bits where they lie within 65 536 of one another, or in four windows of 16 384;
// values take 8 bits in a block's share that has at most 256 different ones. Nothing is lost: sums
// are the same to the last bit in every code. Coded entries lie in pairs, one load for two.
//
// Order of summation of a row: its entries within the slice in the order of the columns, one after
// the other; then its tail, entry k by lane k mod 32, lanes by halves. It depends on the matrix
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpufree/base/index.hpp"
#include "cpufree/device/port.hpp"

namespace cpufree {

inline constexpr std::int64_t kSliceUnit = 128;  // bytes: slices begin at multiples of it
inline constexpr int kWindowBits = 14;           // of a column's distance from its window
inline constexpr int kWindows = 4;
inline constexpr std::size_t kMostValues = 256;  // of a dictionary

// How a slice stores its columns: as they are; as the distance from base[0] in 16 bits; as the
// number of a window and the distance from its base.
enum class ColumnCode : std::int32_t { plain, near, far };

// A slice: its columns begin at `first` units of the share's bytes, its values right behind.
// Plain: entry k of its row l is number 32 k + l. Coded: entries k and k + 1, k even, are the two
// of pair 16 k + l; values are in the dictionary where the share has one. The tail of row l, if
// `tails` is not negative, is [tail_ptr[tails + l], tail_ptr[tails + l + 1]) of the share's tails.
// The head is what every slice needs: one load.
struct alignas(16) SliceHead {
  std::uint32_t first = 0;
  std::int32_t width = 0;  // entries of a row, tail excepted; even if coded
  std::int32_t tails = -1;
  ColumnCode code = ColumnCode::plain;
};
struct alignas(16) WarpSlice : SliceHead {
  std::int32_t base[kWindows] = {};
};

// What a share takes, apart from its values' type.
struct WarpSlicesSize {
  std::int64_t units = 0;
  std::int32_t slices = 0;
  std::int32_t tails = 0;         // entries of tail_ptr
  std::int64_t tail_entries = 0;  // of tail_col and tail_val
  std::int32_t values = 0;        // of the dictionary; 0: values are not coded
  // All slices have 16-bit columns as they are (base 0), and no tails.
  bool simple = false;
};

// Bytes of fast memory for a share (WarpSlices::resident).
CPUFREE_FN std::size_t resident_matrix_bytes(const WarpSlicesSize& size, std::size_t value_bytes) {
  const auto bytes = [](std::int64_t count, std::size_t each) {
    return round_up16(static_cast<std::size_t>(count) * each);
  };
  return bytes(size.units, kSliceUnit) + bytes(size.slices, sizeof(WarpSlice)) +
         bytes(size.tails, sizeof(std::int64_t)) + bytes(size.tail_entries, 4) +
         bytes(size.tail_entries, value_bytes) + bytes(size.values, value_bytes);
}

// Entries of one row of a slice, taken N at a time: columns and values.
template <class T>
struct PlainEntries {
  static constexpr int step = 1;
  const std::int32_t* col;
  const T* val;
  template <int N>
  CPUFREE_KERNEL_FN void take(std::int32_t (&column)[N], T (&value)[N]) {
    CPUFREE_UNROLL
    for (int u = 0; u < N; ++u) column[u] = col[kWarp * u];
    CPUFREE_UNROLL
    for (int u = 0; u < N; ++u) value[u] = val[kWarp * u];
    col += kWarp * N;
    val += kWarp * N;
  }
};

struct NearColumns {
  std::int32_t base;
  CPUFREE_KERNEL_FN std::int32_t operator()(std::uint32_t code) const {
    return base + static_cast<std::int32_t>(code);
  }
};

struct SimpleColumns {
  CPUFREE_KERNEL_FN std::int32_t operator()(std::uint32_t code) const {
    return static_cast<std::int32_t>(code);
  }
};

struct FarColumns {
  std::int32_t base[kWindows];
  CPUFREE_KERNEL_FN std::int32_t operator()(std::uint32_t code) const {
    const std::int32_t low = (code & (1U << kWindowBits)) != 0U ? base[1] : base[0];
    const std::int32_t high = (code & (1U << kWindowBits)) != 0U ? base[3] : base[2];
    const std::int32_t from = (code & (2U << kWindowBits)) != 0U ? high : low;
    return from + static_cast<std::int32_t>(code & ((1U << kWindowBits) - 1U));
  }
};

// Two values, or two numbers of values.
template <class T>
struct PlainValues {
  struct alignas(2 * sizeof(T)) Pair {
    T value[2];
  };
  const Pair* pairs;
  CPUFREE_KERNEL_FN void get(std::int64_t pair, T& a, T& b) const {
    const Pair both = pairs[pair];
    a = both.value[0];
    b = both.value[1];
  }
};

template <class T>
struct CodedValues {
  const std::uint16_t* pairs;
  const T* dictionary;
  CPUFREE_KERNEL_FN void get(std::int64_t pair, T& a, T& b) const {
    const unsigned both = pairs[pair];
    a = dictionary[both & 0xffU];
    b = dictionary[both >> 8U];
  }
};

template <class T, class Columns, class Values>
struct PairedEntries {
  static constexpr int step = 2;
  const std::uint32_t* codes;
  Columns columns;
  Values values;
  template <int N>
  CPUFREE_KERNEL_FN void take(std::int32_t (&column)[N], T (&value)[N]) {
    static_assert(N % 2 == 0);
    CPUFREE_UNROLL
    for (int u = 0; u < N / 2; ++u) {
      const std::uint32_t both = codes[kWarp * u];
      column[2 * u] = columns(both & 0xffffU);
      column[2 * u + 1] = columns(both >> 16U);
    }
    CPUFREE_UNROLL
    for (int u = 0; u < N / 2; ++u) values.get(kWarp * u, value[2 * u], value[2 * u + 1]);
    codes += kWarp * (N / 2);
    values.pairs += kWarp * (N / 2);
  }
};

// One block's share of a matrix: its slices, interior rows first, each range of rows beginning with
// a slice of its own.
template <class T>
struct WarpSlices {
  using Value = T;
  const std::byte* bytes = nullptr;
  const WarpSlice* slice = nullptr;
  const std::int64_t* tail_ptr = nullptr;
  const std::int32_t* tail_col = nullptr;
  const T* tail_val = nullptr;
  const T* dictionary = nullptr;  // null: values are not coded
  WarpSlicesSize size;
  bool simple = false;  // size.simple, on chip: there a slice's head is not worth prefetching

  // Rows [begin, end); `start` is the slice that holds the first 32 of them.
  struct Rows {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::int32_t start = 0;
  };

  // Calls f(row, lane, (A x)(row)) for all rows of the range, each from the thread to which
  // `for_each` gives that row. `x` is the operand (Operand, PacketOperand). Of `port` all that is
  // used is the thread's number, how many there are, and what its warp can do.
  template <class P, class X, class F>
  CPUFREE_KERNEL_FN void multiply(P& port, const Rows& rows, X&& x, F&& f) const {
    const int lane = port.lane() % kWarp;
    const int warps = port.lanes() / kWarp;
    std::int32_t row = rows.begin + port.lane();
    std::int32_t s = rows.start + port.lane() / kWarp;
    if (row - lane >= rows.end) return;
    const Rows from{row, rows.end, s};
    if (simple && dictionary == nullptr)
      return multiply_simple(from, lane, warps, x, f, [lane](const std::uint32_t* p) {
        using Values = PlainValues<T>;
        return Values{reinterpret_cast<const typename Values::Pair*>(p) + lane};
      });
    if (simple)
      return multiply_simple(from, lane, warps, x, f,
                             [lane, known = dictionary](const std::uint32_t* p) {
                               const auto* const pairs = reinterpret_cast<const std::uint16_t*>(p);
                               return CodedValues<T>{pairs + lane, known};
                             });
    SliceHead mine = slice[s];
    while (true) {
      const std::int32_t next = row + port.lanes();
      SliceHead ahead = mine;
      if (next - lane < rows.end) ahead = slice[s + warps];  // on its way while this one is summed
      T sum = slice_sum(mine, s, lane, x);
      if (mine.tails >= 0) sum += tail_sum(port, mine.tails, lane, x);
      if (row < rows.end) f(row, 0, sum);
      if (next - lane >= rows.end) return;
      mine = ahead;
      row = next;
      s += warps;
    }
  }

  // What the slice s holds of its row `lane`, times x: all but its tail.
  template <class X>
  CPUFREE_KERNEL_FN T without_tail(std::int32_t s, int lane, X&& x) const {
    return slice_sum(slice[s], s, lane, x);
  }

  // A copy of my block's share in `fast`. Ends with a barrier.
  template <Port P>
  CPUFREE_KERNEL_FN WarpSlices resident(P& port, std::byte* fast) const {
    struct alignas(16) Sixteen {
      std::uint64_t words[2];
    };
    WarpSlices copy = *this;
    copy.simple = size.simple;
    copy.bytes = reinterpret_cast<const std::byte*>(
        move(port, reinterpret_cast<const Sixteen*>(bytes), size.units * (kSliceUnit / 16), fast));
    copy.slice = move(port, slice, size.slices, fast);
    copy.tail_ptr = move(port, tail_ptr, size.tails, fast);
    copy.tail_col = move(port, tail_col, size.tail_entries, fast);
    copy.tail_val = move(port, tail_val, size.tail_entries, fast);
    if (dictionary != nullptr) copy.dictionary = move(port, dictionary, size.values, fast);
    port.sync_block();
    return copy;
  }

 private:
  // The same for a simple share; `from`: my first row, and my warp's first slice. `values(p)`:
  // those at p. Small systems spend their time here, in the number of instructions.
  template <class X, class F, class V>
  CPUFREE_KERNEL_FN void multiply_simple(const Rows& from, int lane, int warps, X&& x, F&& f,
                                         V&& values) const {
    const std::byte* const all = bytes;
    const WarpSlice* mine = slice + from.start;
    const std::int32_t step = kWarp * warps;
    for (std::int32_t row = from.begin; row - lane < from.end; row += step, mine += warps) {
      const SliceHead head = *mine;
      const auto* const codes =
          reinterpret_cast<const std::uint32_t*>(all + kSliceUnit * head.first);
      const auto pairs = values(codes + std::int64_t{kWarp / 2} * head.width);
      const T sum = row_sum(paired(codes + lane, pairs), head.width, x);
      if (row < from.end) f(row, 0, sum);
    }
  }
  template <class V>
  CPUFREE_KERNEL_FN static PairedEntries<T, SimpleColumns, V> paired(const std::uint32_t* codes,
                                                                     const V& values) {
    return {codes, {}, values};
  }

  // sum + N entries of a row, all of them loaded before the first is used.
  template <int N, class E, class X>
  CPUFREE_KERNEL_FN static T chunk(E& entries, X&& x, T sum) {
    std::int32_t column[N];
    T value[N];
    T operand[N];
    entries.take(column, value);
    x.fetch(column, operand);
    CPUFREE_UNROLL
    for (int u = 0; u < N; ++u) sum += value[u] * operand[u];
    return sum;
  }

  // The same for the number of entries that is left, at most N: known lengths take half the
  // instructions of one loop with conditions.
  template <int N, class E, class X>
  CPUFREE_KERNEL_FN static T rest(int left, E& entries, X&& x, T sum) {
    if constexpr (N <= 0)
      return sum;
    else
      return left == N ? chunk<N>(entries, x, sum) : rest<N - E::step>(left, entries, x, sum);
  }

  template <class E, class X>
  CPUFREE_KERNEL_FN static T row_sum(E entries, int left, X&& x) {
    constexpr int kAhead = std::remove_reference_t<X>::ahead;
    T sum = 0;
    for (; left > kAhead; left -= kAhead) sum = chunk<kAhead>(entries, x, sum);
    return rest<kAhead>(left, entries, x, sum);
  }

  template <class X>
  CPUFREE_KERNEL_FN T slice_sum(const SliceHead& mine, std::int32_t s, int lane, X&& x) const {
    const std::byte* const start = bytes + kSliceUnit * mine.first;
    if (mine.code == ColumnCode::plain) {
      const auto* const col = reinterpret_cast<const std::int32_t*>(start);
      const auto* const val = reinterpret_cast<const T*>(col + std::int64_t{kWarp} * mine.width);
      return row_sum(PlainEntries<T>{col + lane, val + lane}, mine.width, x);
    }
    const std::int32_t (&base)[kWindows] = slice[s].base;
    if (mine.code == ColumnCode::near)
      return coded_sum(NearColumns{base[0]}, mine.width, start, lane, x);
    return coded_sum(FarColumns{{base[0], base[1], base[2], base[3]}}, mine.width, start, lane, x);
  }

  template <class C, class X>
  CPUFREE_KERNEL_FN T coded_sum(const C& columns, int width, const std::byte* start, int lane,
                                X&& x) const {
    const auto* const codes = reinterpret_cast<const std::uint32_t*>(start) + lane;
    const std::byte* const behind = start + std::int64_t{2 * kWarp} * width;
    if (dictionary == nullptr) {
      using Values = PlainValues<T>;
      const auto* const pairs = reinterpret_cast<const typename Values::Pair*>(behind) + lane;
      return row_sum(PairedEntries<T, C, Values>{codes, columns, {pairs}}, width, x);
    }
    const auto* const pairs = reinterpret_cast<const std::uint16_t*>(behind) + lane;
    return row_sum(PairedEntries<T, C, CodedValues<T>>{codes, columns, {pairs, dictionary}}, width,
                   x);
  }

  template <class P, class X>
  CPUFREE_KERNEL_FN T tail_sum(P& port, std::int32_t tails, int lane, X&& x) const {
    T sum = 0;
    std::int64_t begin = tail_ptr[tails + lane];
    std::int64_t end = tail_ptr[tails + lane + 1];
    for (unsigned rows = port.warp_ballot(begin < end); rows != 0U; rows &= rows - 1U) {
      const int l = port.lowest_bit(rows);
      const std::int64_t last = port.warp_broadcast(end, l);
      T part = 0;
      for (std::int64_t k = port.warp_broadcast(begin, l) + lane; k < last; k += kWarp)
        part += tail_val[k] * x(tail_col[k]);
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
    fast += round_up16(static_cast<std::size_t>(count) * sizeof(V));
    return to;
  }
};

}  // namespace cpufree
