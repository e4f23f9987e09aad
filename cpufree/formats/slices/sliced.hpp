// Matrix format: slices of `W` rows, entries column by column ("sliced ELL"), for engines whose
// lanes are SIMD lanes. A column of a slice whose W indices are consecutive stores the first one
// only, and is read by a vector load: on grids that is nearly all of them, and saves both the
// gather and 28 of 32 index bytes. Values are stored as they are; each row is summed in the order
// of its columns, so the format changes no bit of the product. A matrix may have its values in
// single precision as well, for kernels that read them so (SingleSlices): then all products but
// accurate ones are with the rounded matrix.
//
// Complex matrices are real ones of twice the size, whose unknowns 2 k and 2 k + 1 are real and
// imaginary part: an entry a + b i is the block (a, -b; b, a). With `pairs`, a and b are stored
// once, as if they were entries (2 i, 2 j) and (2 i + 1, 2 j + 1), and each of them meets both
// parts of the operand: half the bytes of the values, a quarter of those of indices. Such matrices
// have no values in single precision.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/block.hpp"
#include "cpufree/formats/accurate_sum.hpp"
#include "cpufree/formats/local.hpp"
#include "cpufree/formats/slices/slice_codes.hpp"

namespace cpufree {

// `kNarrow`: other indices take 16 bits where those of a slice lie within 65 536 of one another.
// That takes less memory, and up to a quarter more time where the matrix is in a cache.
template <class T, int W, bool kNarrow = false>
struct Sliced {
  using Value = T;
  using Single = Sliced<float, W, true>;  // of levels of multigrid
  static constexpr int width = W;
  static constexpr int kAhead = 32;  // columns fetched ahead: hardware prefetchers lag behind here

  const std::int64_t* slice_ptr = nullptr;  // slices + 1: first column of each slice
  const std::int32_t* base = nullptr;       // columns: first index (>= 0), or ~(gathered column)
  const std::int32_t* origin = nullptr;     // of each slice, of its narrow indices; -1: wide
  const std::uint16_t* narrow = nullptr;    // W indices for each gathered column, from the origin
  const std::int32_t* gather = nullptr;     // the same of wide slices, as they are
  const T* val = nullptr;                   // W values for each column; padding is 0
  const float* single = nullptr;            // the same, rounded; null: there are none
  bool pairs = false;

  // Rows [begin, end); `start` is the slice that holds the first W of them.
  struct Rows {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::int64_t start = 0;
  };

  // Calls f(row, lane, (A x)(row)) for all rows of the range, x(column) the operand. Engines with
  // one thread per block.
  template <class Format = void, Port P, class X, class F>
  CPUFREE_KERNEL_FN void multiply(P&, const Rows& rows, X&& x, F&& f) const {
    static_assert(P::width == W, "slices are as wide as the engine's lanes");
    std::int64_t slice = rows.start;
    std::int32_t row = rows.begin;
    for (; row + W <= rows.end; row += W, ++slice) {
      const Sums<SumOf<T, X>> sums = sums_of<Format>(slice, x);
      CPUFREE_INDEPENDENT
      for (int l = 0; l < W; ++l) f(row + l, l, sums.value[l]);
    }
    if (row >= rows.end) return;
    const Sums<SumOf<T, X>> sums = sums_of<Format>(slice, x);
    for (int l = 0; row + l < rows.end; ++l) f(row + l, l, sums.value[l]);
  }

  // The values that products with the operand X read.
  template <class Format, class X>
  CPUFREE_KERNEL_FN const auto* values() const {
    if constexpr (reads_singles<Format, X>())
      return single;
    else
      return val;
  }

  template <Port P>
  CPUFREE_KERNEL_FN Sliced resident(P&, std::byte*) const {
    return *this;
  }

 private:
  template <class S>
  struct Sums {
    S value[W];
  };

  template <class Format, class X>
  CPUFREE_KERNEL_FN Sums<SumOf<T, X>> sums_of(std::int64_t slice, const X& x) const {
    return pairs ? multiply_pairs(slice, x) : multiply_slice<Format>(slice, x);
  }

  // Out of line, so that loops of kernels have one product in them.
  template <class X>
  CPUFREE_APART_FN Sums<SumOf<T, X>> multiply_pairs(std::int64_t slice, const X x) const {
    Sums<SumOf<T, X>> sums;
    const auto take = [&](const auto& own, const auto& other) {
      for (int l = 0; l < W; l += 2) {
        sums.value[l] = own[l];
        sums.value[l] += negative(own[l + 1]);
        sums.value[l + 1] = other[l];
        sums.value[l + 1] += other[l + 1];
      }
    };
    if constexpr (is_cold<X>) {
      SumOf<T, X> own[W] = {}, other[W] = {};  // with the same part of the operand, and the other
      each_column(slice, x, [&](const T* v, const T* part) {
        for (int l = 0; l < W; ++l) add_product(own[l], v[l], part[l]);
        for (int l = 0; l < W; ++l) add_product(other[l], v[l], part[l ^ 1]);
      });
      take(own, other);
    } else {
      // Compilers make no vectors of these loops, which then take twice the time.
      static_assert(W == 8, "as many lanes as change places below");
      using Lanes [[gnu::vector_size(W * sizeof(T))]] = T;
      Lanes own = {}, other = {};
      each_column(slice, x, [&](const T* v, const T* part) {
        Lanes a, same;
        for (int l = 0; l < W; ++l) a[l] = v[l], same[l] = part[l];
        own += a * same;
        other += a * __builtin_shufflevector(same, same, 1, 0, 3, 2, 5, 4, 7, 6);
      });
      take(own, other);
    }
    return sums;
  }

  // f(values, operand) of the lanes of each column of a slice.
  template <class X, class F>
  CPUFREE_KERNEL_FN void each_column(std::int64_t slice, const X& x, F&& f) const {
    const std::int64_t end = slice_ptr[slice + 1];
    const T* v = val + slice_ptr[slice] * W;
    for (std::int64_t c = slice_ptr[slice]; c < end; ++c, v += W) {
      __builtin_prefetch(v + kAhead * W);
      const std::int32_t first = base[c];
      const std::int32_t* const gathered = gather + static_cast<std::int64_t>(~first) * W;
      T part[W];
      if (first >= 0)
        for (int l = 0; l < W; ++l) part[l] = x(first + l);
      else
        for (int l = 0; l < W; ++l) part[l] = x(gathered[l]);
      f(v, part);
    }
  }

  template <class Format, class X>
  CPUFREE_KERNEL_FN Sums<SumOf<T, X>> multiply_slice(std::int64_t slice, const X x) const {
    Sums<SumOf<T, X>> sums = {};
    const std::int64_t end = slice_ptr[slice + 1];
    const std::int32_t from = kNarrow ? origin[slice] : -1;
    const auto* v = values<Format, X>() + slice_ptr[slice] * W;
    for (std::int64_t c = slice_ptr[slice]; c < end; ++c, v += W) {
      __builtin_prefetch(v + kAhead * W);
      const std::int32_t first = base[c];
      const std::int64_t gathered = static_cast<std::int64_t>(~first) * W;
      if (first >= 0) {
        for (int l = 0; l < W; ++l) add_product(sums.value[l], static_cast<T>(v[l]), x(first + l));
      } else if (from >= 0) {
        std::int32_t index[W];
        for (int l = 0; l < W; ++l) index[l] = from + narrow[gathered + l];
        for (int l = 0; l < W; ++l) add_product(sums.value[l], static_cast<T>(v[l]), x(index[l]));
      } else {
        const std::int32_t* const index = gather + gathered;
        for (int l = 0; l < W; ++l) add_product(sums.value[l], static_cast<T>(v[l]), x(index[l]));
      }
    }
    return sums;
  }
};

}  // namespace cpufree
