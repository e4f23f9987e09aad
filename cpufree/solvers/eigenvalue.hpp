// The largest eigenvalue of D^-1 A, for the Chebyshev preconditioner, estimated on the PEs.
#pragma once

#include <cmath>

#include "cpufree/solvers/preconditioners.hpp"
#include "cpufree/solvers/true_residual.hpp"

namespace cpufree {

inline constexpr int kLanczosSteps = 12;

// Largest eigenvalue of the symmetric tridiagonal matrix with `diagonal` (n) and squares of the
// off-diagonal `squares` (n - 1), by bisection on Sturm sequences; `high` bounds it. Out of line:
// with the arrays at hand, compilers write out every step, which makes a sixth of a kernel.
template <class Real>
CPUFREE_COLD_FN Real largest_eigenvalue(const Real* diagonal, const Real* squares, int n,
                                        Real high) {
  Real low = 0.0;
  for (int step = 0; step < 60; ++step) {
    const Real middle = 0.5 * (low + high);
    int above = 0;  // eigenvalues above `middle`
    Real d = 1.0;
    CPUFREE_ONE_COPY
    for (int k = 0; k < n; ++k) {
      d = diagonal[k] - middle - (k > 0 ? squares[k - 1] / d : 0.0);
      if (d == 0.0) d = -1e-300;
      if (d > 0.0) ++above;
    }
    (above > 0 ? low : high) = middle;
  }
  return high;
}

// A number in [-1, 1) that depends on the row alone.
CPUFREE_KERNEL_FN double noise(std::int32_t row) {
  auto h =
      static_cast<std::uint64_t>(row) + 0x9e3779b97f4a7c15ULL;  // splitmix64 (Steele et al. 2014)
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((h ^ (h >> 31)) >> 11) * 0x1p-52 - 1.0;
}

// `kLanczosSteps` steps of Jacobi-CG from a random residual: their coefficients are the Lanczos
// matrix of D^-1 A, whose largest eigenvalue nears that of D^-1 A from below. Returned times 1.05,
// and never above the row-sum bound. Of several columns all do the same. Uses r, p, s. Exchanges of
// p: an all-reduce lies between (i).
template <class Ctx>
CPUFREE_COLD_FN ColdResult<Ctx> lambda_max_cold(typename Ctx::PortType port,
                                                const typename Ctx::Args& args,
                                                const typename Ctx::Share& share,
                                                const typename Ctx::BlockVectors& v,
                                                typename Ctx::State state) {
  using T = typename Ctx::T;
  using Values = typename Ctx::Values;
  Ctx c(port, args, share, v, state);
  const Jacobi<T> jacobi(v);
  double diagonal[kLanczosSteps] = {};
  double squares[kLanczosSteps] = {};
  int steps = 0;
  double rho = 0.0;
  double alpha = 0.0;
  double beta = 0.0;
  double lambda_max = c.args.params.lambda_bound;
  CPUFREE_ONE_COPY
  for (; steps < kLanczosSteps; ++steps) {
    RareSums<Ctx> sums, curvature;
    c.rows([&](Row i, int lane) {
      v.r[i] = steps == 0 ? in_all_columns<Values>(static_cast<T>(noise(c.global_row(i))))
                          : v.r[i] - static_cast<T>(alpha) * v.s[i];
      const Values r = v.r[i];
      add_products(sums.partial[0][lane], jacobi.image(i, r), r);
    });
    double before = rho;
    if (!sum_apart(c, sums)) return {c.state(), {}, false};
    rho = of_column(sums.total[0], 0);
    if (!(rho > 1e-20 * before)) break;
    beta = steps == 0 ? 0.0 : rho / before;
    c.exchange(v.p,
               [&](Row i, int) { return jacobi.image(i, v.r[i]) + static_cast<T>(beta) * v.p[i]; });
    if (!multiply_apart(c, v.p, v.s)) return {c.state(), {}, false};
    c.rows([&](Row i, int lane) {
      const Values p = v.p[i], s = v.s[i];
      add_products(curvature.partial[0][lane], p, s);
    });
    if (!sum_apart(c, curvature)) return {c.state(), {}, false};
    const double total = of_column(curvature.total[0], 0);
    if (!(total > 0.0)) break;  // not positive definite: the solver will say so
    const double previous = alpha;
    alpha = rho / total;
    diagonal[steps] = 1.0 / alpha + (steps > 0 ? beta / previous : 0.0);
    if (steps > 0) squares[steps - 1] = beta / (previous * previous);
  }
  if (steps == 0) return {c.state(), in_all_columns<typename Ctx::Totals>(lambda_max), true};
  const double estimate = 1.05 * largest_eigenvalue(diagonal, squares, steps, lambda_max);
  const double found = estimate < lambda_max ? estimate : lambda_max;
  return {c.state(), in_all_columns<typename Ctx::Totals>(found), true};
}

template <class Ctx>
CPUFREE_KERNEL_FN bool estimate_lambda_max(Ctx& c, double& lambda_max) {
  const auto answer = lambda_max_cold<Ctx>(c.port(), c.args, c.share(), c.vectors, c.state());
  c.go_on_from(answer.after);
  lambda_max = of_column(answer.value, 0);
  return answer.met;
}

}  // namespace cpufree
