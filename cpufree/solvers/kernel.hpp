// The solver kernel: what every block of every PE runs, from the right-hand side to the answer.
#pragma once

#include "cpufree/solvers/cg.hpp"
#include "cpufree/solvers/eigenvalue.hpp"
#include "cpufree/solvers/factored.hpp"
#include "cpufree/solvers/pipelined_cg.hpp"
#include "cpufree/solvers/prcg.hpp"

namespace cpufree {

// Nothing of an earlier solve must show: a NaN would survive a multiplication by zero. Ghosts are
// not cleared: they are always put before they are read.
template <class Ctx>
CPUFREE_KERNEL_FN void clear_vectors(Ctx& c) {
  using T = typename Ctx::T;
  const auto& v = c.vectors;
  c.rows([&](Row i, int) {
    v.s[i] = 0;
    v.p.set(i, 0), v.scratch[0].set(i, 0), v.scratch[1].set(i, 0);
    if (!c.args.params.has_guess) v.x[i] = 0;
    const auto clear = [&](const Private<T>& vector) {
      if (vector.data != nullptr) vector[i] = 0;
    };
    clear(v.z), clear(v.w), clear(v.n), clear(v.u), clear(v.q), clear(v.out), clear(v.rest);
  });
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

// From the initial to the last residual. False: a wait gave up.
template <template <class, class> class Algorithm, class Ctx, class M>
CPUFREE_HOT_FN bool solve_with(Ctx& c, const M& m, MonitorOf<Ctx>& monitor, Reporter& reporter) {
  if (!begin_solve(c, monitor, reporter)) return false;
  if (monitor.done()) return true;
  Algorithm<Ctx, M> method(c, m);
  const Ending ending = iterate(c, method, monitor, reporter);
  if constexpr (!Algorithm<Ctx, M>::kRestarts)
    if (ending == Ending::lost) return hand_over(c, m, monitor, reporter);
  return ending != Ending::gave_up;
}

// Solves A x = b with `Algorithm` and the preconditioner M.
template <template <class, class> class Algorithm, class M, class Format = AnySlices, Port P,
          class Matrix>
CPUFREE_KERNEL_FN void solve_kernel(P& port, const SolveArgs<Matrix>& args) {
  using Ctx = Context<P, Matrix, Format>;
  using T = typename Matrix::Value;
  using Share = BlockShare<Matrix>;
  using Judge = MonitorOf<Ctx>;
  Share all = args.shares[port.block()];
  std::byte* const fast = port.fast_memory();
  all.reads = resident_reads(port, args, all, fast);
  if constexpr (P::computes) all.matrix = resident_matrix(port, args, all.matrix, fast);
  typename P::template Kept<Share> share = port.keep(all);
  typename P::template Kept<BlockVectors<T>> vectors =
      port.keep(block_vectors<T>(args, share, fast));
  if constexpr (P::computes) load_resident(port, args, share, vectors);
  const MatrixOnChip<P, Matrix> on_chip(port, share.matrix);
  Ctx c(port, args, share, vectors, {});
  typename P::template Held<Judge> monitor = port.hold(Judge(args.params));
  typename P::template Held<Reporter> reporter =
      port.hold(Reporter(args.history, args.params.history_capacity, c.is_reporter()));
  typename P::template Held<M> m = port.hold(M(vectors));
  clear_vectors(c);
  double lambda_max = 0.0;
  if constexpr (requires(M& any) { any.set_interval(lambda_max, 0); }) {
    if (!estimate_lambda_max(c, lambda_max)) return;
    c.once([&] { m.set_interval(lambda_max, args.params.chebyshev_degree); });
    clear_vectors(c);
  }
  if (!solve_with<Algorithm>(c, m, monitor, reporter) || !end_solve(c, monitor)) return;
  if constexpr (P::computes) store_resident(port, args, share, vectors);
  if (!c.is_reporter()) return;
  write_outcome(*args.outcome, monitor, reporter.history());
  args.outcome->lambda_max = lambda_max;
  args.outcome->reductions = c.reductions();
  args.outcome->exchanges = c.exchanges();
}

// The same as a study.
template <Study S, template <class, class> class Algorithm, class M, class Format = AnySlices,
          Port P, class Matrix>
CPUFREE_KERNEL_FN void study_kernel(P& port, const SolveArgs<Matrix>& args) {
  typename P::template Held<Stopwatch> watch = port.hold(Stopwatch(port.ticks(), port.now()));
  Studied<P, S> studied(port, watch);
  solve_kernel<Algorithm, M, Format>(studied, args);
  if constexpr (S == Study::split) {
    studied.mark(Phase::vector);
    if (port.lane() == 0) args.splits[port.block()] = watch.split(port.now());
  }
}

}  // namespace cpufree
