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
  using Monitor = MonitorOf<Ctx>;

  CPUFREE_KERNEL_FN PredictRecompute(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
      : c_(c),
        m_(m),
        v_(c.vectors),
        monitor_(monitor),
        reporter_(reporter),
        s_(c.port().hold(Scalars())),
        books_(c.port().hold(Books())) {}

  // False: a wait gave up. Otherwise the monitor holds the reason.
  CPUFREE_HOT_FN bool run() {
    if (!begin_solve(c_, monitor_, reporter_)) return false;
    return monitor_.done() || take_over();
  }

  // Goes on for another method, from its x and r = b - A x.
  CPUFREE_KERNEL_FN bool take_over() {
    bool fresh = true;   // p = M r is to be set, and no step has been taken since
    bool quiet = false;  // the iteration before was
    while (true) {
      if (!quiet) open_books();
      if (fresh && !precondition_residual()) return false;
      update(fresh);
      double total[kSums];
      if (!product(total, quiet)) return false;
      quiet = !fresh && all_quiet(total);
      if (quiet) continue;
      c_.once_more([&] { judge(total, fresh); });  // all have asked whether it is quiet
      if (monitor_.done()) return true;
      fresh = false;
      if (s_.verdict != Verdict::go_on) {
        bool honest = true;
        const bool drifted = s_.drifted;
        if (!verify(c_, monitor_, drifted, honest)) return false;
        if (monitor_.done()) return true;
        fresh = !honest || drifted;
        if (fresh) continue;
        c_.once_more([&] { check(); });
        if (monitor_.done()) return true;
      }
      alpha_ = s_.alpha;
      beta_ = s_.beta;
    }
  }

 private:
  enum Sum { kMu, kDelta, kGamma, kNu, kSquare, kSums };

  // Held by the block: for iterations that are not quiet.
  struct Scalars {
    double mu = 0.0, nu = 0.0;  // p . A p, r . M r
    T alpha = 0, beta = 0;      // of the next step
    bool drifted = false;
    Verdict verdict = Verdict::go_on;
  };

  CPUFREE_KERNEL_FN void open_books() {
    c_.once_more(
        [&] { books_.open(monitor_.iterations(), c_.reductions(), c_.args.params.maxiter, 1); });
  }

  CPUFREE_KERNEL_FN void check() {
    if (monitor_.positive(s_.mu, Reason::diverged_indefinite_mat) &&
        monitor_.positive(s_.nu, Reason::diverged_indefinite_pc))
      monitor_.usable(static_cast<double>(s_.alpha));
  }

  // Whether all that is to be done about the sums is to take the next step: what `judge` would find
  // too, as every thread sees for itself.
  CPUFREE_KERNEL_FN bool all_quiet(const double (&total)[kSums]) {
    const bool step = Monitor::blind || (total[kMu] > 0.0 && total[kNu] > 0.0 && alpha_ > T{0} &&
                                         is_finite(static_cast<double>(alpha_)));
    if (!step || !books_.quiet(c_, monitor_, total[kSquare])) return false;
    books_.note(c_, total[kSquare]);
    return true;
  }

  // The judgement of r (not of a fresh one). Drifted: u, kept by recurrence, has lost touch with
  // M r, which is a sign of rounding errors, not of M.
  CPUFREE_KERNEL_FN void judge(double (&total)[kSums], bool fresh) {
    c_.recall(total);
    s_.mu = total[kMu];
    s_.nu = total[kNu];
    take_step(total, 1.0 / s_.mu);  // of sums that are no ordinary numbers, too
    s_.alpha = alpha_;
    s_.beta = beta_;
    s_.verdict = Verdict::go_on;
    s_.drifted = !M::pointwise && !(s_.nu > 0.0) && s_.mu > 0.0;
    if (!fresh) {
      s_.verdict = monitor_.look(total[kSquare], c_.notes());
      reporter_.tell(c_, monitor_);
      if (s_.verdict == Verdict::stop) return;
      if (s_.drifted) s_.verdict = Verdict::verify;
    }
    if (s_.verdict == Verdict::go_on) check();
  }

  CPUFREE_KERNEL_FN ResidualImage<M, T> preconditioned() const { return {m_, v_.u}; }

  // u = M r, if it is kept.
  CPUFREE_KERNEL_FN bool precondition_residual() {
    if constexpr (!M::pointwise) {
      if (!m_.apply(c_, v_.r)) return false;
      c_.rows([&](Row i, int) { v_.u[i] = m_.out[i]; });
    }
    return true;
  }

  // x += alpha p; r -= alpha s; p = M r + beta p. M r follows by recurrence where it is kept.
  // `fresh`: p = M r, and nothing else. All of a row is read before any of it is written, for as
  // far as compilers know, one may be the other.
  CPUFREE_KERNEL_FN void update(bool fresh) {
    const T alpha = c_.port().at_hand(alpha_);
    const T beta = c_.port().at_hand(beta_);
    const auto x = c_.near(v_.x);
    const auto r = c_.near(v_.r);
    const auto p = c_.near(v_.p);
    const auto s = c_.near(v_.s);
    const auto mr = preconditioned();
    c_.exchange(
        p,
        [&](Row i, int) {
          if (fresh) return mr(i, r[i]);
          const T before = p[i];
          const T next_x = x[i] + alpha * before;
          const T next_r = r[i] - alpha * s[i];
          if constexpr (!M::pointwise) v_.u[i] -= alpha * m_.out[i];
          const T next_p = mr(i, next_r) + beta * before;
          x[i] = next_x;
          r[i] = next_r;
          return next_p;
        },
        p, x, r, s, mr.reads());
  }

  // s = A p, M s, all sums, and the step that follows from them. `quiet`: the step before was. r .
  // M r after that step, in exact arithmetic, fails to be positive only by cancellation, at the
  // level of rounding errors: then the direction starts afresh.
  CPUFREE_KERNEL_FN bool product(double (&total)[kSums], bool quiet) {
    L sums[kSums];
    const auto p = c_.near(v_.p);
    const auto r = c_.near(v_.r);
    const auto of_r = preconditioned();
    if (!multiply_precondition(
            c_, m_, p, c_.near(v_.s),
            [&](Row i, int lane, T s, T ms) {
              const double here = r[i];
              const double mr = of_r(i, r[i]);
              sums[kMu][lane] += static_cast<double>(p[i]) * s;
              sums[kDelta][lane] += mr * s;
              sums[kGamma][lane] += static_cast<double>(s) * ms;
              sums[kNu][lane] += mr * here;
              sums[kSquare][lane] += here * here;
            },
            r))
      return false;
    const auto meanwhile = [&] {
      if (quiet) books_.write(c_, monitor_, reporter_);
    };
    if (!c_.sum(sums, total, meanwhile, v_.p, v_.x, v_.r, v_.s, of_r.reads())) return false;
    take_step(total, c_.port().reciprocal(total[kMu]));
    return true;
  }

  CPUFREE_KERNEL_FN void take_step(const double (&total)[kSums], double inverse) {
    const double alpha = total[kNu] * inverse;
    const double predicted =
        1.0 - 2.0 * total[kDelta] * inverse + alpha * (total[kGamma] * inverse);
    alpha_ = static_cast<T>(alpha);
    beta_ = static_cast<T>(predicted > 0.0 ? predicted : 0.0);
  }

  Ctx& c_;
  const M& m_;
  const BlockVectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  typename P::template Held<Scalars> s_;
  typename P::template Held<Books> books_;
  T alpha_ = 0, beta_ = 0;  // of the next step: the same in all threads, who compute alike
};

}  // namespace cpufree
