// Preconditioners that keep the CPU out: no triangular solve, nothing but products with A.
//
// A policy has `pointwise`. If true, (M v)(i) is `of(i, v(i))`, computed on the fly wherever
// needed, and `reads()` the vector that it takes for that, if any. If false, `apply(context, v)`
// computes M v of a vector v into `out`.
#pragma once

#include <cmath>

#include "cpufree/solvers/context.hpp"
#include "cpufree/solvers/monitor.hpp"

namespace cpufree {

// M = I.
template <class T>
struct Identity {
  static constexpr bool pointwise = true;
  CPUFREE_KERNEL_FN explicit Identity(const BlockVectors<T>&) {}
  CPUFREE_KERNEL_FN T of(Row, T value) const { return value; }
  CPUFREE_KERNEL_FN Private<const T> reads() const { return {}; }
};

// M = D^-1, D the diagonal of A.
template <class T>
struct Jacobi {
  static constexpr bool pointwise = true;
  Private<const T> inverse_diagonal;
  CPUFREE_KERNEL_FN explicit Jacobi(const BlockVectors<T>& v)
      : inverse_diagonal(v.inverse_diagonal) {}
  CPUFREE_KERNEL_FN T of(Row i, T value) const { return inverse_diagonal[i] * value; }
  CPUFREE_KERNEL_FN Private<const T> reads() const { return inverse_diagonal; }
};

// M v = the k-th iterate of the Chebyshev iteration for A z = v, z_0 = 0, preconditioned by D, on
// the interval [lambda / 30, 1.05 lambda], lambda the largest eigenvalue of D^-1 A. (Saad 2003,
// Iterative Methods for Sparse Linear Systems, algorithm 12.1; the interval is that of smoothers in
// multigrid.) k - 1 products; a fixed polynomial in D^-1 A that is positive on (0, 1.08 lambda), so
// M is symmetric positive definite as long as lambda is not underestimated by more than 8 % (the
// estimate of eigenvalue.hpp errs on the safe side).
template <class T>
struct Chebyshev {
  static constexpr bool pointwise = false;
  Private<const T> inverse_diagonal;
  Private<T> out;
  Private<T> rest;
  int degree = 4;
  double center = 1.0;  // middle of the interval
  double radius = 0.5;  // half its width

  CPUFREE_KERNEL_FN explicit Chebyshev(const BlockVectors<T>& v)
      : inverse_diagonal(v.inverse_diagonal), out(v.out), rest(v.rest) {}

  CPUFREE_KERNEL_FN Private<T> reads() const { return out; }
  CPUFREE_KERNEL_FN void set_interval(double lambda_max, int steps) {
    const double high = 1.05 * lambda_max;
    const double low = lambda_max / 30.0;
    center = 0.5 * (high + low);
    radius = 0.5 * (high - low);
    degree = steps;
  }

  template <class Ctx>
  CPUFREE_KERNEL_FN bool apply(Ctx& c, const Private<T>& v) const {
    const T first = static_cast<T>(1.0 / center);
    const double sigma = center / radius;
    double rho = 1.0 / sigma;
    const auto begin = [&](Row i, int) {
      rest[i] = v[i];
      return out[i] = first * inverse_diagonal[i] * v[i];
    };
    Ghosted<T> d = degree > 1 ? c.exchange_scratch(begin) : for_rows(c, begin);
    for (int k = 1; k < degree; ++k) {
      if (!c.multiply(d, [&](Row i, int, T ad) { rest[i] -= ad; })) return false;
      const double next = 1.0 / (2.0 * sigma - rho);
      const T keep = static_cast<T>(next * rho);
      const T add = static_cast<T>(2.0 * next / radius);
      rho = next;
      const auto correct = [&](Row i, int) {
        const T value = keep * d[i] + add * inverse_diagonal[i] * rest[i];
        out[i] += value;
        return value;
      };
      const bool multiplied = k + 1 < degree;  // nobody reads the last correction
      const Ghosted<T> e = multiplied ? c.exchange_scratch(correct) : for_rows(c, correct);
      d = e;
    }
    return true;
  }

 private:
  template <class Ctx, class F>
  CPUFREE_KERNEL_FN static Ghosted<T> for_rows(Ctx& c, F&& f) {
    c.rows([&](Row i, int lane) { static_cast<void>(f(i, lane)); });
    return {};
  }
};

// (M r)(i) of r(i), kept in u where it cannot be had on the fly. A copy of what it reads: the
// block's own would be read again for every row.
template <class M, class T>
struct ResidualImage {
  M m;
  Private<T> u;
  CPUFREE_KERNEL_FN T operator()(Row i, T r) const {
    if constexpr (M::pointwise)
      return m.of(i, r);
    else
      return u[i];
  }
  CPUFREE_KERNEL_FN auto reads() const {
    if constexpr (M::pointwise)
      return m.reads();
    else
      return u;
  }
};

// v(i) = f(i) for all my rows; then M v is available; then g(i, lane, v(i), (M v)(i)). One pass
// where M is pointwise. v is private to the block's rows; f reads it, and `read`.
template <class Ctx, class M, class T, class F, class G>
CPUFREE_KERNEL_FN bool precondition(Ctx& c, const M& m, const Private<T>& v, F&& f, G&& g,
                                    const Private<T>& read) {
  if constexpr (M::pointwise) {
    const M mine = m;  // at hand: the block's copy would be read again for every row
    const Private<T> to = v;
    const auto pass = [&](Row i, int lane) {
      const T value = f(i);
      g(i, lane, value, mine.of(i, value));
      to[i] = value;
    };
    c.rows(pass, to, read, mine.reads());
    return true;
  } else {
    c.rows([&](Row i, int) { v[i] = f(i); });
    if (!m.apply(c, v)) return false;
    c.rows([&](Row i, int lane) { g(i, lane, v[i], m.out[i]); });
    return true;
  }
}

// s = A p after `exchange(p, ...)`; then M s is available; then g(i, lane, s(i), (M s)(i)).
// g reads `read`.
template <class Ctx, class M, class T, class G>
CPUFREE_KERNEL_FN bool multiply_precondition(Ctx& c, const M& m, const Ghosted<T>& p,
                                             const Private<T>& s, G&& g, const Private<T>& read) {
  const Private<T> to = s;
  if constexpr (M::pointwise) {
    const M mine = m;
    const auto row = [&](Row i, int lane, T ap) {
      g(i, lane, ap, mine.of(i, ap));  // what it reads is under way before `to` is written
      to[i] = ap;
    };
    return c.multiply(p, row, read, mine.reads());
  } else {
    if (!c.multiply(p, [&](Row i, int, T ap) { s[i] = ap; })) return false;
    if (!m.apply(c, s)) return false;
    c.rows([&](Row i, int lane) { g(i, lane, s[i], m.out[i]); });
    return true;
  }
}

}  // namespace cpufree
