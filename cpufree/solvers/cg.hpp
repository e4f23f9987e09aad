// Conjugate gradients (Hestenes & Stiefel 1952): the yardstick. Two all-reduces an iteration.
//
// Work per iteration with a pointwise M, per row: A once, 10 passes over vectors (s = A p: read p,
// write s; r update: read s, r, write r; x, p update: read x, p, r, write x, p) and D^-1 twice.
//
// Exchanges of p: between two of them every block contributes to an all-reduce after it has read p
// (proof (i) of channel.hpp): first p . s, then r . z.
#pragma once

#include "cpufree/solvers/preconditioners.hpp"
#include "cpufree/solvers/start.hpp"

namespace cpufree {

template <class Ctx, class M>
class ConjugateGradient {
 public:
  using T = typename Ctx::T;
  using L = Lanes<typename Ctx::PortType>;

  CPUFREE_KERNEL_FN ConjugateGradient(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
      : c_(c), m_(m), v_(c.vectors), monitor_(monitor), reporter_(reporter) {}

  // False: a wait gave up. Otherwise the monitor holds the reason.
  CPUFREE_KERNEL_FN bool run() {
    if (!begin_solve(c_, monitor_)) return false;
    reporter_.tell(c_, monitor_);
    if (monitor_.done()) return true;
    if (!precondition_residual(T{0})) return false;
    if (!monitor_.positive(rho_, Reason::diverged_indefinite_pc)) return true;
    double rho_before = rho_;
    direct(T{0});
    while (true) {
      if (!curvature()) return false;
      if (!monitor_.positive(mu_, Reason::diverged_indefinite_mat)) return true;
      const T alpha = static_cast<T>(rho_before / mu_);
      if (!monitor_.usable(static_cast<double>(alpha))) return true;
      if (!precondition_residual(alpha)) return false;
      const Verdict verdict = monitor_.look(rr_, c_.notes());
      reporter_.tell(c_, monitor_);
      if (verdict == Verdict::go_on) {
        if (!monitor_.positive(rho_, Reason::diverged_indefinite_pc)) return true;
        advance_and_direct(alpha, static_cast<T>(rho_ / rho_before));
        rho_before = rho_;
        continue;
      }
      advance(alpha);
      if (verdict == Verdict::stop) return true;
      bool honest = true;
      if (!verify(c_, monitor_, false, honest)) return false;
      if (monitor_.done()) return true;
      if (!honest && !precondition_residual(T{0})) return false;
      if (!monitor_.positive(rho_, Reason::diverged_indefinite_pc)) return true;
      direct(honest ? static_cast<T>(rho_ / rho_before) : T{0});
      rho_before = rho_;
    }
  }

 private:
  // s = A p, mu = p . s.
  CPUFREE_KERNEL_FN bool curvature() {
    L sums[1];
    const T* const p = v_.p;
    T* const s = v_.s;
    if (!c_.multiply(v_.p, [&](std::int32_t i, int lane, T ap) {
          s[i] = ap;
          sums[0][lane] += static_cast<double>(p[i]) * ap;
        }))
      return false;
    double total[1];
    if (!c_.sum(sums, total)) return false;
    mu_ = total[0];
    return true;
  }

  // r -= alpha s, rho = r . M r, rr = r . r.
  CPUFREE_KERNEL_FN bool precondition_residual(T alpha) {
    L sums[2];
    T* const r = v_.r;
    const T* const s = v_.s;
    if (!precondition(
            c_, m_, v_.r, [&](std::int32_t i, int) { r[i] -= alpha * s[i]; },
            [&](std::int32_t i, int lane, T z) {
              sums[0][lane] += static_cast<double>(r[i]) * z;
              sums[1][lane] += static_cast<double>(r[i]) * r[i];
            }))
      return false;
    double total[2];
    if (!c_.sum(sums, total)) return false;
    rho_ = total[0];
    rr_ = total[1];
    return true;
  }

  CPUFREE_KERNEL_FN T preconditioned(std::int32_t i) const {
    if constexpr (M::pointwise)
      return m_.at(v_.r, i);
    else
      return m_.out[i];
  }

  // x += alpha p; p = M r + beta p.
  CPUFREE_KERNEL_FN void advance_and_direct(T alpha, T beta) {
    T* const p = v_.p;
    T* const x = v_.x;
    c_.exchange(v_.p, [&](std::int32_t i, int) {
      x[i] += alpha * p[i];
      return preconditioned(i) + beta * p[i];
    });
  }
  CPUFREE_KERNEL_FN void advance(T alpha) {
    c_.rows([&](std::int32_t i, int) { v_.x[i] += alpha * v_.p[i]; });
  }
  CPUFREE_KERNEL_FN void direct(T beta) {
    T* const p = v_.p;
    c_.exchange(v_.p, [&](std::int32_t i, int) { return preconditioned(i) + beta * p[i]; });
  }

  Ctx& c_;
  const M& m_;
  const Vectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  double rho_ = 0.0, rr_ = 0.0, mu_ = 0.0;
};

}  // namespace cpufree
