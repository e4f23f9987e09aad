// Matrix format of a preconditioner's factors: one block's rows of a sparse matrix in single
// precision, products and sums in the type of the operand.
//
// Rows lie in slices of as many as a warp has threads, or a SIMD vector lanes, sorted by length
// within windows so that little is padded, each with its number. Columns take 16 bits where those
// of a slice lie within 65 536 of one another. Each row is summed in the order of its entries.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/device/columns.hpp"
#include "cpufree/device/port.hpp"

namespace cpufree {

// Rows of a slice on engine P: those that go in lockstep.
template <Port P>
inline constexpr int kFactorWidth = P::width * P::warp_width;

// Entry k of lane l is value `first + k * width of slices + l`; its column is `base` plus number
// `column + k * width of slices + l` of the narrow or of the wide ones.
struct FactorSlice {
  std::int64_t first = 0;
  std::int64_t column = 0;
  std::int32_t base = 0;
  std::int32_t length = 0;  // of the longest row; padding is 0 times the row's last operand
  std::int32_t wide = 0;    // whether columns take 32 bits
};

struct FactorSlices {
  const FactorSlice* slice = nullptr;
  const std::int32_t* row = nullptr;  // of each lane of each slice; -1: none
  const float* value = nullptr;
  const std::uint16_t* narrow = nullptr;
  const std::int32_t* wide = nullptr;
  std::int32_t count = 0;

  // Calls f(row, (F x)(row)) for all rows of the block, shared among its threads. V: a number, or
  // Columns of them.
  template <Port P, class V, class F>
  CPUFREE_KERNEL_FN void multiply(P& port, const V* x, F&& f) const {
    constexpr int W = kFactorWidth<P>;
    if constexpr (P::width > 1) {
      for (std::int32_t s = port.lane(); s < count; s += port.lanes()) {
        const FactorSlice here = slice[s];
        if (here.wide != 0)
          vector_of_rows<W>(s, here, wide, x, f);
        else
          vector_of_rows<W>(s, here, narrow, x, f);
      }
    } else {
      const int lane = port.lane() % W;
      const int warps = port.lanes() / W;
      for (std::int32_t s = port.lane() / W; s < count; s += warps) {
        const FactorSlice here = slice[s];
        const float* const v = value + here.first + lane;
        const V* const from = x + here.base;
        const V sum = here.wide != 0
                          ? sum_of_row<W>(v, wide + here.column + lane, here.length, from)
                          : sum_of_row<W>(v, narrow + here.column + lane, here.length, from);
        const std::int32_t i = row[s * W + lane];
        if (i >= 0) f(i, sum);
      }
    }
  }

 private:
  // Entries that are under way together, as registers allow.
  template <class V>
  static constexpr int kBatchOf = kColumnsOf<V> < 4 ? 4 / kColumnsOf<V> : 1;

  template <int W, class C, class V>
  CPUFREE_KERNEL_FN static V sum_of_row(const float* v, const C* column, std::int32_t length,
                                        const V* x) {
    using T = ElementOf<V>;
    constexpr int kBatch = kBatchOf<V>;
    V sum = {};
    std::int32_t k = 0;
    for (; k + kBatch <= length; k += kBatch) {
      float factor[kBatch];
      V operand[kBatch];
      CPUFREE_UNROLL
      for (int j = 0; j < kBatch; ++j) {
        factor[j] = v[(k + j) * W];
        operand[j] = x[column[(k + j) * W]];
      }
      CPUFREE_UNROLL
      for (int j = 0; j < kBatch; ++j) sum += static_cast<T>(factor[j]) * operand[j];
    }
    for (; k < length; ++k) sum += static_cast<T>(v[k * W]) * x[column[k * W]];
    return sum;
  }

  template <int W, class C, class V, class F>
  CPUFREE_KERNEL_FN void vector_of_rows(std::int32_t s, const FactorSlice& here, const C* columns,
                                        const V* x, F&& f) const {
    using T = ElementOf<V>;
    V sum[W] = {};
    const float* v = value + here.first;
    const C* column = columns + here.column;
    const V* const from = x + here.base;
    for (std::int32_t k = 0; k < here.length; ++k, v += W, column += W) {
      CPUFREE_INDEPENDENT
      for (int l = 0; l < W; ++l) sum[l] += static_cast<T>(v[l]) * from[column[l]];
    }
    for (int l = 0; l < W; ++l)
      if (const std::int32_t i = row[s * W + l]; i >= 0) f(i, sum[l]);
  }
};

}  // namespace cpufree
