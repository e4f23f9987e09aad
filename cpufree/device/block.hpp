// Loops and sums of a block. `Lanes<P, K>` holds one partial sum per SIMD lane, of each of K
// columns, so that the innermost loop over lanes has no dependence and the compiler may vectorise
// it.
#pragma once

#include <cstdint>

#include "cpufree/device/columns.hpp"
#include "cpufree/device/port.hpp"

namespace cpufree {

template <Port P, int K = 1>
struct Lanes {
  using Values = ValuesOf<double, K>;
  Values value[static_cast<unsigned>(P::width)] = {};
  CPUFREE_KERNEL_FN Values& operator[](int lane) { return value[lane]; }
  // Sum over the lanes of this thread, halves first: the same tree always.
  CPUFREE_KERNEL_FN Values sum() const {
    Values v[static_cast<unsigned>(P::width)];
    for (int l = 0; l < P::width; ++l) v[l] = value[l];
    for (int half = P::width / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) v[l] += v[l + half];
    return v[0];
  }
};

// Calls f(i, lane) once for every i in [begin, end), shared among the threads and lanes of the
// block. f must not depend on the order, nor on other i's results within the same call.
template <Port P, class F>
CPUFREE_KERNEL_FN void for_each(P& port, std::int32_t begin, std::int32_t end, F&& f) {
  constexpr std::int32_t width = P::width;
  if constexpr (width == 1) {  // lane 0 by name, so that sums stay in registers
    // No overflow: GPUs hold fewer rows than 2^31 by more than there are threads.
    const std::int32_t stride = port.lanes();
    for (std::int32_t i = begin + port.lane(); i < end; i += stride) f(i, 0);
  } else {
    const std::int64_t stride = static_cast<std::int64_t>(width) * port.lanes();
    std::int64_t i = begin + static_cast<std::int64_t>(width) * port.lane();
    for (; i + width <= end; i += stride) {
      CPUFREE_INDEPENDENT
      for (int l = 0; l < width; ++l) f(static_cast<std::int32_t>(i) + l, l);
    }
    for (int l = 0; i + l < end; ++l) f(static_cast<std::int32_t>(i) + l, l);
  }
}

}  // namespace cpufree
