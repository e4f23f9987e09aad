// Pipelined conjugate gradients (Ghysels & Vanroose 2014, "Hiding global synchronization latency in
// the preconditioned conjugate gradient algorithm", Parallel Computing 40), with residual
// replacement: one all-reduce an iteration, under way while M and A are applied.
//
// Its recurrences lose two to four digits of attainable accuracy. Every `replace_every` iterations
// the residual and all that depends on it are computed anew (after Cools et al. 2018, "Analyzing
// the effect of local rounding error propagation on the maximal attainable accuracy of the
// pipelined conjugate gradient method", SIAM J. Matrix Anal. Appl. 39(1)). Once that shows that the
// recurrences have lost touch with b - A x, predict-and-recompute CG takes over from x, and reaches
// what classic CG reaches.
//
// Work per iteration with a pointwise M, per row: A once, 17 passes over vectors (m = M w: read w,
// write m; n = A m: read m, write n; update: read n, z, w, s, r, p, x, write z, w, s, r, p, x) and
// D^-1 twice. All exchanges are of scratch vectors (proof (ii) of channel.hpp); the all-reduce
// proves nothing here, as blocks contribute to it before they read.
#pragma once

#include "cpufree/solvers/prcg.hpp"

namespace cpufree {

template <class Ctx, class M>
class PipelinedCg {
 public:
  using T = typename Ctx::T;
  using L = Lanes<typename Ctx::PortType>;

  CPUFREE_KERNEL_FN PipelinedCg(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
      : c_(c), m_(m), v_(c.vectors), monitor_(monitor), reporter_(reporter) {}

  // False: a wait gave up. Otherwise the monitor holds the reason.
  CPUFREE_KERNEL_FN bool run() {
    if (!begin_solve(c_, monitor_)) return false;
    reporter_.tell(c_, monitor_);
    if (monitor_.done()) return true;
    if (!precondition_residual()) return false;
    bool looked = true;  // the residual at hand has been judged
    while (true) {
      // The sums of the current residual travel while n = A M w is computed.
      c_.push(sums_);
      if (!product()) return false;
      double total[kSums];
      if (!c_.pull(total)) return false;
      if (!looked) {
        const Verdict verdict = monitor_.look(total[kSquare], c_.notes());
        reporter_.tell(c_, monitor_);
        if (verdict == Verdict::stop) return true;
        bool honest = true;
        if (verdict == Verdict::verify && !verify(c_, monitor_, false, honest)) return false;
        const bool replaced = !monitor_.done() && honest && due();
        if (replaced && !replace(honest)) return false;
        if (monitor_.done()) return true;
        if (!honest) return hand_over();
        looked = true;
        if (replaced) continue;
      }
      if (!coefficients(total[kGamma], total[kDelta])) {
        if (monitor_.done()) return true;
        bool honest = true;  // rounding errors, or A, broke the recurrence: fresh vectors will tell
        if (!verify(c_, monitor_, true, honest)) return false;
        return monitor_.done() || hand_over();
      }
      update();
      looked = false;
    }
  }

 private:
  enum Sum { kGamma, kDelta, kSquare, kSums };

  CPUFREE_KERNEL_FN bool due() const {
    const std::int32_t every = c_.args.params.replace_every;
    return every > 0 && monitor_.iterations() - replaced_at_ >= every;
  }

  CPUFREE_KERNEL_FN bool hand_over() {
    monitor_.note_hand_over();
    return PredictRecompute<Ctx, M>(c_, m_, monitor_, reporter_).take_over();
  }

  // (M r)(i), kept in u where it cannot be had on the fly.
  CPUFREE_KERNEL_FN T preconditioned(std::int32_t i) const {
    if constexpr (M::pointwise)
      return m_.at(v_.r, i);
    else
      return v_.u[i];
  }

  CPUFREE_KERNEL_FN void add(std::int32_t i, int lane) {
    const double u = preconditioned(i);
    sums_[kGamma][lane] += u * v_.r[i];
    sums_[kDelta][lane] += u * v_.w[i];
    sums_[kSquare][lane] += static_cast<double>(v_.r[i]) * v_.r[i];
  }
  CPUFREE_KERNEL_FN void clear_sums() {
    for (auto& sum : sums_) sum = L{};
  }

  // to = M from, of a vector kept in full.
  CPUFREE_KERNEL_FN bool precondition_into(const T* from, T* to) {
    if constexpr (!M::pointwise) {
      if (!m_.apply(c_, from)) return false;
      c_.rows([&](std::int32_t i, int) { to[i] = m_.out[i]; });
    }
    return true;
  }

  // to = A f, f(i) an expression of my rows.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply_into(F&& f, T* to) {
    const T* const copy = c_.exchange_scratch([&](std::int32_t i, int) { return f(i); });
    return c_.multiply(copy, [&](std::int32_t i, int, T value) { to[i] = value; });
  }

  // u = M r, w = A u, and the sums.
  CPUFREE_KERNEL_FN bool precondition_residual() {
    if (!precondition_into(v_.r, v_.u)) return false;
    if (!multiply_into([&](std::int32_t i) { return preconditioned(i); }, v_.w)) return false;
    clear_sums();
    c_.rows([&](std::int32_t i, int lane) { add(i, lane); });
    return true;
  }

  // m = M w (left in a scratch vector), n = A m.
  CPUFREE_KERNEL_FN bool product() {
    if constexpr (M::pointwise) {
      m_of_w_ = c_.exchange_scratch([&](std::int32_t i, int) { return m_.at(v_.w, i); });
    } else {
      if (!m_.apply(c_, v_.w)) return false;
      m_of_w_ = c_.exchange_scratch([&](std::int32_t i, int) { return m_.out[i]; });
    }
    T* const n = v_.n;
    return c_.multiply(m_of_w_, [&](std::int32_t i, int, T value) { n[i] = value; });
  }

  // alpha and beta of the next step. False: there is none; the monitor knows the reason, or the
  // recurrence, in which even sums of squares may go wrong, is broken.
  CPUFREE_KERNEL_FN bool coefficients(double gamma, double delta) {
    const bool first = gamma_ == 0.0;
    if (first && (!monitor_.positive(gamma, Reason::diverged_indefinite_pc) ||
                  !monitor_.positive(delta, Reason::diverged_indefinite_mat)))
      return false;
    beta_ = first ? 0.0 : gamma / gamma_;
    const double curvature = first ? delta : delta - beta_ * gamma / alpha_;
    if (!(gamma > 0.0) || !(curvature > 0.0) || !is_finite(gamma / curvature)) return false;
    alpha_ = gamma / curvature;
    gamma_ = gamma;
    return true;
  }

  CPUFREE_KERNEL_FN void update() {
    const T alpha = static_cast<T>(alpha_);
    const T beta = static_cast<T>(beta_);
    T *const z = v_.z, *const s = v_.s, *const p = v_.p, *const x = v_.x, *const r = v_.r,
             *const w = v_.w;
    const T *const n = v_.n, *const m = m_of_w_;
    clear_sums();
    c_.rows([&](std::int32_t i, int lane) {
      z[i] = n[i] + beta * z[i];
      s[i] = w[i] + beta * s[i];
      p[i] = preconditioned(i) + beta * p[i];
      x[i] += alpha * p[i];
      r[i] -= alpha * s[i];
      w[i] -= alpha * z[i];
      if constexpr (!M::pointwise) {
        v_.q[i] = m[i] + beta * v_.q[i];
        v_.u[i] -= alpha * v_.q[i];
      }
      add(i, lane);
    });
  }

  // r = b - A x, and all that depends on r and p: u, w, s = A p, q = M s, z = A q. alpha and beta
  // go on by recurrence: locally optimal ones after each replacement would spoil the Krylov space.
  CPUFREE_KERNEL_FN bool replace(bool& honest) {
    if (!verify(c_, monitor_, true, honest)) return false;
    replaced_at_ = monitor_.iterations();
    if (monitor_.done() || !honest) return true;
    if (!precondition_residual()) return false;
    if (!multiply_into([&](std::int32_t i) { return v_.p[i]; }, v_.s)) return false;
    if (!precondition_into(v_.s, v_.q)) return false;
    const auto ms = [&](std::int32_t i) {
      if constexpr (M::pointwise)
        return m_.at(v_.s, i);
      else
        return v_.q[i];
    };
    return multiply_into(ms, v_.z);
  }

  Ctx& c_;
  const M& m_;
  const Vectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  L sums_[kSums];
  const T* m_of_w_ = nullptr;
  double alpha_ = 0.0, beta_ = 0.0, gamma_ = 0.0;  // gamma_ = 0: no step yet
  std::int64_t replaced_at_ = 0;
};

}  // namespace cpufree
