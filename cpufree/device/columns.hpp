// What several right-hand sides that are solved together have in one row.
#pragma once

#include <cstddef>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// K values of one row side by side, one for each column. Host compilers make vector instructions of
// the loops over columns, as their length is known; GPUs load and store 16 bytes at a time.
template <class T, int K>
struct alignas(sizeof(T) * K < 16 ? sizeof(T) * K : 16) Columns {
  T value[K];

  CPUFREE_FN T& operator[](int k) { return value[k]; }
  CPUFREE_FN const T& operator[](int k) const { return value[k]; }

  // f(k) in every column.
  template <class F>
  CPUFREE_FN static Columns each(F&& f) {
    Columns all;
    CPUFREE_UNROLL
    for (int k = 0; k < K; ++k) all.value[k] = f(k);
    return all;
  }
  CPUFREE_FN Columns& operator+=(const Columns& other) {
    CPUFREE_UNROLL
    for (int k = 0; k < K; ++k) value[k] += other.value[k];
    return *this;
  }
};

template <class T, int K>
CPUFREE_FN Columns<T, K> operator+(const Columns<T, K>& a, const Columns<T, K>& b) {
  return Columns<T, K>::each([&](int k) { return a.value[k] + b.value[k]; });
}
template <class T, int K>
CPUFREE_FN Columns<T, K> operator-(const Columns<T, K>& a, const Columns<T, K>& b) {
  return Columns<T, K>::each([&](int k) { return a.value[k] - b.value[k]; });
}
// Column by column.
template <class T, int K>
CPUFREE_FN Columns<T, K> operator*(const Columns<T, K>& a, const Columns<T, K>& b) {
  return Columns<T, K>::each([&](int k) { return a.value[k] * b.value[k]; });
}
template <class T, int K>
CPUFREE_FN Columns<T, K> operator*(T a, const Columns<T, K>& b) {
  return Columns<T, K>::each([&](int k) { return a * b.value[k]; });
}

// sum += a b in every column, products and sums in double precision.
template <class T, int K>
CPUFREE_FN void add_products(Columns<double, K>& sum, const Columns<T, K>& a,
                             const Columns<T, K>& b) {
  CPUFREE_UNROLL
  for (int k = 0; k < K; ++k)
    sum.value[k] += static_cast<double>(a.value[k]) * static_cast<double>(b.value[k]);
}

// Some of K columns.
class ColumnMask {
 public:
  ColumnMask() = default;
  CPUFREE_FN explicit ColumnMask(unsigned bits) : bits_(bits) {}
  CPUFREE_FN static ColumnMask all(int columns) { return ColumnMask((1U << columns) - 1U); }
  CPUFREE_FN bool has(int k) const { return ((bits_ >> k) & 1U) != 0U; }
  CPUFREE_FN bool any() const { return bits_ != 0U; }
  CPUFREE_FN void add(int k) { bits_ |= 1U << k; }

 private:
  unsigned bits_ = 0;
};

// a in the columns of the mask, b in the others: what is not taken may be a NaN.
template <class T, int K>
CPUFREE_FN Columns<T, K> select(ColumnMask mask, const Columns<T, K>& a, const Columns<T, K>& b) {
  return Columns<T, K>::each([&](int k) { return mask.has(k) ? a.value[k] : b.value[k]; });
}

}  // namespace cpufree
