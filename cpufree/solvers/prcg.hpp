// Predict-and-recompute conjugate gradients (Chen & Carson 2020, "Predict-and-recompute conjugate
// gradient variants", SIAM J. Sci. Comput. 42(5), PR-CG): one all-reduce an iteration, accuracy of
// the classic recurrence. beta comes from a prediction of r . M r, which is then recomputed along
// with the other sums, so that errors of the prediction do not add up.
//
// Work per iteration with a pointwise M, per row: A once, 10 passes over vectors (x, r, p update:
// read x, r, p, s, write x, r, p; s = A p and sums: read p, r, write s) and D^-1 twice.
//
// Exchanges of p: every block contributes to an all-reduce after it has read p and before p is
// exchanged again (proof (i) of channel.hpp).
#pragma once

#include "cpufree/solvers/preconditioners.hpp"
#include "cpufree/solvers/start.hpp"

namespace cpufree {

template <class Ctx, class M>
class PredictRecompute {
 public:
  using T = typename Ctx::T;
  using L = Lanes<typename Ctx::PortType>;

  CPUFREE_KERNEL_FN PredictRecompute(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
      : c_(c), m_(m), v_(c.vectors), monitor_(monitor), reporter_(reporter) {}

  // False: a wait gave up. Otherwise the monitor holds the reason.
  CPUFREE_KERNEL_FN bool run() {
    if (!begin_solve(c_, monitor_)) return false;
    reporter_.tell(c_, monitor_);
    if (monitor_.done()) return true;
    return start() && iterate();
  }

  // Goes on for another method, from its x and r = b - A x.
  CPUFREE_KERNEL_FN bool take_over() { return start() && iterate(); }

 private:
  enum Sum { kMu, kDelta, kGamma, kNu, kSquare, kSums };

  // p = M r, and the first step.
  CPUFREE_KERNEL_FN bool start() {
    if (!precondition_residual()) return false;
    c_.exchange(v_.p, [&](std::int32_t i, int) { return preconditioned(i); });
    if (!product()) return false;
    predict();
    return true;
  }

  CPUFREE_KERNEL_FN bool iterate() {
    while (positive()) {
      update(static_cast<T>(alpha_), static_cast<T>(beta_));
      if (!product()) return false;
      Verdict verdict = monitor_.look(rr_, c_.notes());
      reporter_.tell(c_, monitor_);
      if (verdict == Verdict::stop) return true;
      if (drifted()) verdict = Verdict::verify;
      predict();
      if (verdict == Verdict::go_on) continue;
      bool honest = true;
      if (!verify(c_, monitor_, drifted(), honest)) return false;
      if (monitor_.done()) return true;
      if ((!honest || drifted()) && !start()) return false;
    }
    return true;
  }

  CPUFREE_KERNEL_FN bool positive() {
    return monitor_.positive(mu_, Reason::diverged_indefinite_mat) &&
           monitor_.positive(nu_, Reason::diverged_indefinite_pc) &&
           monitor_.usable(static_cast<double>(static_cast<T>(alpha_)));
  }

  // u, kept by recurrence, has lost touch with M r: a sign of rounding errors, not of M.
  CPUFREE_KERNEL_FN bool drifted() const { return !M::pointwise && !(nu_ > 0.0) && mu_ > 0.0; }

  // The next step. r . M r after it, in exact arithmetic, fails to be positive only by
  // cancellation, at the level of rounding errors: then the direction starts afresh.
  CPUFREE_KERNEL_FN void predict() {
    alpha_ = nu_ / mu_;
    const double predicted = nu_ - 2.0 * alpha_ * delta_ + alpha_ * alpha_ * gamma_;
    beta_ = predicted > 0.0 ? predicted / nu_ : 0.0;
  }

  // (M r)(i), kept in u where it cannot be had on the fly.
  CPUFREE_KERNEL_FN T preconditioned(std::int32_t i) const {
    if constexpr (M::pointwise)
      return m_.at(v_.r, i);
    else
      return v_.u[i];
  }

  // u = M r, if it is kept.
  CPUFREE_KERNEL_FN bool precondition_residual() {
    if constexpr (!M::pointwise) {
      if (!m_.apply(c_, v_.r)) return false;
      c_.rows([&](std::int32_t i, int) { v_.u[i] = m_.out[i]; });
    }
    return true;
  }

  // x += alpha p; r -= alpha s; p = M r + beta p. M r follows by recurrence where it is kept.
  CPUFREE_KERNEL_FN void update(T alpha, T beta) {
    T* const x = v_.x;
    T* const r = v_.r;
    T* const p = v_.p;
    const T* const s = v_.s;
    c_.exchange(v_.p, [&](std::int32_t i, int) {
      x[i] += alpha * p[i];
      r[i] -= alpha * s[i];
      if constexpr (!M::pointwise) v_.u[i] -= alpha * m_.out[i];
      return preconditioned(i) + beta * p[i];
    });
  }

  // s = A p, M s, and all sums.
  CPUFREE_KERNEL_FN bool product() {
    L sums[kSums];
    const T* const p = v_.p;
    const T* const r = v_.r;
    if (!multiply_precondition(c_, m_, v_.p, v_.s, [&](std::int32_t i, int lane, T s, T ms) {
          const double mr = preconditioned(i);
          sums[kMu][lane] += static_cast<double>(p[i]) * s;
          sums[kDelta][lane] += mr * s;
          sums[kGamma][lane] += static_cast<double>(s) * ms;
          sums[kNu][lane] += mr * r[i];
          sums[kSquare][lane] += static_cast<double>(r[i]) * r[i];
        }))
      return false;
    double total[kSums];
    if (!c_.sum(sums, total)) return false;
    mu_ = total[kMu];
    delta_ = total[kDelta];
    gamma_ = total[kGamma];
    nu_ = total[kNu];
    rr_ = total[kSquare];
    return true;
  }

  Ctx& c_;
  const M& m_;
  const Vectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  double mu_ = 0.0, delta_ = 0.0, gamma_ = 0.0, nu_ = 0.0, rr_ = 0.0;
  double alpha_ = 0.0, beta_ = 0.0;  // of the next step
};

}  // namespace cpufree
