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
  using P = typename Ctx::PortType;
  using L = Lanes<P>;

  CPUFREE_KERNEL_FN PredictRecompute(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
      : c_(c),
        m_(m),
        v_(c.vectors),
        monitor_(monitor),
        reporter_(reporter),
        s_(c.port().hold(Scalars())) {}

  // False: a wait gave up. Otherwise the monitor holds the reason.
  CPUFREE_KERNEL_FN bool run() {
    if (!begin_solve(c_, monitor_, reporter_)) return false;
    return monitor_.done() || take_over();
  }

  // Goes on for another method, from its x and r = b - A x.
  CPUFREE_KERNEL_FN bool take_over() {
    bool fresh = true;  // p = M r is to be set, and no step has been taken since
    while (true) {
      if (fresh && !precondition_residual()) return false;
      update(static_cast<T>(s_.alpha), static_cast<T>(s_.beta), fresh);
      if (!product(fresh)) return false;
      if (monitor_.done()) return true;
      fresh = false;
      if (s_.verdict == Verdict::go_on) continue;
      bool honest = true;
      const bool drifted = s_.drifted;
      if (!verify(c_, monitor_, drifted, honest)) return false;
      if (monitor_.done()) return true;
      fresh = !honest || drifted;
      if (fresh) continue;
      c_.once_more([&] { check(); });
      if (monitor_.done()) return true;
    }
  }

 private:
  enum Sum { kMu, kDelta, kGamma, kNu, kSquare, kSums };

  // Held by the block.
  struct Scalars {
    double mu = 0.0, nu = 0.0;       // p . A p, r . M r
    double alpha = 0.0, beta = 0.0;  // of the next step
    bool drifted = false;
    Verdict verdict = Verdict::go_on;
  };

  CPUFREE_KERNEL_FN void check() {
    if (monitor_.positive(s_.mu, Reason::diverged_indefinite_mat) &&
        monitor_.positive(s_.nu, Reason::diverged_indefinite_pc))
      monitor_.usable(static_cast<double>(static_cast<T>(s_.alpha)));
  }

  // The judgement of r (not of a fresh one), and the next step. r . M r after that step, in exact
  // arithmetic, fails to be positive only by cancellation, at the level of rounding errors: then
  // the direction starts afresh. Drifted: u, kept by recurrence, has lost touch with M r, which is
  // a sign of rounding errors, not of M.
  CPUFREE_KERNEL_FN void judge(const double (&total)[kSums], bool fresh) {
    s_.mu = total[kMu];
    s_.nu = total[kNu];
    s_.verdict = Verdict::go_on;
    s_.drifted = !M::pointwise && !(s_.nu > 0.0) && s_.mu > 0.0;
    if (!fresh) {
      s_.verdict = monitor_.look(total[kSquare], c_.notes());
      reporter_.tell(c_, monitor_);
      if (s_.verdict == Verdict::stop) return;
      if (s_.drifted) s_.verdict = Verdict::verify;
    }
    const double alpha = s_.nu / s_.mu;
    const double predicted = s_.nu - 2.0 * alpha * total[kDelta] + alpha * alpha * total[kGamma];
    s_.alpha = alpha;
    s_.beta = predicted > 0.0 ? predicted / s_.nu : 0.0;
    if (s_.verdict == Verdict::go_on) check();
  }

  CPUFREE_KERNEL_FN ResidualImage<M, T> preconditioned() const { return {m_, v_.r, v_.u}; }

  // u = M r, if it is kept.
  CPUFREE_KERNEL_FN bool precondition_residual() {
    if constexpr (!M::pointwise) {
      if (!m_.apply(c_, v_.r)) return false;
      c_.rows([&](Row i, int) { v_.u[i] = m_.out[i]; });
    }
    return true;
  }

  // x += alpha p; r -= alpha s; p = M r + beta p. M r follows by recurrence where it is kept.
  // `fresh`: p = M r, and nothing else.
  CPUFREE_KERNEL_FN void update(T alpha, T beta, bool fresh) {
    const auto x = v_.x;
    const auto r = v_.r;
    const auto p = v_.p;
    const auto s = v_.s;
    const auto mr = preconditioned();
    c_.exchange(p, [&](Row i, int) {
      if (fresh) return mr(i);
      const T before = p[i];
      x[i] += alpha * before;
      r[i] -= alpha * s[i];
      if constexpr (!M::pointwise) v_.u[i] -= alpha * m_.out[i];
      return mr(i) + beta * before;
    });
  }

  // s = A p, M s, and all sums.
  CPUFREE_KERNEL_FN bool product(bool fresh) {
    L sums[kSums];
    const auto p = v_.p;
    const auto r = v_.r;
    const auto of_r = preconditioned();
    if (!multiply_precondition(c_, m_, p, v_.s, [&](Row i, int lane, T s, T ms) {
          const double mr = of_r(i);
          sums[kMu][lane] += static_cast<double>(p[i]) * s;
          sums[kDelta][lane] += mr * s;
          sums[kGamma][lane] += static_cast<double>(s) * ms;
          sums[kNu][lane] += mr * r[i];
          sums[kSquare][lane] += static_cast<double>(r[i]) * r[i];
        }))
      return false;
    double total[kSums];
    if (!c_.sum(sums, total)) return false;
    c_.once([&] { judge(total, fresh); });
    return true;
  }

  Ctx& c_;
  const M& m_;
  const BlockVectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  typename P::template Held<Scalars> s_;
};

}  // namespace cpufree
