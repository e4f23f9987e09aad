// The solver kernel: what every block of every PE runs, from the right-hand side to the answer.
#pragma once

#include "cpufree/solvers/cg.hpp"
#include "cpufree/solvers/eigenvalue.hpp"
#include "cpufree/solvers/pipelined_cg.hpp"
#include "cpufree/solvers/prcg.hpp"

namespace cpufree {

// Nothing of an earlier solve must show: a NaN would survive a multiplication by zero. Ghosts are
// not cleared: they are always put before they are read.
template <class Ctx>
CPUFREE_KERNEL_FN void clear_vectors(Ctx& c) {
  using T = typename Ctx::T;
  const auto& v = c.vectors;
  T* const all[] = {v.s, v.p, v.scratch[0], v.scratch[1], v.z, v.w, v.n, v.u, v.q, v.out, v.rest};
  for (T* const vector : all)
    if (vector != nullptr) c.rows([&](std::int32_t i, int) { vector[i] = 0; });
  if (!c.args.params.has_guess) c.rows([&](std::int32_t i, int) { v.x[i] = 0; });
}

CPUFREE_KERNEL_FN void write_outcome(Outcome& out, const Monitor& monitor, const History& history) {
  out.reason = monitor.reason();
  out.iterations = monitor.iterations();
  out.residual = monitor.residual();
  out.true_residual = monitor.true_residual();
  out.bnorm = monitor.bnorm();
  out.history_count = history.count();
  out.history_stride = history.stride();
  out.replacements = monitor.replacements();
  out.handed_over_at = monitor.handed_over_at();
}

// Solves A x = b with `Algorithm` and the preconditioner M.
template <template <class, class> class Algorithm, class M, Port P, class Matrix>
CPUFREE_KERNEL_FN void solve_kernel(P& port, const SolveArgs<Matrix>& args) {
  using Ctx = Context<P, Matrix>;
  Ctx c(port, args);
  Monitor monitor(args.params);
  Reporter reporter(args.history, args.params.history_capacity, c.is_speaker());
  M m(args.vectors);
  clear_vectors(c);
  double lambda_max = 0.0;
  if constexpr (!M::pointwise) {
    if (!estimate_lambda_max(c, lambda_max)) return;
    m.set_interval(lambda_max, args.params.chebyshev_degree);
    clear_vectors(c);
  }
  Algorithm<Ctx, M> algorithm(c, m, monitor, reporter);
  if (!algorithm.run() || !end_solve(c, monitor)) return;
  if (!reporter.speaks()) return;
  write_outcome(*args.outcome, monitor, reporter.history());
  args.outcome->lambda_max = lambda_max;
  args.outcome->reductions = c.reductions();
  args.outcome->exchanges = c.exchanges();
}

}  // namespace cpufree
