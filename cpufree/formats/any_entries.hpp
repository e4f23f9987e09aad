// Sums over the rows of a slice in one short code for all formats, for products that are rare: what
// kernels compute in every iteration has a code for each (slice_sums.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpufree/base/annotate.hpp"
#include "cpufree/formats/accurate_sum.hpp"
#include "cpufree/formats/slices/slice_codes.hpp"
#include "cpufree/formats/slices/slice_entries.hpp"

namespace cpufree {

// The entries of a lane, of slices of `kKinds`. `numbers`: values are numbers in the dictionary.
template <class T, SliceKinds kKinds, class Dictionary = const T*>
struct AnyEntries {
  enum class Kind { plain, coded, runs };
  Kind kind;
  WideColumns columns;
  bool numbers;
  Dictionary dictionary;
  int lane;

  CPUFREE_KERNEL_FN int width() const { return kind == Kind::runs ? kRunWidth : kChunkWidth; }
  CPUFREE_KERNEL_FN int chunk_bytes() const {
    return as_they_are(nullptr, [](const auto& entries) { return entries.kChunkBytes; });
  }

  // sum + the n entries of the chunk that begins at `at`.
  template <class X, class S>
  CPUFREE_KERNEL_FN S chunk(const std::byte* at, int n, X&& x, S sum) const {
    CPUFREE_ONE_COPY
    for (int k = 0; k < n;) {
      std::int32_t column[kPiece];
      T value[kPiece];
      T operand[kPiece];
      const int taken = piece(at, k, n, column, value);
      x.fetch(column, operand);
      CPUFREE_UNROLL
      for (int q = 0; q < kPiece; ++q)
        if (q < taken && k + q < n) add_product(sum, value[q], operand[q]);
      k += taken;
    }
    return sum;
  }

 private:
  // Some entries from number k on, of n. Returns how many.
  CPUFREE_KERNEL_FN int piece(const std::byte* at, int k, int n, std::int32_t (&column)[kPiece],
                              T (&value)[kPiece]) const {
    return as_they_are(at, [&](const auto& entries) {
      constexpr int N = std::remove_cvref_t<decltype(entries)>::kPieceWidth;
      std::int32_t columns_here[N];
      T values_here[N];
      entries.piece(k, n, columns_here, values_here);
      CPUFREE_UNROLL
      for (int q = 0; q < kPiece; ++q) {
        column[q] = columns_here[q < N ? q : 0];
        value[q] = values_here[q < N ? q : 0];
      }
      return N;
    });
  }

  template <class F>
  CPUFREE_KERNEL_FN int as_they_are(const std::byte* at, F&& f) const {
    if (kind == Kind::plain) return f(PlainEntries<T, StoredAs<T, kKinds>>{at, lane});
    if constexpr (!has_kind(kKinds, kSingles)) {
      return with_values<RunEntries>(at, f);
    } else {
      if constexpr (has_kind(kKinds, kRuns))
        if (kind == Kind::runs) return with_values<RunEntries>(at, f);
      return with_values<CodedEntries>(at, f);
    }
  }
  template <template <class, class, class> class Entries, class F>
  CPUFREE_KERNEL_FN int with_values(const std::byte* at, F&& f) const {
    constexpr bool plain = has_kind(kKinds, kPlainValues), coded = has_kind(kKinds, kCodedValues);
    if constexpr (plain)
      if (!coded || !numbers)
        return f(
            Entries<T, WideColumns, PlainValues<T, StoredAs<T, kKinds>>>{at, lane, columns, {}});
    if constexpr (coded)
      return f(
          Entries<T, WideColumns, CodedValues<T, Dictionary>>{at, lane, columns, {dictionary}});
  }
};

template <class T, SliceKinds kKinds, class D>
CPUFREE_KERNEL_FN AnyEntries<T, kKinds, D> any_entries(ColumnCode code,
                                                       const std::int32_t (&base)[kWindows],
                                                       bool numbers, const D& dictionary,
                                                       int lane) {
  using Kind = typename AnyEntries<T, kKinds, D>::Kind;
  const Kind kind = code == ColumnCode::plain ? Kind::plain
                    : in_runs(code)           ? Kind::runs
                                              : Kind::coded;
  return {kind, {windows_of(code, base), window_step(code)}, numbers, dictionary, lane};
}

}  // namespace cpufree
