// The arithmetic of one row. Persistent kernels and host-driven baselines share it, so that they
// differ in communication and control alone.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/formats/accurate_sum.hpp"

namespace cpufree {

// Sum of val[k] * x(col[k]) for k in [0, count), in order.
template <class T, class X>
CPUFREE_KERNEL_FN SumOf<T, X> row_times_vector(const T* val, const std::int32_t* col,
                                               std::int64_t count, X&& x) {
  SumOf<T, X> sum = {};
  for (std::int64_t k = 0; k < count; ++k) add_product(sum, val[k], x(col[k]));
  return sum;
}

// The operand of a product: all columns from memory. `in_pieces`: what it fetches at a time had
// better be few.
template <class T>
struct Operand {
  static constexpr bool in_pieces = false;
  const T* values;
  template <int N>
  CPUFREE_KERNEL_FN void fetch(const std::int32_t (&columns)[N], T (&out)[N]) const {
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) out[k] = values[columns[k]];
  }
  CPUFREE_KERNEL_FN T operator()(std::int32_t column) const { return values[column]; }
};

}  // namespace cpufree
