// A polynomial of A as preconditioner.
#pragma once

#include "cpufree/solvers/eigenvalue.hpp"
#include "cpufree/solvers/preconditioners.hpp"

namespace cpufree {

// M v = the k-th iterate of the Chebyshev iteration for A z = v, z_0 = 0, preconditioned by D, on
// the interval [lambda / 30, 1.05 lambda], lambda the largest eigenvalue of D^-1 A. (Saad 2003,
// Iterative Methods for Sparse Linear Systems, algorithm 12.1; the interval is that of smoothers in
// multigrid.) k - 1 products; a fixed polynomial in D^-1 A that is positive on (0, 1.08 lambda), so
// M is symmetric positive definite as long as lambda is not underestimated by more than 8 % (the
// estimate of eigenvalue.hpp errs on the safe side).
template <class T, int K = 1>
struct Chebyshev {
  using V = ValuesOf<T, K>;
  static constexpr bool pointwise = false;
  static constexpr bool multiplies_by_a = true;
  Private<const T> inverse_diagonal;
  Private<V> out;
  Private<V> rest;
  int degree = 4;
  double center = 1.0;  // middle of the interval
  double radius = 0.5;  // half its width
  double lambda_max = 0.0;

  CPUFREE_KERNEL_FN explicit Chebyshev(const BlockVectors<T, K>& v)
      : inverse_diagonal(v.inverse_diagonal), out(v.out), rest(v.rest) {}

  // The interval, of all blocks alike. Leaves p and s as it has found them: 0.
  template <class Ctx>
  CPUFREE_KERNEL_FN bool prepare(Ctx& c) {
    double lambda = 0.0;
    if (!estimate_lambda_max(c, lambda)) return false;
    c.rows([&](Row i, int) { c.vectors.s[i] = V{}, c.vectors.p.set(i, V{}); });
    c.each_column([&](int k) {
      if (k > 0) return;
      const double high = 1.05 * lambda;
      const double low = lambda / 30.0;
      center = 0.5 * (high + low);
      radius = 0.5 * (high - low);
      degree = c.args.params.chebyshev_degree;
      lambda_max = lambda;
    });
    return true;
  }
  CPUFREE_KERNEL_FN void report(Outcome& outcome) const { outcome.lambda_max = lambda_max; }
  CPUFREE_KERNEL_FN V image(Row i, const V&) const { return out[i]; }
  CPUFREE_KERNEL_FN Private<V> reads() const { return out; }

  template <class Ctx>
  CPUFREE_KERNEL_FN bool apply(Ctx& c, const Private<V>& v) const {
    const T first = static_cast<T>(1.0 / center);
    const double sigma = center / radius;
    double rho = 1.0 / sigma;
    const auto begin = [&](Row i, int) {
      rest[i] = v[i];
      const V value = first * inverse_diagonal[i] * v[i];
      out[i] = value;
      return value;
    };
    Ghosted<V> d = degree > 1 ? c.exchange_scratch(begin) : for_rows(c, begin);
    for (int k = 1; k < degree; ++k) {
      if (!multiply_apart(c, d, rest, true)) return false;
      const double next = 1.0 / (2.0 * sigma - rho);
      const T keep = static_cast<T>(next * rho);
      const T add = static_cast<T>(2.0 * next / radius);
      rho = next;
      const auto correct = [&](Row i, int) {
        const V value = keep * d[i] + add * inverse_diagonal[i] * rest[i];
        out[i] += value;
        return value;
      };
      const bool multiplied = k + 1 < degree;  // the last correction is not read
      const Ghosted<V> e = multiplied ? c.exchange_scratch(correct) : for_rows(c, correct);
      d = e;
    }
    return true;
  }

 private:
  template <class Ctx, class F>
  CPUFREE_KERNEL_FN static Ghosted<V> for_rows(Ctx& c, F&& f) {
    c.rows([&](Row i, int lane) { static_cast<void>(f(i, lane)); });
    return {};
  }
};

}  // namespace cpufree
