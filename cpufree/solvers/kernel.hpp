// The solver kernel: what every block of every PE runs, from the right-hand side to the answer.
#pragma once

#include "cpufree/solvers/bicgstab.hpp"
#include "cpufree/solvers/cg.hpp"
#include "cpufree/solvers/chebyshev.hpp"
#include "cpufree/solvers/factored.hpp"
#include "cpufree/solvers/minres.hpp"
#include "cpufree/solvers/pipelined_cg.hpp"
#include "cpufree/solvers/prcg.hpp"

namespace cpufree {

// Nothing of an earlier solve must show: a NaN would survive a multiplication by zero. Ghosts are
// not cleared: they are always put before they are read.
template <class Ctx>
CPUFREE_KERNEL_FN void clear_vectors(Ctx& c) {
  using Values = typename Ctx::Values;
  const auto& v = c.vectors;
  c.rows([&](Row i, int) {
    const Values zero = {};
    v.s[i] = zero;
    v.p.set(i, zero), v.scratch[0].set(i, zero), v.scratch[1].set(i, zero);
    if (!c.args.params.has_guess) v.x[i] = zero;
    const auto clear = [&](const Private<Values>& vector) {
      if (vector.data != nullptr) vector[i] = zero;
    };
    clear(v.z), clear(v.w), clear(v.n), clear(v.u), clear(v.q), clear(v.out), clear(v.rest);
  });
}

template <class Ctx>
CPUFREE_KERNEL_FN void write_outcome(const Ctx& c, const Monitors<Ctx>& monitors, int k) {
  Outcome& out = c.args.outcome[k];
  const Monitor& monitor = monitors[k];
  out.reason = monitor.reason();
  out.iterations = monitor.iterations();
  out.residual = monitor.residual();
  out.true_residual = monitor.true_residual();
  out.weighted_residual = monitor.weighted_residual();
  out.bnorm = monitor.bnorm();
  out.history_count = monitors.history(k).count();
  out.history_stride = monitors.history(k).stride();
  out.replacements = monitor.replacements();
  out.handed_over_at = monitor.handed_over_at();
  out.reductions = c.reductions();
  out.exchanges = c.exchanges();
}

// From the initial to the last residual. False: a wait gave up.
template <template <class, class> class Algorithm, class Ctx, class M>
CPUFREE_HOT_FN bool solve_with(Ctx& c, const M& m, Monitors<Ctx>& monitors) {
  if (!begin_solve(c, monitors)) return false;
  if (monitors.all_stop()) return true;
  Algorithm<Ctx, M> method(c, m, monitors);
  const Ending ending = iterate(c, method, monitors);
  if constexpr (!Algorithm<Ctx, M>::kRestarts)
    if (ending == Ending::lost) return hand_over(c, m, monitors);
  return ending != Ending::gave_up;
}

// My block's share of the matrix, and what of it is on chip.
template <class Ctx>
CPUFREE_KERNEL_FN typename Ctx::Share share_of(typename Ctx::PortType& port,
                                               const typename Ctx::Args& args) {
  typename Ctx::Share mine = args.shares[port.block()];
  if constexpr (Ctx::kColumns > 1) {
    mine.board.flags = args.flags;
  } else {
    std::byte* const fast = port.fast_memory();
    mine.reads = resident_reads(port, args, mine, fast);
    if constexpr (Ctx::kComputes) mine.matrix = resident_matrix(port, args, mine.matrix, fast);
  }
  return mine;
}

// Solves A x = b with `Algorithm` and the preconditioner M, in the verbs of Ctx.
template <template <class, class> class Algorithm, class M, class Ctx>
CPUFREE_KERNEL_FN void solve_in(typename Ctx::PortType& port, const typename Ctx::Args& args) {
  using P = typename Ctx::PortType;
  constexpr bool kOnChip = Ctx::kComputes && Ctx::kColumns == 1;
  typename P::template Kept<typename Ctx::Share> share = port.keep(share_of<Ctx>(port, args));
  typename P::template Kept<typename Ctx::BlockVectors> vectors =
      port.keep(block_vectors(args, share, port.fast_memory()));
  if constexpr (kOnChip) load_resident(port, args, share, vectors);
  const MatrixOnChip<kOnChip, P, decltype(share.matrix)> on_chip(port, share.matrix);
  Ctx c(port, args, share, vectors, {});
  typename P::template Held<Monitors<Ctx>> monitors = port.hold(Monitors<Ctx>(args, c.reports()));
  typename P::template Held<M> m = port.hold(M(vectors));
  clear_vectors(c);
  if (!m.prepare(c)) return;
  if (!solve_with<Algorithm>(c, m, monitors) || !end_solve(c, monitors)) return;
  if constexpr (kOnChip) store_resident(port, args, share, vectors);
  if (!c.reports()) return;
  c.each_column([&](int k) {
    write_outcome(c, monitors, k);
    m.report(args.outcome[k]);
  });
}

// The kernel: for one column; for K by ConjugateGradient or BlockConjugateGradient, with an M that
// is pointwise or of K columns, and with nothing on chip.
template <template <class, class> class Algorithm, class M, class Format = AnySlices, Port P,
          class Matrix, int K>
CPUFREE_KERNEL_FN void solve_kernel(P& port, const SolveArgs<Matrix, K>& args) {
  solve_in<Algorithm, M, Context<P, Matrix, Format, K>>(port, args);
}

}  // namespace cpufree
