// The mathematics and nothing else: serial methods in double precision, for small problems. All
// engines are tested against these. Preconditioner: D^-1, D the diagonal of A.
#pragma once

#include "cpufree/reference/vectors.hpp"

namespace cpufree::reference {

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

}  // namespace cpufree::reference
