// Conjugate gradients (Hestenes & Stiefel 1952): the yardstick. Two all-reduces an iteration. Side
// by side with the mathematics: reference/cg.hpp.
//
// Work per iteration with a pointwise M, per row: A once, 10 passes over vectors (s = A p: read p,
// write s; r update: read s, r, write r; x, p update: read x, p, r, write x, p) and D^-1 twice.
//
// Exchanges of p: between two of them every block contributes to an all-reduce after it has read p
// (proof (i) of channel.hpp): first p . s, then r . z.
#pragma once

#include "cpufree/solvers/iterate.hpp"
#include "cpufree/solvers/preconditioners.hpp"

namespace cpufree {

template <class Ctx, class M>
class ConjugateGradient : public Recurrence<Ctx, M> {
  using Base = Recurrence<Ctx, M>;
  using Base::c_, Base::m_, Base::v_;
  using typename Base::Monitor, typename Base::Sums, typename Base::T;

 public:
  static constexpr int kReductions = 2;
  using Base::Base;

  template <class F>
  CPUFREE_HOT_FN bool advance(Start start, F&& meanwhile) {
    broken_ = Reason::running;
    if (start != Start::no) {
      alpha_ = 0;
    } else {
      update_direction();
      if (!multiply(meanwhile)) return false;
      if (broken_ != Reason::running) return true;
    }
    return update_residual(start);
  }

  CPUFREE_KERNEL_FN double square() const { return rr_; }
  CPUFREE_KERNEL_FN double measure() const { return rho_; }
  CPUFREE_KERNEL_FN bool took_step() const { return broken_ == Reason::running; }
  CPUFREE_KERNEL_FN bool has_step() const {
    return took_step() && (Monitor::blind || (rho_ > 0.0 && is_finite(rho_) && is_finite(beta_)));
  }
  CPUFREE_KERNEL_FN void recompute(Start start) {
    beta_ = start == Start::no ? static_cast<T>(rho_ / previous_rho_) : T{0};
  }
  CPUFREE_KERNEL_FN Verdict check(Monitor& monitor, Start) const {
    if (took_step())
      monitor.positive(rho_, Reason::diverged_indefinite_pc);
    else
      monitor.stop(broken_);
    return Verdict::go_on;
  }
  CPUFREE_KERNEL_FN void settle() {
    if (x_is_behind_) c_.rows([&](Row i, int) { v_.x[i] += alpha_ * v_.p[i]; });
    x_is_behind_ = false;
  }

 private:
  // x += alpha p, of the step before; p = M r + beta p.
  CPUFREE_KERNEL_FN void update_direction() {
    const T alpha = c_.in_register(alpha_), beta = c_.in_register(beta_);
    const bool move = x_is_behind_;
    const auto p = c_.hot(v_.p);
    const auto x = c_.hot(v_.x), r = c_.hot(v_.r);
    const M m = m_;
    c_.exchange(
        p,
        [&](Row i, int) {
          const T old = p[i];
          T next;
          if constexpr (M::pointwise)
            next = m.of(i, r[i]) + beta * old;
          else
            next = m.out[i] + beta * old;
          if (move) x[i] += alpha * old;
          return next;
        },
        p, r, x, m.reads());
    x_is_behind_ = false;
  }

  // s = A p; alpha = rho / (p . s), if that is a step.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply(F&& meanwhile) {
    Sums sums[1];
    const auto p = c_.hot(v_.p);
    const auto s = c_.hot(v_.s);
    if (!c_.multiply(p, [&](Row i, int lane, T ap) {
          s[i] = ap;
          sums[0][lane] += static_cast<double>(p[i]) * ap;
        }))
      return false;
    double total[1];
    if (!c_.sum(sums, total, meanwhile, v_.r, v_.s, m_.reads())) return false;
    alpha_ = static_cast<T>(rho_ * c_.port().reciprocal(total[0]));
    if (Monitor::blind || (total[0] > 0.0 && is_finite(total[0]) && is_finite(alpha_))) return true;
    alpha_ = static_cast<T>(rho_ / total[0]);
    if (!is_finite(total[0]))
      broken_ = Reason::diverged_nanorinf;
    else if (!(total[0] > 0.0))
      broken_ = Reason::diverged_indefinite_mat;
    else if (!is_finite(alpha_))
      broken_ = Reason::diverged_breakdown;
    // Assigned on all paths of an iteration, these live in no register between two.
    rr_ = previous_rho_ = 0.0;
    return true;
  }

  // r -= alpha s; rho = r . M r; beta = rho / previous rho.
  CPUFREE_KERNEL_FN bool update_residual(Start start) {
    Sums sums[2];
    const T alpha = c_.in_register(alpha_);
    const auto r = c_.hot(v_.r), s = c_.hot(v_.s);
    if (!precondition(
            c_, m_, r, [&](Row i) { return r[i] - alpha * s[i]; },
            [&](Row, int lane, T value, T z) {
              sums[0][lane] += static_cast<double>(value) * z;
              sums[1][lane] += static_cast<double>(value) * value;
            },
            s))
      return false;
    double total[2];
    if (!c_.sum(sums, total, [] {}, v_.p, v_.r, v_.x, m_.reads())) return false;
    previous_rho_ = rho_;
    rho_ = total[0];
    rr_ = total[1];
    beta_ = start == Start::no ? static_cast<T>(rho_ * c_.port().reciprocal(previous_rho_)) : T{0};
    x_is_behind_ = start == Start::no;
    return true;
  }

  T alpha_ = 0, beta_ = 0;
  double rho_ = 0.0, previous_rho_ = 0.0;  // r . M r
  double rr_ = 0.0;                        // r . r
  Reason broken_ = Reason::running;        // why p . A p makes no step
  bool x_is_behind_ = false;               // x lacks alpha p
};

}  // namespace cpufree
