// The mathematics and nothing else: serial methods in double precision, for small problems. All
// engines are tested against these. Preconditioner: D^-1, D the diagonal of A.
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

// Hestenes & Stiefel 1952. Stops at ||r|| <= rtol ||b||, or after `maxiter` iterations.
template <class T>
Solution cg(const CsrView<T>& a, const Vec& b, double rtol, std::int64_t maxiter) {
  const Vec d = diagonal(a);
  Solution s{Vec(b.size()), 0, std::sqrt(dot(b, b))};
  const double target = rtol * s.residual;
  Vec r = b;
  Vec z = divide(r, d);
  Vec p = z;
  double rho = dot(r, z);
  while (s.residual > target && s.iterations < maxiter) {
    const Vec ap = multiply(a, p);
    const double alpha = rho / dot(p, ap);
    s.x = axpy(s.x, alpha, p);
    r = axpy(r, -alpha, ap);
    z = divide(r, d);
    const double next = dot(r, z);
    p = axpy(z, next / rho, p);
    rho = next;
    s.residual = std::sqrt(dot(r, r));
    ++s.iterations;
  }
  return s;
}

// Ghysels & Vanroose 2014, algorithm 4, without residual replacement.
template <class T>
Solution pipelined_cg(const CsrView<T>& a, const Vec& b, double rtol, std::int64_t maxiter) {
  const Vec d = diagonal(a);
  Solution s{Vec(b.size()), 0, std::sqrt(dot(b, b))};
  const double target = rtol * s.residual;
  Vec r = b, u = divide(r, d), w = multiply(a, u);
  Vec z(b.size()), q(b.size()), t(b.size()), p(b.size());
  double gamma = 0.0;
  double alpha = 0.0;
  while (s.residual > target && s.iterations < maxiter) {
    const double before = gamma;
    gamma = dot(r, u);
    const double delta = dot(w, u);
    const Vec m = divide(w, d);
    const Vec n = multiply(a, m);
    const double beta = s.iterations > 0 ? gamma / before : 0.0;
    alpha = s.iterations > 0 ? gamma / (delta - beta * gamma / alpha) : gamma / delta;
    z = axpy(n, beta, z);
    q = axpy(m, beta, q);
    t = axpy(w, beta, t);
    p = axpy(u, beta, p);
    s.x = axpy(s.x, alpha, p);
    r = axpy(r, -alpha, t);
    u = axpy(u, -alpha, q);
    w = axpy(w, -alpha, z);
    s.residual = std::sqrt(dot(r, r));
    ++s.iterations;
  }
  return s;
}

}  // namespace cpufree::reference
