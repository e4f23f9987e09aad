// The mathematics and nothing else: serial methods in double precision, for small problems. All
// engines are tested against these. Preconditioner: D^-1, D the diagonal of A, or the one given.
#pragma once

#include "cpufree/reference/vectors.hpp"

namespace cpufree::reference {

// Hestenes & Stiefel 1952. Stops at ||r|| <= rtol ||b||, or after `maxiter` iterations. apply(r):
// M r.
template <class T, class F>
Solution cg(const CsrView<T>& a, const Vec& b, double rtol, std::int64_t maxiter, F&& apply) {
  Solution s{Vec(b.size()), 0, std::sqrt(dot(b, b))};
  const double target = rtol * s.residual;
  Vec r = b;
  Vec z = apply(r);
  Vec p = z;
  double rho = dot(r, z);
  while (s.residual > target && s.iterations < maxiter) {
    const Vec ap = multiply(a, p);
    const double alpha = rho / dot(p, ap);
    s.x = axpy(s.x, alpha, p);
    r = axpy(r, -alpha, ap);
    z = apply(r);
    const double next = dot(r, z);
    p = axpy(z, next / rho, p);
    rho = next;
    s.residual = std::sqrt(dot(r, r));
    ++s.iterations;
  }
  return s;
}

// With D^-1.
template <class T>
Solution cg(const CsrView<T>& a, const Vec& b, double rtol, std::int64_t maxiter) {
  const Vec d = diagonal(a);
  return cg(a, b, rtol, maxiter, [&](const Vec& r) { return divide(r, d); });
}

}  // namespace cpufree::reference
