// Stabilised biconjugate gradients, serial.
#pragma once

#include "cpufree/reference/vectors.hpp"

namespace cpufree::reference {

// van der Vorst 1992, preconditioned from the right: apply(v) = M v, any regular M and A. Each sum
// is of the vectors themselves. Stops at ||r|| <= rtol ||b||, or after `maxiter` iterations, or
// where rho or omega is 0.
template <class T, class F>
Solution bicgstab(const CsrView<T>& a, const Vec& b, double rtol, std::int64_t maxiter, F&& apply) {
  Solution solution{Vec(b.size()), 0, std::sqrt(dot(b, b))};
  const double target = rtol * solution.residual;
  Vec r = b, p = r;
  const Vec shadow = r;
  double rho = dot(shadow, r);
  while (solution.residual > target && solution.iterations < maxiter && rho != 0.0) {
    const Vec mp = apply(p);
    const Vec v = multiply(a, mp);
    const double alpha = rho / dot(shadow, v);
    const Vec s = axpy(r, -alpha, v);
    const Vec ms = apply(s);
    const Vec t = multiply(a, ms);
    const double tt = dot(t, t);
    const double omega = tt > 0.0 ? dot(t, s) / tt : 0.0;
    solution.x = axpy(axpy(solution.x, alpha, mp), omega, ms);
    r = axpy(s, -omega, t);
    solution.residual = std::sqrt(dot(r, r));
    ++solution.iterations;
    if (omega == 0.0) break;
    const double next = dot(shadow, r);
    p = axpy(r, next / rho * (alpha / omega), axpy(p, -omega, v));
    rho = next;
  }
  return solution;
}

}  // namespace cpufree::reference
