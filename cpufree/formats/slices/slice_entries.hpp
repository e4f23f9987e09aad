// How entries lie in a chunk of a slice (warp_slices.hpp), and how a thread takes those of its row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/problem/blocks/slice_rows.hpp"

namespace cpufree {

inline constexpr int kChunkWidth = 8;  // entries of a row
inline constexpr int kPiece = 4;       // of them, taken at a time where all are too many
inline constexpr int kRun = 3;         // neighbouring columns that are stored as one
inline constexpr int kRunsOfChunk = 3;
inline constexpr int kRunWidth = kRun * kRunsOfChunk;  // entries of a row in a chunk of runs
inline constexpr int kPortionBytes = 2560;  // of the chunks that travel together, if more than one
inline constexpr int kWindowBits = 14;      // of a column's distance from its window
inline constexpr int kWindows = 4;

// How many chunks of N bytes travel together.
constexpr int chunks_of_portion(int chunk_bytes) {
  return kPortionBytes < 2 * chunk_bytes ? 1 : kPortionBytes / chunk_bytes;
}

// Entries of one row that lie in a chunk of at most kWidth: columns and values. `at` is where the
// chunk begins. take_...(): all N of them, a multiple of kGrain. piece(): kPieceWidth from entry k
// on, k a multiple of that, of a chunk of n; what is beyond the last one is anything that can be
// looked up.
template <class T, class Stored = T>
struct PlainEntries {
  static constexpr int kWidth = kChunkWidth, kGrain = 1, kPieceWidth = kPiece;
  static constexpr int kChunkBytes =
      kSliceRows * kChunkWidth * static_cast<int>(4 + sizeof(Stored));
  const std::byte* at;
  int lane;
  template <int N>
  CPUFREE_KERNEL_FN void take_columns(std::int32_t (&column)[N]) const {
    const auto* const col = reinterpret_cast<const std::int32_t*>(at) + lane;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) column[k] = col[kSliceRows * k];
  }
  template <int N>
  CPUFREE_KERNEL_FN void take_values(T (&value)[N]) const {
    const auto* const val = reinterpret_cast<const Stored*>(at + N * kSliceRows * 4) + lane;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) value[k] = static_cast<T>(val[kSliceRows * k]);
  }
  CPUFREE_KERNEL_FN void piece(int k, int n, std::int32_t (&column)[kPiece],
                               T (&value)[kPiece]) const {
    const auto* const col = reinterpret_cast<const std::int32_t*>(at) + lane;
    const auto* const val = reinterpret_cast<const Stored*>(at + n * kSliceRows * 4) + lane;
    CPUFREE_UNROLL
    for (int q = 0; q < kPiece; ++q) {
      const int e = k + q < n ? k + q : k;
      column[q] = col[kSliceRows * e];
      value[q] = static_cast<T>(val[kSliceRows * e]);
    }
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
    return window_of(code) + distance(code);
  }

 protected:
  CPUFREE_KERNEL_FN static std::int32_t distance(std::uint32_t code) {
    return static_cast<std::int32_t>(code & ((1U << kWindowBits) - 1U));
  }
  CPUFREE_KERNEL_FN std::int32_t window_of(std::uint32_t code) const {
    const std::int32_t low = (code & (1U << kWindowBits)) != 0U ? base[1] : base[0];
    const std::int32_t high = (code & (1U << kWindowBits)) != 0U ? base[3] : base[2];
    return (code & (2U << kWindowBits)) != 0U ? high : low;
  }
};

// The same with distances of several columns.
struct WideColumns : FarColumns {
  std::int32_t step;
  CPUFREE_KERNEL_FN std::int32_t operator()(std::uint32_t code) const {
    return window_of(code) + step * distance(code);
  }
};

// Values as they are, or rounded to another type, and their numbers in a dictionary.
template <class T, class Stored = T>
struct PlainValues {
  struct alignas(2 * sizeof(Stored)) Two {
    Stored value[2];
  };
  using One = Stored;
  CPUFREE_KERNEL_FN void split(const Two& two, T& a, T& b) const {
    a = static_cast<T>(two.value[0]);
    b = static_cast<T>(two.value[1]);
  }
  CPUFREE_KERNEL_FN T value(One one) const { return static_cast<T>(one); }
};

template <class T, class Dictionary = const T*>
struct CodedValues {
  using Two = std::uint16_t;
  using One = std::uint8_t;
  Dictionary dictionary;
  CPUFREE_KERNEL_FN void split(Two two, T& a, T& b) const {
    a = dictionary[two & 0xffU];
    b = dictionary[two >> 8U];
  }
  CPUFREE_KERNEL_FN T value(One one) const { return dictionary[one]; }
};

template <class T, class Columns, class Values>
struct CodedEntries {
  static constexpr int kWidth = kChunkWidth, kGrain = 1, kPieceWidth = kPiece;
  static constexpr int kChunkBytes =
      kSliceRows * kChunkWidth * static_cast<int>(2 + sizeof(typename Values::One));
  const std::byte* at;
  int lane;
  Columns columns;
  Values values;
  template <int N>
  CPUFREE_KERNEL_FN void take_columns(std::int32_t (&column)[N]) const {
    constexpr int kPairs = N / 2;
    const auto* const codes = reinterpret_cast<const std::uint32_t*>(at) + lane;
    CPUFREE_UNROLL
    for (int u = 0; u < kPairs; ++u) {
      const std::uint32_t both = codes[kSliceRows * u];
      column[2 * u] = columns(both & 0xffffU);
      column[2 * u + 1] = columns(both >> 16U);
    }
    if constexpr (N % 2 != 0)
      column[N - 1] = columns(
          reinterpret_cast<const std::uint16_t*>(at + kPairs * kSliceRows * std::size_t{4})[lane]);
  }
  template <int N>
  CPUFREE_KERNEL_FN void take_values(T (&value)[N]) const {
    using Two = typename Values::Two;
    using One = typename Values::One;
    constexpr int kPairs = N / 2;
    const std::byte* const behind = at + N * kSliceRows * 2;
    const auto* const pairs = reinterpret_cast<const Two*>(behind) + lane;
    CPUFREE_UNROLL
    for (int u = 0; u < kPairs; ++u)
      values.split(pairs[kSliceRows * u], value[2 * u], value[2 * u + 1]);
    if constexpr (N % 2 != 0)
      value[N - 1] = values.value(
          reinterpret_cast<const One*>(behind + kPairs * kSliceRows * sizeof(Two))[lane]);
  }
  CPUFREE_KERNEL_FN void piece(int k, int n, std::int32_t (&column)[kPiece],
                               T (&value)[kPiece]) const {
    using Two = typename Values::Two;
    using One = typename Values::One;
    const std::byte* const behind = at + n * kSliceRows * 2;
    const auto* const codes = reinterpret_cast<const std::uint32_t*>(at) + lane;
    const auto* const pairs = reinterpret_cast<const Two*>(behind) + lane;
    CPUFREE_UNROLL
    for (int q = 0; q < kPiece; q += 2) {
      const int e = k + q < n ? k + q : k;
      const int u = e / 2;
      if (e + 1 < n) {
        const std::uint32_t both = codes[kSliceRows * u];
        column[q] = columns(both & 0xffffU), column[q + 1] = columns(both >> 16U);
        values.split(pairs[kSliceRows * u], value[q], value[q + 1]);
      } else {
        column[q] = column[q + 1] =
            columns(reinterpret_cast<const std::uint16_t*>(codes - lane + kSliceRows * u)[lane]);
        value[q] = value[q + 1] =
            values.value(reinterpret_cast<const One*>(pairs - lane + kSliceRows * u)[lane]);
      }
    }
  }
};

// Runs, one behind the other, a chunk being N of them: the codes of the first columns, then
// the first two values of each, then the third ones.
template <class T, class Columns, class Values>
struct RunEntries {
  using Two = typename Values::Two;
  using One = typename Values::One;
  static_assert(kRun == 3, "values of a run: a pair and one");
  static constexpr int kWidth = kRunWidth, kGrain = kRun, kPieceWidth = kRun;
  static constexpr int kRunBytes = kSliceRows * static_cast<int>(2 + sizeof(Two) + sizeof(One));
  static constexpr int kChunkBytes = kRunsOfChunk * kRunBytes;
  const std::byte* at;
  int lane;
  Columns columns;
  Values values;

  template <int N>
  CPUFREE_KERNEL_FN void take_columns(std::int32_t (&column)[N]) const {
    static_assert(N % kRun == 0);
    CPUFREE_UNROLL
    for (int q = 0; q < N / kRun; ++q) {
      const std::int32_t first = first_column(q);
      CPUFREE_UNROLL
      for (int k = 0; k < kRun; ++k) column[kRun * q + k] = first + k;
    }
  }
  template <int N>
  CPUFREE_KERNEL_FN void take_values(T (&value)[N]) const {
    CPUFREE_UNROLL
    for (int q = 0; q < N / kRun; ++q)
      run_values(q, value[kRun * q], value[kRun * q + 1], value[kRun * q + 2]);
  }
  CPUFREE_KERNEL_FN void piece(int k, int, std::int32_t (&column)[kRun], T (&value)[kRun]) const {
    const std::int32_t first = first_column(k / kRun);
    CPUFREE_UNROLL
    for (int q = 0; q < kRun; ++q) column[q] = first + q;
    run_values(k / kRun, value[0], value[1], value[2]);
  }

 private:
  CPUFREE_KERNEL_FN const std::byte* run(int q) const { return at + q * kRunBytes; }
  CPUFREE_KERNEL_FN std::int32_t first_column(int q) const {
    return columns(reinterpret_cast<const std::uint16_t*>(run(q))[lane]);
  }
  CPUFREE_KERNEL_FN void run_values(int q, T& a, T& b, T& c) const {
    const std::byte* const behind = run(q) + kSliceRows * 2;
    values.split(reinterpret_cast<const Two*>(behind)[lane], a, b);
    c = values.value(reinterpret_cast<const One*>(behind + kSliceRows * sizeof(Two))[lane]);
  }
};

}  // namespace cpufree
