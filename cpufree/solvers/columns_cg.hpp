// Conjugate gradients for K right-hand sides at once. These are K recurrences of cg.hpp side by
// side, one for each column: each has its own alpha and beta, its own stopping test, its own
// verification by b - A x, and its own reason to end. What they share is the product, which reads
// each entry of A once for all columns, and the all-reduces. It is not block CG (O'Leary 1980, "The
// block conjugate gradient algorithm and related methods"), where directions of all columns serve
// each of them.
//
// Two all-reduces an iteration: K values p . A p, then 2 K values r . M r and r . r (more than
// kReduceWidth of these go in two).
//
// Columns that have ended. Others go on, and loops have no conditions for columns: so the vectors
// p, r and s of an ended column become +0, its beta +0 and its alpha -0. Then A p = 0, r - alpha s
// = 0, p = M r + beta p = 0, and x + alpha p = x + (-0) = x to the last bit, whatever x is. No NaN
// of a column comes into another one: nothing ever combines two of them.
//
// Exchanges of p: as in cg.hpp, proof (i) of channel.hpp.
//
// Decisions. Thread k of every block keeps the books of column k: step lengths, monitor, history.
// All blocks have the same sums and so come to the same decisions. What threads read of the board
// they read between the barrier after it was written and their part in the next all-reduce, which
// has a barrier before the board is written again.
#pragma once

#include <utility>

#include "cpufree/solvers/columns_context.hpp"
#include "cpufree/solvers/monitor.hpp"
#include "cpufree/solvers/report.hpp"
#include "cpufree/solvers/true_residual.hpp"

namespace cpufree {

// What a block knows of its columns. Held by the block.
template <class T, int K>
class ColumnsBoard {
 public:
  template <class Args>
  CPUFREE_KERNEL_FN ColumnsBoard(const Args& args, bool reports)
      : ColumnsBoard(args, reports, std::make_integer_sequence<int, K>()) {}

  // Of each column.
  Monitor monitor[K];
  History history[K];
  Columns<T, K> alpha = {}, beta = {};
  double rho[K] = {};         // r . M r
  double share_of_b[K] = {};  // 1 / ||b||^2
  Reason broken[K] = {};      // why p . A p makes no step
  Verdict verdict[K] = {};
  bool running[K] = {};

  CPUFREE_KERNEL_FN ColumnMask which(Verdict asked) const {
    return where([&](int k) { return running[k] && verdict[k] == asked; });
  }
  CPUFREE_KERNEL_FN ColumnMask that_run() const {
    return where([&](int k) { return running[k]; });
  }
  // Those that run, and have ended by what was decided last.
  CPUFREE_KERNEL_FN ColumnMask that_end() const {
    return where([&](int k) { return running[k] && monitor[k].done(); });
  }
  CPUFREE_KERNEL_FN bool all_go_on() const {
    return !where([&](int k) { return running[k] && verdict[k] != Verdict::go_on; }).any();
  }
  template <class F>
  CPUFREE_KERNEL_FN static ColumnMask where(F&& f) {
    ColumnMask mask;
    for (int k = 0; k < K; ++k)
      if (f(k)) mask.add(k);
    return mask;
  }
  // The column that is farthest from its end.
  CPUFREE_KERNEL_FN int slowest() const {
    int slowest = 0;
    double most = -1.0;
    for (int k = 0; k < K; ++k) {
      const double part = running[k] ? monitor[k].square() * share_of_b[k] : -1.0;
      if (part > most) most = part, slowest = k;
    }
    return slowest;
  }

 private:
  template <class Args, int... k>
  CPUFREE_KERNEL_FN ColumnsBoard(const Args& args, bool reports, std::integer_sequence<int, k...>)
      : monitor{Monitor(args.params[k])...},
        history{History(reports ? args.history + k * args.params[k].history_capacity : nullptr,
                        args.params[k].history_capacity)...} {}
};

// The recurrences. Every verb that returns false found that a wait gave up: leave the kernel.
template <class Ctx, class M>
class ColumnsCg {
  static constexpr int K = Ctx::kColumns;
  using T = typename Ctx::T;
  using Values = typename Ctx::Values;
  using Sums = typename Ctx::Sums;
  using Totals = typename Ctx::Totals;
  using Board = ColumnsBoard<T, K>;

 public:
  CPUFREE_KERNEL_FN ColumnsCg(Ctx& c, Board& board, const M& m) : c_(c), board_(board), m_(m) {}

  CPUFREE_KERNEL_FN bool solve() {
    if (!begin() || !start(board_.that_run())) return false;
    while (board_.that_run().any()) {
      if (!step()) return false;
      if (!board_.all_go_on() && !attend()) return false;
    }
    return end();
  }

 private:
  // r = b - A x, monitors begin; columns whose b is 0 are solved by 0, whatever the guess.
  CPUFREE_KERNEL_FN bool begin() {
    const bool guess = c_.args.params[0].has_guess;
    Totals rr = {};
    if (guess && !true_residual(ColumnMask::all(K), Keep::plain, rr)) return false;
    Sums sums[1];
    c_.rows([&](Row i, int lane) {
      const Values b = c_.b[i];
      if (!guess) c_.r[i] = b;
      add_products(sums[0][lane], b, b);
    });
    Totals bb[1];
    if (!c_.sum(sums, bb)) return false;
    const ColumnMask zero = Board::where([&](int k) { return bb[0][k] == 0.0; });
    if (zero.any()) c_.rows([&](Row i, int) { c_.x[i] = select(zero, Values{}, c_.x[i]); });
    c_.each_column([&](int k) {
      const double mine = of_column(bb[0], k);
      Monitor& monitor = board_.monitor[k];
      monitor.begin(mine, guess && mine != 0.0 ? of_column(rr, k) : mine);
      board_.share_of_b[k] = mine > 0.0 ? 1.0 / mine : 0.0;
      board_.running[k] = true;
      board_.verdict[k] = monitor.done() ? Verdict::stop : Verdict::go_on;
      remember(k);
    });
    end_columns();
    return true;
  }

  // rho = r . M r of the columns of the mask, whose next direction is M r.
  CPUFREE_KERNEL_FN bool start(ColumnMask anew) {
    if (!anew.any()) return true;
    Sums sums[1];
    c_.rows([&](Row i, int lane) {
      const Values r = c_.r[i];
      add_products(sums[0][lane], r, m_.of(i, r));
    });
    Totals rho[1];
    if (!c_.sum(sums, rho)) return false;
    c_.each_column([&](int k) {
      if (!anew.has(k)) return;
      board_.rho[k] = of_column(rho[0], k);
      board_.beta[k] = 0;
      board_.monitor[k].positive(board_.rho[k], Reason::diverged_indefinite_pc);
    });
    end_columns();
    return true;
  }

  // One iteration of all columns that run, up to the verdicts.
  CPUFREE_KERNEL_FN bool step() {
    update_direction();
    return multiply() && update_residual();
  }

  // x += alpha p, of the step before; p = M r + beta p.
  CPUFREE_KERNEL_FN void update_direction() {
    const Values alpha = board_.alpha, beta = board_.beta;
    const bool move = x_is_behind_;
    const auto p = c_.p;
    const auto x = c_.x, r = c_.r;
    const M m = m_;
    c_.exchange(p, [&](Row i, int) {
      const Values old = p[i];
      const Values next = m.of(i, r[i]) + beta * old;
      if (move) x[i] += alpha * old;
      return next;
    });
    x_is_behind_ = false;
  }

  // s = A p; alpha = rho / (p . s), where that is a step.
  CPUFREE_KERNEL_FN bool multiply() {
    Sums sums[1];
    const auto p = c_.p;
    const auto s = c_.s;
    if (!c_.multiply(p, [&](Row i, int lane, const Values& ap) {
          s[i] = ap;
          add_products(sums[0][lane], p[i], ap);
        }))
      return false;
    Totals total[1];
    if (!c_.sum(sums, total)) return false;
    c_.each_column([&](int k) { set_length(k, of_column(total[0], k)); });
    return true;
  }

  // By the thread of column k.
  CPUFREE_KERNEL_FN void set_length(int k, double total) {
    board_.broken[k] = Reason::running;
    if (!board_.running[k]) return;
    T alpha = static_cast<T>(board_.rho[k] * c_.port().reciprocal(total));
    if (!(total > 0.0 && is_finite(total) && is_finite(alpha))) {
      alpha = static_cast<T>(board_.rho[k] / total);
      if (!is_finite(total))
        board_.broken[k] = Reason::diverged_nanorinf;
      else if (!(total > 0.0))
        board_.broken[k] = Reason::diverged_indefinite_mat;
      else if (!is_finite(alpha))
        board_.broken[k] = Reason::diverged_breakdown;
    }
    board_.alpha[k] = alpha;
  }

  // r -= alpha s; rho = r . M r; beta = rho / previous rho; verdicts.
  CPUFREE_KERNEL_FN bool update_residual() {
    Sums sums[2];
    const Values alpha = board_.alpha;
    const auto r = c_.r, s = c_.s;
    const M m = m_;
    c_.rows([&](Row i, int lane) {
      const Values value = r[i] - alpha * s[i];
      add_products(sums[0][lane], value, m.of(i, value));
      add_products(sums[1][lane], value, value);
      r[i] = value;
    });
    Totals total[2];
    if (!c_.sum(sums, total)) return false;
    x_is_behind_ = true;
    c_.each_column([&](int k) { judge(k, of_column(total[0], k), of_column(total[1], k)); });
    if (c_.reports() && c_.port().lane() == 0) {
      const int k = board_.slowest();
      const Monitor& monitor = board_.monitor[k];
      c_.port().report(report_of_column(k, monitor.iterations()), monitor.square());
    }
    return true;
  }

  // By the thread of column k. As in iterate.hpp: an iteration far from every threshold is counted
  // and no more.
  CPUFREE_KERNEL_FN void judge(int k, double rho, double rr) {
    if (!board_.running[k]) return;
    Monitor& monitor = board_.monitor[k];
    board_.verdict[k] = Verdict::stop;
    if (board_.broken[k] != Reason::running) return monitor.stop(board_.broken[k]);
    const double before = std::exchange(board_.rho[k], rho);
    T beta = static_cast<T>(rho * c_.port().reciprocal(before));
    if (rho > 0.0 && is_finite(rho) && is_finite(beta) &&
        monitor.iterations() + 1 < c_.args.params[k].maxiter &&
        monitor.needs_no_decision(rr, c_.notes())) {
      monitor.count(rr);
      board_.verdict[k] = Verdict::go_on;
    } else {
      beta = static_cast<T>(rho / before);
      board_.verdict[k] = monitor.judge(rr, c_.notes());
      if (board_.verdict[k] == Verdict::go_on) expect_positive(k);
    }
    board_.beta[k] = beta;
    remember(k);
  }

  CPUFREE_KERNEL_FN void expect_positive(int k) {
    board_.monitor[k].positive(board_.rho[k], Reason::diverged_indefinite_pc);
    board_.verdict[k] = board_.monitor[k].done() ? Verdict::stop : Verdict::go_on;
  }
  CPUFREE_KERNEL_FN void remember(int k) {
    const Monitor& monitor = board_.monitor[k];
    if (c_.reports()) board_.history[k].add(monitor.iterations(), monitor.square());
  }

  // Some columns may have met the stopping rule, others have ended: x as far as r; b - A x for the
  // former, of all columns in one product. Where a recurrence was inaccurate it starts anew.
  CPUFREE_KERNEL_FN bool attend() {
    settle(Board::where(
        [&](int k) { return board_.running[k] && board_.broken[k] == Reason::running; }));
    const ColumnMask asked = board_.which(Verdict::verify);
    ColumnMask anew;
    if (asked.any()) {
      Totals rr = {};
      if (!true_residual({}, Keep::nothing, rr)) return false;
      c_.each_column([&](int k) {
        if (!asked.has(k)) return;
        board_.monitor[k].verify(of_column(rr, k), false);
        if (board_.monitor[k].done())
          board_.verdict[k] = Verdict::stop;
        else if (board_.monitor[k].accurate())
          expect_positive(k);
        else
          board_.verdict[k] = Verdict::restart;
      });
      anew = board_.which(Verdict::restart);
    }
    end_columns();
    Totals rr = {};
    if (anew.any() && !true_residual(anew, Keep::accurate, rr)) return false;
    return start(anew);
  }

  CPUFREE_KERNEL_FN void settle(ColumnMask moved) {
    const Values alpha = board_.alpha;
    if (x_is_behind_)
      c_.rows([&](Row i, int) {
        const Values old = c_.x[i];
        c_.x[i] = select(moved, old + alpha * c_.p[i], old);
      });
    x_is_behind_ = false;
  }

  // Squares of the norms of b - A x of all columns, as true_residual.hpp computes them; r becomes
  // b - A x in those of `which`, as `keep` says.
  CPUFREE_KERNEL_FN bool true_residual(ColumnMask which, Keep keep, Totals& rr) {
    Sums sums[1];
    const auto copy = c_.exchange_scratch([&](Row i, int) { return c_.x[i]; });
    if (!c_.multiply_cold(copy, [&](Row i, int lane, int k, const AccurateSum<T>& ax) {
          const T b = c_.b[i][k];
          const double r = ax.below(b);
          if (which.has(k))
            c_.r[i][k] = keep == Keep::plain ? static_cast<T>(b - ax.plain()) : static_cast<T>(r);
          sums[0][lane][k] += r * r;
        }))
      return false;
    Totals total[1];
    if (!c_.sum(sums, total)) return false;
    rr = total[0];
    return true;
  }

  // Columns that have ended run no more. Their x is what it is to be.
  CPUFREE_KERNEL_FN void end_columns() {
    const ColumnMask ended = board_.that_end();
    if (!ended.any()) return;
    c_.rows([&](Row i, int) {
      c_.p[i] = select(ended, Values{}, c_.p[i]);
      c_.r[i] = select(ended, Values{}, c_.r[i]);
      c_.s[i] = select(ended, Values{}, c_.s[i]);
    });
    c_.port().sync_block();  // all threads have asked who ends
    c_.each_column([&](int k) {
      if (!ended.has(k)) return;
      board_.alpha[k] = -T{0};
      board_.beta[k] = 0;
      board_.running[k] = false;
    });
  }

  // The true residuals that are not known yet.
  CPUFREE_KERNEL_FN bool end() {
    const ColumnMask unknown = Board::where([&](int k) { return !board_.monitor[k].verified(); });
    if (!unknown.any()) return true;
    Totals rr = {};
    if (!true_residual({}, Keep::nothing, rr)) return false;
    c_.each_column([&](int k) {
      if (unknown.has(k)) board_.monitor[k].record_true_residual(of_column(rr, k));
    });
    return true;
  }

  // all[k], without an array in memory.
  CPUFREE_KERNEL_FN static double of_column(const Totals& all, int k) {
    double mine = all[0];
    CPUFREE_UNROLL
    for (int j = 1; j < K; ++j) mine = j == k ? all[j] : mine;
    return mine;
  }

  Ctx& c_;
  Board& board_;
  const M m_;
  bool x_is_behind_ = false;  // x lacks alpha p
};

}  // namespace cpufree
