// Pipelined CG, serial.
#pragma once

#include "cpufree/reference/vectors.hpp"

namespace cpufree::reference {

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
