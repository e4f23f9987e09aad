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

// The values that the new value of one point depends on. Without axis 1, or a source: not read.
template <class T>
struct ValuesAround {
  T before, after;  // axis 0
  T north, south;   // axis 1
  T left, right;    // axis 2
  T source;
};

template <int D, class T>
inline constexpr T kJacobiWeight = T{1} / static_cast<T>(2 * D);

// The sum whose product with the weight is the new value of a point: the mean of its neighbours, or
// with a source term (sum + source) / (2D). For the Poisson equation -laplace(u) = f on squares of
// width h, source = h^2 f. Where the new value goes on to be added in registers, the product must
// be kept from being fused with that.
template <int D, bool kSource, class T>
CPUFREE_FN T jacobi_sum(const ValuesAround<T>& u) {
  T sum = u.before + u.after;
  if constexpr (D == 3) sum = sum + (u.north + u.south);
  sum = sum + (u.left + u.right);
  if constexpr (kSource) sum = sum + u.source;
  return sum;
}

// The new value of point x of a row.
template <int D, bool kSource, class T>
CPUFREE_FN T jacobi_point(const RowsAround<T>& rows, std::int32_t x) {
  T north{}, south{}, source{};
  if constexpr (D == 3) north = rows.north[x], south = rows.south[x];
  if constexpr (kSource) source = rows.source[x];
  const T sum = jacobi_sum<D, kSource>(ValuesAround<T>{
      rows.before[x], rows.after[x], north, south, rows.centre[x - 1], rows.centre[x + 1], source});
  return kJacobiWeight<D, T> * sum;
}

}  // namespace cpufree
