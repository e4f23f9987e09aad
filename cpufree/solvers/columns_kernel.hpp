// The kernel for several right-hand sides: what every block of every PE runs.
#pragma once

#include "cpufree/solvers/columns_cg.hpp"

namespace cpufree {

// Preconditioners of columns (preconditioners.hpp): (M v)(i) of v(i).
struct IdentityOfColumns {
  template <class Ctx>
  CPUFREE_KERNEL_FN explicit IdentityOfColumns(const Ctx&) {}
  template <class V>
  CPUFREE_KERNEL_FN V of(Row, const V& value) const {
    return value;
  }
};
template <class T>
struct JacobiOfColumns {
  Private<const T> inverse_diagonal;
  template <class Ctx>
  CPUFREE_KERNEL_FN explicit JacobiOfColumns(const Ctx& c) : inverse_diagonal(c.inverse_diagonal) {}
  template <class V>
  CPUFREE_KERNEL_FN V of(Row i, const V& value) const {
    return inverse_diagonal[i] * value;
  }
};
template <class T, bool kJacobi>
using PointwiseOfColumns = std::conditional_t<kJacobi, JacobiOfColumns<T>, IdentityOfColumns>;

// Nothing of an earlier solve must show. Ghosts are always put before they are read.
template <class Ctx>
CPUFREE_KERNEL_FN void clear_columns(Ctx& c) {
  using Values = typename Ctx::Values;
  const bool guess = c.args.params[0].has_guess;
  c.rows([&](Row i, int) {
    c.r[i] = c.s[i] = c.p[i] = Values{};
    if (!guess) c.x[i] = Values{};
  });
}

template <class Ctx>
CPUFREE_KERNEL_FN void write_columns(const Ctx& c,
                                     const ColumnsBoard<typename Ctx::T, Ctx::kColumns>& board,
                                     int k) {
  Outcome& out = c.args.outcome[k];
  const Monitor& monitor = board.monitor[k];
  out.reason = monitor.reason();
  out.iterations = monitor.iterations();
  out.residual = monitor.residual();
  out.true_residual = monitor.true_residual();
  out.bnorm = monitor.bnorm();
  out.history_count = board.history[k].count();
  out.history_stride = board.history[k].stride();
  out.replacements = monitor.replacements();
  out.reductions = c.reductions();
  out.exchanges = c.exchanges();
}

// Solves A x = b for K columns by conjugate gradients with the preconditioner M.
template <class M, int K, Port P, class Matrix>
CPUFREE_KERNEL_FN void columns_kernel(P& port, const ColumnsArgs<Matrix, K>& args) {
  using Ctx = ColumnsContext<P, Matrix, K>;
  using Board = ColumnsBoard<typename Matrix::Value, K>;
  using Share = BlockShare<Matrix>;
  Share own = args.shares[port.block()];
  own.board.flags = args.flags;
  typename P::template Kept<Share> share = port.keep(own);
  typename P::template Held<Board> board =
      port.hold(Board(args, port.pe() == 0 && port.block() == 0));
  Ctx c(port, args, share);
  clear_columns(c);
  ColumnsCg<Ctx, M> method(c, board, M(c));
  if (!method.solve() || !c.reports()) return;
  c.each_column([&](int k) { write_columns(c, board, k); });
}

}  // namespace cpufree
