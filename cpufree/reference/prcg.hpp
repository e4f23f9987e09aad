// Predict-and-recompute CG, serial.
#pragma once

#include "cpufree/reference/vectors.hpp"

namespace cpufree::reference {

// Chen & Carson 2020, PR-CG, in the order of the kernels: nu = r . M r is predicted for beta, and
// recomputed with the other sums.
template <class T>
Solution prcg(const CsrView<T>& a, const Vec& b, double rtol, std::int64_t maxiter) {
  const Vec d = diagonal(a);
  Solution solution{Vec(b.size()), 0, std::sqrt(dot(b, b))};
  const double target = rtol * solution.residual;
  Vec r = b;
  Vec p = divide(r, d);
  while (solution.residual > target && solution.iterations < maxiter) {
    const Vec s = multiply(a, p);
    const Vec ms = divide(s, d);
    const double mu = dot(p, s), delta = dot(r, ms), gamma = dot(s, ms), nu = dot(r, divide(r, d));
    const double alpha = nu / mu;
    const double predicted = nu - 2.0 * alpha * delta + alpha * alpha * gamma;
    solution.x = axpy(solution.x, alpha, p);
    r = axpy(r, -alpha, s);
    p = axpy(divide(r, d), predicted / nu, p);
    solution.residual = std::sqrt(dot(r, r));
    ++solution.iterations;
  }
  return solution;
}

}  // namespace cpufree::reference
