// The arithmetic of one point. Kernels and host-driven baselines use it alike, so that they differ
// in communication and control only. The order of the additions is part of the result: every
// variant gives the same bits (reference/jacobi.hpp). There is no product that feeds a sum, hence
// nothing that a compiler could fuse.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// The rows (along axis 2) that the new values of one row depend on.
template <class T>
struct RowsAround {
  const T* before;  // axis 0
  const T* after;
  const T* north;  // axis 1; null in two dimensions
  const T* south;
  const T* centre;
  const T* source;  // null: none
};

// The new value of point x: the mean of its neighbours, or with a source term (sum + source) /
// (2D). For the Poisson equation -laplace(u) = f on squares of width h, source = h^2 f.
template <int D, bool kSource, class T>
CPUFREE_FN T jacobi_point(const RowsAround<T>& rows, std::int32_t x) {
  constexpr T weight = T{1} / static_cast<T>(2 * D);
  T sum = rows.before[x] + rows.after[x];
  if constexpr (D == 3) sum = sum + (rows.north[x] + rows.south[x]);
  sum = sum + (rows.centre[x - 1] + rows.centre[x + 1]);
  if constexpr (kSource) sum = sum + rows.source[x];
  return weight * sum;
}

}  // namespace cpufree
