// Vectors and products of the serial methods: double precision, small problems.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "cpufree/problem/csr.hpp"

namespace cpufree::reference {

using Vec = std::vector<double>;

template <class T>
Vec multiply(const CsrView<T>& a, const Vec& x) {
  Vec y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]);
         k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
      y[i] += static_cast<double>(a.val[k]) * x[static_cast<std::size_t>(a.col[k])];
  return y;
}

inline double dot(const Vec& a, const Vec& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline Vec axpy(const Vec& y, double scale, const Vec& x) {  // y + scale x
  Vec sum(y);
  for (std::size_t i = 0; i < y.size(); ++i) sum[i] += scale * x[i];
  return sum;
}

template <class T>
Vec diagonal(const CsrView<T>& a) {
  Vec d(static_cast<std::size_t>(a.n), 1.0);
  for (std::size_t i = 0; i < d.size(); ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]);
         k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
      if (static_cast<std::size_t>(a.col[k]) == i) d[i] = static_cast<double>(a.val[k]);
  return d;
}

inline Vec divide(const Vec& r, const Vec& d) {
  Vec z(r);
  for (std::size_t i = 0; i < r.size(); ++i) z[i] /= d[i];
  return z;
}

struct Solution {
  Vec x;
  std::int64_t iterations = 0;
  double residual = 0.0;  // of the recurrence
};

}  // namespace cpufree::reference
