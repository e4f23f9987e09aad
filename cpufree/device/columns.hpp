// What several right-hand sides that are solved together have in one row. Code for K columns is
// code for one: `ValuesOf<T, 1>` is T.
#pragma once

#include <cstddef>
#include <type_traits>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// How the values of K columns are held: one by one on GPUs, whose threads are the lanes, and in
// vectors of the instruction set on hosts, as many in one as there are doubles. There they are
// copied vector by vector, too: host compilers copy structures in pieces of 16 bytes, and
// processors wait where a vector is read that has been written in pieces.
#if defined(CPUFREE_ON_GPU)
template <class T, int K>
struct ColumnParts {
  static constexpr int width = 1;
  using Part = T;
  using Wide = double;
  CPUFREE_FN static Wide wide(Part value) { return static_cast<double>(value); }
  Part part[static_cast<unsigned>(K)];
};
#else
#if defined(__AVX512F__)
inline constexpr int kPartBytes = 64;
#elif defined(__AVX__)
inline constexpr int kPartBytes = 32;
#else
inline constexpr int kPartBytes = 16;
#endif
template <class T, int K>
struct ColumnParts {
  static constexpr int width = K * 8 < kPartBytes ? K : kPartBytes / 8;
  typedef T Part __attribute__((vector_size(width * sizeof(T))));
  typedef double Wide __attribute__((vector_size(width * sizeof(double))));
  static Wide wide(const Part& values) { return __builtin_convertvector(values, Wide); }

  static constexpr int count = K / width;
  Part part[static_cast<unsigned>(count)];
  ColumnParts() = default;
  ColumnParts(const ColumnParts& other) { copy(other); }
  ColumnParts& operator=(const ColumnParts& other) {
    copy(other);
    return *this;
  }

 private:
  void copy(const ColumnParts& other) {
    for (int n = 0; n < count; ++n) part[n] = other.part[n];
  }
};
#endif

// K values of one row side by side, one for each column.
template <class T, int K>
struct alignas(sizeof(T) * K < 16 ? sizeof(T) * K : 16) Columns : ColumnParts<T, K> {
  static constexpr int kParts = K / ColumnParts<T, K>::width;

  CPUFREE_FN T* values() { return reinterpret_cast<T*>(this->part); }
  CPUFREE_FN const T* values() const { return reinterpret_cast<const T*>(this->part); }
  CPUFREE_FN T& operator[](int k) { return values()[k]; }
  CPUFREE_FN const T& operator[](int k) const { return values()[k]; }

  // f(k) in every column.
  template <class F>
  CPUFREE_FN static Columns each(F&& f) {
    Columns all;
    CPUFREE_UNROLL
    for (int k = 0; k < K; ++k) all[k] = f(k);
    return all;
  }
};

// f(part of a, part of b), part by part.
template <class T, int K, class F>
CPUFREE_FN Columns<T, K> by_parts(const Columns<T, K>& a, const Columns<T, K>& b, F&& f) {
  Columns<T, K> all;
  CPUFREE_UNROLL
  for (int n = 0; n < Columns<T, K>::kParts; ++n) all.part[n] = f(a.part[n], b.part[n]);
  return all;
}
template <class T, int K>
CPUFREE_FN Columns<T, K> operator+(const Columns<T, K>& a, const Columns<T, K>& b) {
  return by_parts(a, b, [](const auto& x, const auto& y) { return x + y; });
}
template <class T, int K>
CPUFREE_FN Columns<T, K> operator-(const Columns<T, K>& a, const Columns<T, K>& b) {
  return by_parts(a, b, [](const auto& x, const auto& y) { return x - y; });
}
// Column by column.
template <class T, int K>
CPUFREE_FN Columns<T, K> operator*(const Columns<T, K>& a, const Columns<T, K>& b) {
  return by_parts(a, b, [](const auto& x, const auto& y) { return x * y; });
}
template <class T, int K>
CPUFREE_FN Columns<T, K> operator*(T a, const Columns<T, K>& b) {
  return by_parts(b, b, [a](const auto& x, const auto&) { return a * x; });
}
template <class T, int K>
CPUFREE_FN Columns<T, K>& operator+=(Columns<T, K>& a, const Columns<T, K>& b) {
  return a = a + b;
}

// What a row holds of K columns.
template <class T, int K>
using ValuesOf = std::conditional_t<K == 1, T, Columns<T, K>>;
// How many columns that is of.
template <class V>
inline constexpr int kColumnsOf = 1;
template <class T, int K>
inline constexpr int kColumnsOf<Columns<T, K>> = K;

// The type of one of its values.
template <class V>
struct ElementOfRow {
  using Type = V;
};
template <class T, int K>
struct ElementOfRow<Columns<T, K>> {
  using Type = T;
};
template <class V>
using ElementOf = typename ElementOfRow<V>::Type;

// The value of column k.
template <class T>
CPUFREE_FN T& of_column(T& value, int) {
  return value;
}
template <class T, int K>
CPUFREE_FN T& of_column(Columns<T, K>& values, int k) {
  return values[k];
}
template <class T, int K>
CPUFREE_FN const T& of_column(const Columns<T, K>& values, int k) {
  return values[k];
}
// The same number in every column.
template <class V>
CPUFREE_FN V in_all_columns(ElementOf<V> value) {
  if constexpr (kColumnsOf<V> == 1)
    return value;
  else
    return V::each([&](int) { return value; });
}
// The value of column k where k is known at run time alone, and the values are in registers.
CPUFREE_FN double pick(double value, int) { return value; }
template <int K>
CPUFREE_FN double pick(const Columns<double, K>& values, int k) {
  double mine = values[0];
  CPUFREE_UNROLL
  for (int j = 1; j < K; ++j) mine = j == k ? values[j] : mine;
  return mine;
}

// sum += a b in every column, products and sums in double precision.
template <class T>
CPUFREE_FN void add_products(double& sum, T a, T b) {
  sum += static_cast<double>(a) * b;
}
template <class T, int K>
CPUFREE_FN void add_products(Columns<double, K>& sum, const Columns<T, K>& a,
                             const Columns<T, K>& b) {
  using Parts = ColumnParts<T, K>;
  CPUFREE_UNROLL
  for (int n = 0; n < Columns<T, K>::kParts; ++n)
    sum.part[n] += Parts::wide(a.part[n]) * Parts::wide(b.part[n]);
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

// Those of K columns for which f(k) holds.
template <int K, class F>
CPUFREE_FN ColumnMask columns_where(F&& f) {
  ColumnMask mask;
  for (int k = 0; k < K; ++k)
    if (f(k)) mask.add(k);
  return mask;
}

// a in the columns of the mask, b in the others: what is not taken may be a NaN.
template <class T>
CPUFREE_FN T select(ColumnMask mask, T a, T b) {
  return mask.any() ? a : b;
}
template <class T, int K>
CPUFREE_FN Columns<T, K> select(ColumnMask mask, const Columns<T, K>& a, const Columns<T, K>& b) {
  return Columns<T, K>::each([&](int k) { return mask.has(k) ? a[k] : b[k]; });
}

}  // namespace cpufree
