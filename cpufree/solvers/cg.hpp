// Conjugate gradients (Hestenes & Stiefel 1952): the yardstick. Two all-reduces an iteration. Side
// by side with the mathematics: reference/cg.hpp.
//
// Work per iteration with a pointwise M, per row: A once, 10 passes over vectors (s = A p: read p,
// write s; r update: read s, r, write r; x, p update: read x, p, r, write x, p) and D^-1 twice.
//
// Exchanges of p: between two of them every block contributes to an all-reduce after it has read p
// (proof (i) of channel.hpp): first p . s, then r . z.
//
// Several columns are recurrences side by side, one for each: each has its own alpha and beta, its
// own stopping test, its own verification by b - A x, and its own reason to end. What they share is
// the product, which reads each entry of A once for all of them, and the all-reduces. It is not
// block CG (O'Leary 1980, "The block conjugate gradient algorithm and related methods"), where
// directions of all columns serve each of them.
#pragma once

#include "cpufree/solvers/iterate.hpp"
#include "cpufree/solvers/preconditioners.hpp"

namespace cpufree {

template <class Ctx, class M>
class ConjugateGradient : public Recurrence<Ctx, M> {
  using Base = Recurrence<Ctx, M>;
  using Base::c_, Base::m_, Base::v_, Base::monitors_;
  using typename Base::Monitor, typename Base::Sums, typename Base::T, typename Base::Totals;
  using typename Base::Values;
  static constexpr int K = Ctx::kColumns;

 public:
  static constexpr int kReductions = 2;

  CPUFREE_KERNEL_FN ConjugateGradient(Ctx& c, const M& m, const Monitors<Ctx>& monitors)
      : Base(c, m, monitors), of_(c.scalars(Scalars())) {}

  template <class F>
  CPUFREE_HOT_FN bool advance(Start start, F&& meanwhile) {
    if (start == Start::no) {
      update_direction();
      if (!multiply(meanwhile)) return false;
    }
    return update_residual(start);
  }

  CPUFREE_KERNEL_FN double square(int k) const { return of_.rr[k]; }
  CPUFREE_KERNEL_FN double measure(int k) const { return of_.rho[k]; }
  CPUFREE_KERNEL_FN bool took_step(int k) const { return of_.broken[k] == Reason::running; }
  CPUFREE_KERNEL_FN bool has_step(int k) const {
    return took_step(k) && Monitor::is_step(of_.rho[k] > 0.0 && is_finite(of_.rho[k]) &&
                                            is_finite(of_column(of_.beta, k)));
  }
  CPUFREE_KERNEL_FN void recompute(int k, Start start) {
    of_column(of_.beta, k) =
        keeps_direction(start) ? static_cast<T>(of_.rho[k] / of_.previous_rho[k]) : T{0};
  }
  CPUFREE_KERNEL_FN Verdict check(int k, Monitor& monitor, Start) const {
    if (took_step(k))
      monitor.positive(of_.rho[k], Reason::diverged_indefinite_pc);
    else
      monitor.stop(of_.broken[k]);
    return Verdict::go_on;
  }
  CPUFREE_KERNEL_FN void settle() {
    const ColumnMask moved =
        columns_where<K>([&](int k) { return monitors_.runs(k) && took_step(k); });
    const Values alpha = of_.alpha;
    if (x_is_behind_ && moved.any())
      c_.rows([&](Row i, int) {
        const Values old = v_.x[i];
        v_.x[i] = select(moved, old + alpha * v_.p[i], old);
      });
    x_is_behind_ = false;
  }
  // Column k takes no step any more.
  CPUFREE_KERNEL_FN void freeze(int k) {
    of_column(of_.alpha, k) = -T{0};
    of_column(of_.beta, k) = 0;
  }

 private:
  struct Scalars {
    Values alpha = {}, beta = {};
    double rho[K] = {}, previous_rho[K] = {};  // r . M r
    double rr[K] = {};                         // r . r
    Reason broken[K] = {};                     // why p . A p makes no step
  };

  CPUFREE_KERNEL_FN static constexpr bool keeps_direction(Start start) {
    return start == Start::no || (Ctx::kRounded && start == Start::replaced);
  }

  // x += alpha p, of the step before; p = M r + beta p.
  CPUFREE_KERNEL_FN void update_direction() {
    const Values alpha = c_.in_register(of_.alpha), beta = c_.in_register(of_.beta);
    const bool move = x_is_behind_;
    const auto p = c_.hot(v_.p);
    const auto x = c_.hot(v_.x), r = c_.hot(v_.r);
    const M m = m_;
    c_.exchange(
        p,
        [&](Row i, int) {
          const Values old = p[i];
          const Values next = m.image(i, r[i]) + beta * old;
          if (move) x[i] += alpha * old;
          return next;
        },
        p, r, x, m.reads());
    x_is_behind_ = false;
  }

  // s = A p; alpha = rho / (p . s), where that is a step.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply(F&& meanwhile) {
    Sums sums[1];
    const auto p = c_.hot(v_.p);
    const auto s = c_.hot(v_.s);
    if constexpr (MultipliesByA<M>) {  // has a product out of line: a second one is not worth it
      if (!multiply_apart(c_, p, v_.s)) return false;
      c_.rows([&](Row i, int lane) { add_products(sums[0][lane], p[i], s[i]); });
    } else if (!c_.multiply(p, [&](Row i, int lane, const Values& ap) {
                 s[i] = ap;
                 add_products(sums[0][lane], p[i], ap);
               })) {
      return false;
    }
    Totals total[1];
    if (!sum_beside<M>(c_, sums, total, meanwhile, v_.r, v_.s, m_.reads())) return false;
    c_.each_scalar([&](int k) {
      if (monitors_.runs(k)) set_length(k, pick(total[0], k));
    });
    c_.see_scalars();
    return true;
  }

  CPUFREE_KERNEL_FN void set_length(int k, double curvature) {
    T alpha = static_cast<T>(of_.rho[k] * c_.port().reciprocal(curvature));
    Reason broken = Reason::running;
    if (!Monitor::is_step(curvature > 0.0 && is_finite(curvature) && is_finite(alpha))) {
      alpha = static_cast<T>(of_.rho[k] / curvature);
      if (!is_finite(curvature))
        broken = Reason::diverged_nanorinf;
      else if (!(curvature > 0.0))
        broken = Reason::diverged_indefinite_mat;
      else if (!is_finite(alpha))
        broken = Reason::diverged_breakdown;
    }
    of_column(of_.alpha, k) = alpha;
    of_.broken[k] = broken;
  }

  // r -= alpha s; rho = r . M r; beta = rho / previous rho, that of the step before. At a start r
  // stays, and columns that do not start keep their coefficients.
  CPUFREE_KERNEL_FN bool update_residual(Start start) {
    Sums sums[2];
    const Values alpha = start == Start::no ? c_.in_register(of_.alpha) : Values{};
    const auto r = c_.hot(v_.r), s = c_.hot(v_.s);
    if (!precondition(
            c_, m_, r, [&](Row i) { return r[i] - alpha * s[i]; },
            [&](Row, int lane, const Values& value, const Values& z) {
              add_products(sums[0][lane], value, z);
              add_products(sums[1][lane], value, value);
            },
            s))
      return false;
    Totals total[2];
    if (!sum_beside<M>(c_, sums, total, [] {}, v_.p, v_.r, v_.x, m_.reads())) return false;
    c_.each_scalar([&](int k) {
      if (monitors_.runs(k) && (start == Start::no || monitors_.starts(k)))
        set_direction(k, start, pick(total[0], k), pick(total[1], k));
    });
    x_is_behind_ = start == Start::no;
    return true;
  }

  CPUFREE_KERNEL_FN void set_direction(int k, Start start, double rho, double rr) {
    if (!Ctx::kRounded || start != Start::replaced) of_.previous_rho[k] = of_.rho[k];
    of_.rho[k] = rho;
    of_.rr[k] = rr;
    if (keeps_direction(start)) {
      of_column(of_.beta, k) = static_cast<T>(rho * c_.port().reciprocal(of_.previous_rho[k]));
    } else {
      of_column(of_.beta, k) = 0;
      of_.broken[k] = Reason::running;
    }
  }

  typename Ctx::template Scalars<Scalars> of_;  // each column
  bool x_is_behind_ = false;                    // x lacks alpha p
};

}  // namespace cpufree
