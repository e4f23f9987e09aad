// Minimal residuals, serial.
#pragma once

#include "cpufree/reference/vectors.hpp"

namespace cpufree::reference {

// Paige & Saunders 1975, preconditioned as in Elman, Silvester & Wathen 2014 (algorithm 4.1), in
// their names and order: A symmetric, apply(v) = M v, M symmetric positive definite. Each Lanczos
// vector z = M v is normalised before its product. Stops at ||b - A x|| <= rtol ||b||, or after
// `maxiter` iterations, or where Lanczos vectors end.
template <class T, class F>
Solution minres(const CsrView<T>& a, const Vec& b, double rtol, std::int64_t maxiter, F&& apply) {
  Solution solution{Vec(b.size()), 0, std::sqrt(dot(b, b))};
  const double target = rtol * solution.residual;
  Vec v_before(b.size()), v = b, z = apply(v), w_before(b.size()), w(b.size());
  double gamma_before = 1.0, gamma = std::sqrt(dot(z, v)), eta = gamma;
  double c_before = 1.0, c = 1.0, s_before = 0.0, s = 0.0;
  while (solution.residual > target && solution.iterations < maxiter && gamma > 0.0) {
    for (double& entry : z) entry /= gamma;
    const Vec az = multiply(a, z);
    const double delta = dot(az, z);
    const Vec v_next = axpy(axpy(axpy(Vec(b.size()), 1.0, az), -delta / gamma, v),
                            -gamma / gamma_before, v_before);
    const Vec z_next = apply(v_next);
    const double gamma_next = std::sqrt(dot(z_next, v_next));
    const double alpha0 = c * delta - c_before * s * gamma;
    const double alpha1 = std::sqrt(alpha0 * alpha0 + gamma_next * gamma_next);
    const double alpha2 = s * delta + c_before * c * gamma;
    const double alpha3 = s_before * gamma;
    c_before = c, s_before = s;
    c = alpha0 / alpha1, s = gamma_next / alpha1;
    Vec w_next = axpy(axpy(z, -alpha3, w_before), -alpha2, w);
    for (double& entry : w_next) entry /= alpha1;
    solution.x = axpy(solution.x, c * eta, w_next);
    eta = -s * eta;
    const Vec r = axpy(b, -1.0, multiply(a, solution.x));
    solution.residual = std::sqrt(dot(r, r));
    v_before = v, v = v_next, z = z_next, w_before = w, w = w_next;
    gamma_before = gamma, gamma = gamma_next;
    ++solution.iterations;
  }
  return solution;
}

}  // namespace cpufree::reference
