// Block conjugate gradients (O'Leary 1980, "The block conjugate gradient algorithm and related
// methods") for K right-hand sides: directions of all columns serve each of them, which takes fewer
// iterations. Side by side with the mathematics: reference/block_cg.hpp.
//
// The recurrences are those that Dubrulle (2001, "Retooling the method of block conjugate
// gradients") calls BCGrQ, with a preconditioner: the residuals are kept as R = Q F, with columns
// of Q that are orthonormal in the inner product of M, and a K x K matrix F:
//
//   S = A P,  Q' = Q - S a,  x += P a F        a = (P^T A P)^-1
//   Q' = Q B                                   B^T B = Q'^T M Q', by Cholesky with pivots
//   F = B F,  P = M Q + P B^T
//
// In exact arithmetic P^T Q = I, so that P has full rank, and only Q' can lose rank: columns of Q'
// that depend on others are left out of Q (as Ji & Li 2017, "A breakdown-free block conjugate
// gradient method", leave out directions), and slots of Q and P beyond the rank hold zeros. What is
// left out of R is so small that it shows when b - A x is computed: then all columns start again
// from that. Where Q' is near to dependent its factor is refined by that of Q itself.
//
// Each column has its own residual, stopping test, verification and reason (monitor.hpp). A column
// that has ended has no part in F any more; its directions go on to serve the others.
//
// Work of an iteration, per row: A once, 10 passes over vectors of K values as cg of K columns,
// 4 K^2 products with coefficients, and two Gram matrices. Two all-reduces.
//
// Exchanges of p: between two of them every block contributes to an all-reduce after it has read p
// (proof (i) of channel.hpp).
#pragma once

#include "cpufree/solvers/gram.hpp"
#include "cpufree/solvers/iterate.hpp"
#include "cpufree/solvers/preconditioners.hpp"

namespace cpufree {

// What all threads of a block share. Thread k writes column k of matrices.
template <class T, int K>
struct BlockNumbers {
  Coefficients<T, K> step = {};     // a
  Coefficients<T, K> moves = {};    // a F
  Coefficients<T, K> weights = {};  // B^-1: Q = Q' weights
  Coefficients<T, K> carry = {};    // B^T
  Coefficients<T, K> parts = {};    // F
  double b[K][K] = {};
  double sums[most_sums(K)] = {};
  LowerFactor<K> curvature = {};
  RankFactor<K> fresh = {};
  int rank = 0;
  unsigned dependent = 0;  // columns that were found so when they started
  double rr[K] = {};       // r . r
  double rho[K] = {};      // r . M r
  Reason broken = Reason::running;
  bool old = false;  // steps have been taken since the start
};

template <class Ctx, class M>
class BlockConjugateGradient : public Recurrence<Ctx, M> {
  using Base = Recurrence<Ctx, M>;
  using Base::c_, Base::m_, Base::v_, Base::monitors_;
  using typename Base::Monitor, typename Base::T, typename Base::Values;
  static constexpr int K = Ctx::kColumns;
  static constexpr int kGram = kUpper<K>;
  static_assert(K > 1);

 public:
  static constexpr int kReductions = 2;
  static constexpr bool kCoupled = true;

  CPUFREE_KERNEL_FN BlockConjugateGradient(Ctx& c, const M& m, const Monitors<Ctx>& monitors)
      : Base(c, m, monitors), of_(c.scalars(BlockNumbers<T, K>())) {}

  template <class F>
  CPUFREE_HOT_FN bool advance(Start start, F&&) {
    if (start == Start::no) {
      update_direction();
      if (!multiply()) return false;
    } else {
      begin();
    }
    return update_residual(start);
  }

  CPUFREE_KERNEL_FN double square(int k) const { return of_.rr[k]; }
  CPUFREE_KERNEL_FN double measure(int k) const { return of_.rho[k]; }
  CPUFREE_KERNEL_FN bool took_step(int) const { return of_.broken == Reason::running; }
  CPUFREE_KERNEL_FN bool has_step(int k) const { return took_step(k) && is_finite(of_.rho[k]); }
  CPUFREE_KERNEL_FN static void recompute(int, Start) {}
  CPUFREE_KERNEL_FN Verdict check(int k, Monitor& monitor, Start start) const {
    const bool first = start != Start::no && monitor.iterations() == 0;  // of right-hand sides
    if (first && c_.reports() && ((of_.dependent >> k) & 1U) != 0U)
      c_.args.outcome[k].dependent = 1;
    if (took_step(k)) return Verdict::go_on;
    if (of_.broken == Reason::diverged_indefinite_mat && of_.old && of_.curvature.doubtful)
      return Verdict::restart;
    monitor.stop(of_.broken);
    return Verdict::stop;
  }
  CPUFREE_KERNEL_FN void settle() {
    if (x_is_behind_) c_.rows([&](Row i, int) { v_.x[i] += of_.moves.times(v_.p[i]); });
    x_is_behind_ = false;
  }
  // Column k takes no step any more.
  CPUFREE_KERNEL_FN void freeze(int k) {
    for (int i = 0; i < K; ++i) of_.parts.row[i][k] = of_.moves.row[i][k] = 0;
  }

 private:
  // F = I in the columns that start, 0 in others.
  CPUFREE_KERNEL_FN void begin() {
    c_.each_scalar([&](int k) {
      const bool starts = monitors_.runs(k) && monitors_.starts(k);
      for (int i = 0; i < K; ++i) of_.parts.row[i][k] = i == k && starts ? T{1} : T{0};
    });
    c_.see_scalars();
  }

  // x += P a F, of the step before; Q = Q' B^-1; P = M Q + P B^T.
  CPUFREE_KERNEL_FN void update_direction() {
    const bool move = x_is_behind_;
    const auto p = v_.p;
    const auto x = v_.x, r = v_.r;
    const M m = m_;
    const BlockNumbers<T, K>& of = of_;
    c_.exchange(p, [&](Row i, int) {
      const Values old = p[i], wide = r[i];
      const Values q = of.weights.times(wide);
      const Values image = preconditioned(m, i, wide, q);
      if (move) x[i] += of.moves.times(old);
      r[i] = q;
      return image + of.carry.times(old);
    });
    x_is_behind_ = false;
  }
  // (M Q)(i), where `wide` is Q'(i), and what M keeps that of.
  CPUFREE_KERNEL_FN Values preconditioned(const M& m, Row i, const Values& wide,
                                          const Values& q) const {
    if constexpr (M::pointwise)
      return m.image(i, q);
    else
      return of_.weights.times(m.image(i, wide));
  }

  // S = A P; P^T A P, and what follows from it.
  CPUFREE_KERNEL_FN bool multiply() {
    GramSums<K> gram;
    const auto p = v_.p;
    const auto s = v_.s;
    if constexpr (MultipliesByA<M>) {
      if (!multiply_apart(c_, p, s)) return false;
      c_.rows([&](Row i, int) { gram.add(p[i], s[i]); });
    } else if (!c_.multiply(p, [&](Row i, int, const Values& ap) {
                 s[i] = ap;
                 gram.add(p[i], ap);
               })) {
      return false;
    }
    double partial[kGram], total[kGram];
    gram.list(partial);
    if (!c_.sum_numbers(partial, total, [] {})) return false;
    if (c_.port().lane() == 0) set_curvature(total);
    c_.see_scalars();
    c_.each_scalar([&](int k) { set_lengths(k); });
    c_.see_scalars();
    return true;
  }
  CPUFREE_KERNEL_FN void set_curvature(const double (&total)[kGram]) {
    bool finite = true;
    for (int n = 0; n < kGram; ++n) {
      of_.sums[n] = total[n];
      finite = finite && is_finite(total[n]);
    }
    if (!finite)
      of_.broken = Reason::diverged_nanorinf;
    else if (!of_.curvature.factor(of_.sums, of_.rank))
      of_.broken = Reason::diverged_indefinite_mat;
  }
  // Columns k of a and of a F; 0 where there is no step.
  CPUFREE_KERNEL_FN void set_lengths(int k) {
    double unit[K], part[K];
    const bool step = of_.broken == Reason::running;
    for (int i = 0; i < K; ++i) {
      unit[i] = step && i == k && k < of_.rank ? 1.0 : 0.0;
      part[i] = step ? static_cast<double>(of_.parts.row[i][k]) : 0.0;
    }
    if (step) of_.curvature.solve(unit), of_.curvature.solve(part);
    for (int i = 0; i < K; ++i) {
      of_.step.row[i][k] = static_cast<T>(unit[i]);
      of_.moves.row[i][k] = static_cast<T>(part[i]);
    }
  }

  // Q' = Q - S a, at a start R; norms of the columns of R, Q'^T M Q', and what follows from it.
  CPUFREE_KERNEL_FN bool update_residual(Start start) {
    const bool starts = start != Start::no;
    const ColumnMask begun =
        columns_where<K>([&](int k) { return monitors_.runs(k) && monitors_.starts(k); });
    GramSums<K> gram;
    Columns<double, K> squares = {};
    const auto r = v_.r, s = v_.s;
    const BlockNumbers<T, K>& of = of_;
    if (!precondition(
            c_, m_, r,
            [&](Row i) {
              return starts ? select(begun, r[i], Values{}) : r[i] - of.step.times(s[i]);
            },
            [&](Row, int, const Values& value, const Values& z) {
              const Values mine = of.parts.times(value);
              add_products(squares, mine, mine);
              gram.add(value, z);
            },
            s))
      return false;
    double partial[kGram + K], total[kGram + K];
    gram.list(partial);
    CPUFREE_UNROLL
    for (int k = 0; k < K; ++k) partial[kGram + k] = squares[k];
    if (!c_.sum_numbers(partial, total, [] {})) return false;
    if (c_.port().lane() == 0) set_factor(total, starts);
    c_.see_scalars();
    c_.each_scalar([&](int k) { set_basis(k); });
    c_.see_scalars();
    if (refines(of_) && !refine()) return false;
    c_.each_scalar([&](int k) { set_parts(k, starts); });
    c_.see_scalars();
    x_is_behind_ = !starts && of_.broken == Reason::running;
    return true;
  }

  // The least pivot that says something, of sums with roundings and of vectors with these.
  CPUFREE_KERNEL_FN double least_pivot() const {
    const double of_sums = 4.0 * K * 0x1p-52, unit = c_.args.params.roundoff;
    return of_sums > 100.0 * unit * unit ? of_sums : 100.0 * unit * unit;
  }
  CPUFREE_KERNEL_FN void set_factor(const double (&total)[kGram + K], bool starts) {
    for (int n = 0; n < kGram + K; ++n) of_.sums[n] = total[n];
    of_.fresh.factor(of_.sums, least_pivot());
    of_.rank = of_.fresh.rank;
    if (starts) {
      of_.broken = Reason::running;
      of_.dependent = of_.fresh.dropped;
    }
    of_.old = !starts && (of_.old || of_.broken == Reason::running);
    if (of_.broken != Reason::running || of_.fresh.sound) return;
    bool finite = true;
    for (int n = 0; n < kGram; ++n) finite = finite && is_finite(of_.sums[n]);
    of_.broken = finite ? Reason::diverged_indefinite_pc : Reason::diverged_nanorinf;
  }
  // Columns k of B and of B^-1, and ||r||^2.
  CPUFREE_KERNEL_FN void set_basis(int k) {
    double column[K];
    of_.fresh.inverse(k, column);
    for (int i = 0; i < K; ++i) {
      of_.weights.row[i][k] = static_cast<T>(column[i]);
      of_.b[i][k] = of_.fresh.b[i][k];
    }
    of_.rr[k] = of_.sums[kGram + k];
  }
  CPUFREE_KERNEL_FN static bool refines(const BlockNumbers<T, K>& of) {
    constexpr double kLittle = 1e-4;
    return of.fresh.smallest < kLittle && of.broken == Reason::running;
  }
  // The factor of a Q that is not orthonormal yet, by which B and B^-1 are corrected.
  CPUFREE_KERNEL_FN bool refine() {
    GramSums<K> gram;
    const auto r = v_.r;
    const M m = m_;
    c_.rows([&](Row i, int) {
      const Values wide = r[i], q = of_.weights.times(wide);
      gram.add(q, preconditioned(m, i, wide, q));
    });
    double partial[kGram], total[kGram];
    gram.list(partial);
    if (!c_.sum_numbers(partial, total, [] {})) return false;
    if (c_.port().lane() == 0) {
      for (int n = 0; n < kGram; ++n) of_.sums[n] = total[n];
      of_.fresh.factor(of_.sums, least_pivot());
      of_.rank = of_.fresh.rank;
    }
    c_.see_scalars();
    c_.each_scalar([&](int k) { correct(k); });
    c_.see_scalars();
    return true;
  }
  // Column k of B, and row k of B^-1.
  CPUFREE_KERNEL_FN void correct(int k) {
    double of_b[K], of_weights[K], column[K];
    for (int i = 0; i < K; ++i) {
      of_b[i] = 0.0;
      for (int j = 0; j < K; ++j) of_b[i] += of_.fresh.b[i][j] * of_.b[j][k];
    }
    for (int j = 0; j < K; ++j) {
      of_.fresh.inverse(j, column);
      of_weights[j] = 0.0;
      for (int i = 0; i < K; ++i)
        of_weights[j] += static_cast<double>(of_.weights.row[k][i]) * column[i];
    }
    for (int j = 0; j < K; ++j) {
      of_.b[j][k] = of_b[j];
      of_.weights.row[k][j] = static_cast<T>(of_weights[j]);
    }
  }
  // Column k of F and of B^T, and r . M r. At a start no direction is kept.
  CPUFREE_KERNEL_FN void set_parts(int k, bool starts) {
    double part[K];
    of_.rho[k] = 0.0;
    for (int i = 0; i < K; ++i) {
      part[i] = 0.0;
      for (int j = 0; j < K; ++j) part[i] += of_.b[i][j] * static_cast<double>(of_.parts.row[j][k]);
      of_.rho[k] += part[i] * part[i];
    }
    for (int i = 0; i < K; ++i) {
      of_.parts.row[i][k] = static_cast<T>(part[i]);
      of_.carry.row[i][k] = starts ? T{0} : static_cast<T>(of_.b[k][i]);
    }
  }

  typename Ctx::template Scalars<BlockNumbers<T, K>> of_;
  bool x_is_behind_ = false;  // x lacks P a F
};

}  // namespace cpufree
