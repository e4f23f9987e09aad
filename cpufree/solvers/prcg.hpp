// Predict-and-recompute conjugate gradients (Chen & Carson 2020, "Predict-and-recompute conjugate
// gradient variants", SIAM J. Sci. Comput. 42(5), PR-CG): one all-reduce an iteration, accuracy of
// the classic recurrence. beta comes from a prediction of r . M r, which is then recomputed along
// with the other sums, so that errors of the prediction do not add up. Side by side with the
// mathematics: reference/prcg.hpp.
//
// The prediction is a difference of numbers of the size of r . M r, and so are its errors. Where a
// step shrinks r . M r to less than kPredictable of that, which few steps do, it is not trusted: x
// and r take the step by themselves, and beta comes from r . M r of the new r, as in classic CG. A
// direction with a wrong beta would be no descent where r vanishes, as after a first guess whose
// product with A is far larger than b. The same is done where r . M r has become so small that M r,
// which has a recurrence of its own where M is not pointwise, is wrong in many digits.
//
// Work per iteration with a pointwise M, per row: A once, 10 passes over vectors (x, r, p update:
// read x, r, p, s, write x, r, p; s = A p and sums: read p, r, write s) and D^-1 twice.
//
// Exchanges of p: every block contributes to an all-reduce after it has read p and before p is
// exchanged again (proof (i) of channel.hpp).
#pragma once

#include "cpufree/solvers/iterate.hpp"
#include "cpufree/solvers/preconditioners.hpp"

namespace cpufree {

// x and r take the step alpha; r . M r of the new r, and M r itself where it is kept, out of line.
// The all-reduce keeps proof (i).
template <class Ctx, class M>
CPUFREE_COLD_FN ColdResult<Ctx> step_cold(typename Ctx::PortType port,
                                          const typename Ctx::Args& args,
                                          const typename Ctx::Share& share,
                                          const typename Ctx::BlockVectors& v,
                                          typename Ctx::State state, const M& m,
                                          typename Ctx::T alpha) {
  Ctx c(port, args, share, v, state);
  c.rows([&](Row i, int) {
    v.x[i] += alpha * v.p[i];
    v.r[i] -= alpha * v.s[i];
  });
  const KeptImage<M, typename Ctx::T> mr{m, v.u};
  RareSums<Ctx> sums;
  if (!mr.begin(c, m, v.r)) return {c.state(), 0.0, false};
  c.rows([&](Row i, int lane) {
    const double r = v.r[i];
    sums.partial[0][lane] += mr(i, v.r[i]) * r;
  });
  const bool met = sum_apart(c, sums);
  return {c.state(), sums.total[0], met};
}

// The sums of an iteration whose r has been replaced, with r . p in the place of p . s, out of
// line: M r . s, r . M r, r . r. s . M s is not among them.
template <class Ctx, class M>
CPUFREE_COLD_FN ColdResult<Ctx> sums_of_replaced(typename Ctx::PortType port,
                                                 const typename Ctx::Args& args,
                                                 const typename Ctx::Share& share,
                                                 const typename Ctx::BlockVectors& v,
                                                 typename Ctx::State state, const M& m,
                                                 RareSums<Ctx>& sums) {
  Ctx c(port, args, share, v, state);
  const KeptImage<M, typename Ctx::T> image{m, v.u};
  if (!image.begin(c, m, v.r)) return {c.state(), 0.0, false};
  if constexpr (image.kept)  // the next step wants M s
    if (!apply_apart(c, m, v.s)) return {c.state(), 0.0, false};
  c.rows([&](Row i, int lane) {
    const double r = v.r[i], mr = image(i, v.r[i]);
    sums.partial[0][lane] += r * v.p[i];
    sums.partial[1][lane] += mr * v.s[i];
    sums.partial[3][lane] += mr * r;
    sums.partial[4][lane] += r * r;
  });
  const bool met = sum_apart(c, sums);
  return {c.state(), 0.0, met};
}

// kRare: for where it takes over from another method, with product and sums out of line: one more
// pass over s, and half of the code that a compiler would have for the whole kernel.
template <class Ctx, class M, bool kRare>
class PredictRecomputeAs : public Recurrence<Ctx, M> {
  using Base = Recurrence<Ctx, M>;
  using Base::c_, Base::m_, Base::v_;
  using typename Base::Monitor, typename Base::Sums, typename Base::T;

 public:
  static constexpr int kReductions = 1;
  using Base::Base;

  template <class F>
  CPUFREE_HOT_FN bool advance(Start start, F&& meanwhile) {
    if constexpr (Ctx::kRounded)
      if (start == Start::replaced) return keep_direction();
    if (start != Start::no && !image_of_r().begin(c_, m_, v_.r)) return false;
    update(start);
    return multiply(meanwhile);
  }

  CPUFREE_KERNEL_FN double square(int) const { return total_[kRR]; }
  CPUFREE_KERNEL_FN double measure(int) const { return total_[kNu]; }
  CPUFREE_KERNEL_FN bool has_step(int) const {
    return Monitor::is_step(total_[kMu] > 0.0 && total_[kNu] > 0.0 && alpha_ > T{0} &&
                            is_finite(alpha_) && predictable());
  }
  CPUFREE_KERNEL_FN void recompute(int, Start start) {
    if constexpr (Ctx::kRounded)
      if (start == Start::replaced) return set_level(total_[kNu]);
    c_.recall(total_);
    if (start != Start::no) set_level(total_[kNu]);
    set_step(1.0 / total_[kMu]);
  }
  // Where u = M r is kept by recurrence, it may lose touch with M r: rounding errors, not M. And
  // without s . M s, the prediction is nonsense.
  CPUFREE_KERNEL_FN Verdict check(int, Monitor& monitor, Start start) const {
    const double mu = total_[kMu], nu = total_[kNu];
    if (Image::kept && start == Start::no && mu > 0.0 && !(nu > 0.0)) return Verdict::restart;
    if (monitor.positive(mu, Reason::diverged_indefinite_mat) &&
        monitor.positive(nu, Reason::diverged_indefinite_pc) && monitor.usable(alpha_) &&
        start == Start::anew && !monitor.in_range(total_[kGamma]))
      monitor.stop(Reason::diverged_breakdown);
    return Verdict::go_on;
  }
  // Takes the next step of x and r where its beta cannot be predicted. False: a wait gave up.
  CPUFREE_KERNEL_FN bool prepare() {
    if (Monitor::is_step(predictable())) return true;
    const auto answer =
        step_cold<Ctx>(c_.port(), c_.args, c_.share(), c_.vectors, c_.state(), m_, alpha_);
    c_.go_on_from(answer.after);
    alpha_ = 0;  // it is taken
    beta_ = answer.value > 0.0 ? static_cast<T>(answer.value / total_[kNu]) : T{0};
    set_level(answer.value);
    return answer.met;
  }

 private:
  static constexpr T kPredictable = static_cast<T>(1e-4);
  enum Sum { kMu, kDelta, kGamma, kNu, kRR, kSums };
  static_assert(kSums == RareSums<Ctx>::kCount, "recall() reads what was summed last");

  using Image = KeptImage<M, T>;
  CPUFREE_KERNEL_FN Image image_of_r() const { return {m_, v_.u}; }

  CPUFREE_KERNEL_FN bool predictable() const {
    return beta_ >= kPredictable && (!Image::kept || total_[kNu] >= level_);
  }
  // M r is that of r, and r . M r is `nu`.
  CPUFREE_KERNEL_FN void set_level(double nu) {
    constexpr double kLittle = 1e-4;  // the square of what is left of r
    if constexpr (Image::kept) level_ = kLittle * nu;
  }

  // x += alpha p; r -= alpha s; u -= alpha M s, where it is kept; p = M r + beta p. Without a step,
  // p = M r. All of a row is read before any of it is written: compilers cannot tell the vectors
  // apart.
  CPUFREE_KERNEL_FN void update(Start start) {
    const bool step = start == Start::no;
    const T alpha = c_.in_register(alpha_), beta = c_.in_register(beta_);
    const auto x = c_.hot(v_.x), r = c_.hot(v_.r), s = c_.hot(v_.s);
    const auto p = c_.hot(v_.p);
    const auto mr = image_of_r();
    c_.exchange(
        p,
        [&](Row i, int) {
          if (!step) return mr(i, r[i]);
          const T old = p[i];
          const T next_x = x[i] + alpha * old;
          const T next_r = r[i] - alpha * s[i];
          mr.step(i, alpha, [&] { return m_.image(i, s[i]); });
          const T next_p = mr(i, next_r) + beta * old;
          x[i] = next_x;
          r[i] = next_r;
          return next_p;
        },
        p, x, r, s, mr.reads());
  }

  // s = A p; mu = p . s, delta = M r . s, gamma = s . M s, nu = r . M r; the next step.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply(F&& meanwhile) {
    const auto p = c_.hot(v_.p);
    const auto r = c_.hot(v_.r);
    const auto of_r = image_of_r();
    const auto add = [&](Sums(&sums)[kSums], Row i, int lane, T s, T ms) {
      const double ri = r[i];
      const double mr = of_r(i, r[i]);
      sums[kMu][lane] += static_cast<double>(p[i]) * s;
      sums[kDelta][lane] += mr * s;
      sums[kGamma][lane] += static_cast<double>(s) * ms;
      sums[kNu][lane] += mr * ri;
      sums[kRR][lane] += ri * ri;
    };
    if constexpr (kRare) {
      RareSums<Ctx> all;
      if (!multiply_apart(c_, p, v_.s) || !apply_apart(c_, m_, v_.s)) return false;
      c_.rows([&](Row i, int lane) { add(all.partial, i, lane, v_.s[i], m_.image(i, v_.s[i])); });
      if (c_.port().bookkeeper()) meanwhile();  // others have met at a barrier of the product
      if (!sum_apart(c_, all)) return false;
      for (int k = 0; k < kSums; ++k) total_[k] = all.total[k];
    } else {
      Sums sums[kSums];
      const auto row = [&](Row i, int lane, T s, T ms) { add(sums, i, lane, s, ms); };
      if (!multiply_precondition(c_, m_, p, c_.hot(v_.s), row, r)) return false;
      if (!sum_beside<M>(c_, sums, total_, meanwhile, v_.p, v_.x, v_.r, v_.s, of_r.reads()))
        return false;
    }
    set_step(c_.port().reciprocal(total_[kMu]));
    return true;
  }

  // r is another one; p and s stay. alpha = r . p / mu leads to the least energy along p, and with
  // beta = (alpha gamma - delta) / mu the direction after it is conjugate to p, whatever r is.
  CPUFREE_KERNEL_FN bool keep_direction() {
    RareSums<Ctx> all;
    const auto answer =
        sums_of_replaced<Ctx>(c_.port(), c_.args, c_.share(), c_.vectors, c_.state(), m_, all);
    c_.go_on_from(answer.after);
    for (const Sum k : {kDelta, kNu, kRR}) total_[k] = all.total[k];
    const double alpha = all.total[kMu] / total_[kMu];
    alpha_ = static_cast<T>(alpha);
    beta_ = static_cast<T>((alpha * total_[kGamma] - total_[kDelta]) / total_[kMu]);
    return answer.met;
  }

  // alpha = nu / mu; beta = (nu - 2 alpha delta + alpha^2 gamma) / nu, the predicted r . M r over
  // the present one. In exact arithmetic that fails to be positive only by cancellation, at the
  // level of rounding errors: then beta = 0.
  CPUFREE_KERNEL_FN void set_step(double over_mu) {
    const double alpha = total_[kNu] * over_mu;
    const double predicted =
        1.0 - 2.0 * total_[kDelta] * over_mu + alpha * (total_[kGamma] * over_mu);
    alpha_ = static_cast<T>(alpha);
    beta_ = static_cast<T>(predicted > 0.0 ? predicted : 0.0);
  }

  T alpha_ = 0, beta_ = 0;  // of the next step
  double level_ = 0.0;      // of r . M r, below which M r is computed again
  double total_[kSums] = {};
};

template <class Ctx, class M>
using PredictRecompute = PredictRecomputeAs<Ctx, M, false>;

}  // namespace cpufree
