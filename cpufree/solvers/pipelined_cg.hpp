// Pipelined conjugate gradients (Ghysels & Vanroose 2014, "Hiding global synchronization latency in
// the preconditioned conjugate gradient algorithm", Parallel Computing 40), with residual
// replacement: one all-reduce an iteration, under way while M and A are applied. Side by side with
// the mathematics: reference/pipelined_cg.hpp.
//
// Its recurrences lose two to four digits of attainable accuracy. Every `replace_every` iterations
// the residual and all that depends on it are computed again (after Cools et al. 2018, "Analyzing
// the effect of local rounding error propagation on the maximal attainable accuracy of the
// pipelined conjugate gradient method", SIAM J. Matrix Anal. Appl. 39(1)). Once that shows that the
// recurrences have lost touch with b - A x, predict-and-recompute CG takes over from x, and reaches
// what classic CG reaches. So it does where many more iterations than rows are to be expected:
// there rounding errors decide how many it takes, and those of these recurrences are the largest.
//
// Work per iteration with a pointwise M, per row: A once, 17 passes over vectors (m = M w: read w,
// write m; n = A m: read m, write n; update: read n, z, w, s, r, p, x, write z, w, s, r, p, x) and
// D^-1 twice. All exchanges are of scratch vectors (proof (ii) of channel.hpp); the all-reduce
// proves nothing here, as blocks contribute to it before they read.
#pragma once

#include "cpufree/solvers/prcg.hpp"

namespace cpufree {

// w = A M r, s = A p and z = A M s (`directions`; else only the first), out of line. Where M is not
// pointwise, u = M r and q = M s are kept.
template <class Ctx, class M>
CPUFREE_COLD_FN ColdResult<Ctx> images_cold(
    typename Ctx::PortType port, const typename Ctx::Args& args, const typename Ctx::Share& share,
    const typename Ctx::BlockVectors& v, typename Ctx::State state, const M& m, bool directions) {
  using T = typename Ctx::T;
  Ctx c(port, args, share, v, state);
  CPUFREE_ONE_COPY
  for (int k = 0; k < (directions ? 3 : 1); ++k) {
    const Private<T> from = k == 0 ? v.r : v.s;
    const Private<T> to = k == 0 ? v.w : k == 1 ? v.s : v.z;
    const KeptImage<M, T> image{m, k == 0 ? v.u : v.q};
    if (k != 1 && !image.begin(c, m, from)) return {c.state(), 0.0, false};
    const Ghosted<T> copy =
        c.exchange_scratch([&](Row i, int) { return k == 1 ? v.p[i] : image(i, from[i]); });
    if (!multiply_apart(c, copy, to)) return {c.state(), 0.0, false};
  }
  return {c.state(), 0.0, true};
}

template <class Ctx, class M>
class PipelinedCg : public Recurrence<Ctx, M> {
  using Base = Recurrence<Ctx, M>;
  using Base::c_, Base::m_, Base::v_;
  using typename Base::Monitor, typename Base::Sums, typename Base::T;

 public:
  static constexpr int kReductions = 1;
  static constexpr bool kRestarts = false;  // predict-and-recompute CG takes over
  using Base::Base;

  template <class F>
  CPUFREE_HOT_FN bool advance(Start start, F&& meanwhile) {
    if (start != Start::no && !set_images(start == Start::replaced)) return false;
    send_sums(start, meanwhile);
    if (!multiply()) return false;
    if (!c_.pull(total_, v_.z, v_.s, v_.x, v_.r, v_.p)) return false;
    set_step([&](double x) { return c_.port().reciprocal(x); });
    return true;
  }

  CPUFREE_KERNEL_FN double square(int) const { return total_[kRR]; }
  CPUFREE_KERNEL_FN double measure(int) const { return total_[kGamma]; }
  CPUFREE_KERNEL_FN bool has_step(int) const { return step_; }
  CPUFREE_KERNEL_FN void recompute(int, Start) {
    if (!step_) set_step([](double x) { return 1.0 / x; });
  }
  // Without a step, A or M is not positive definite, which the first sums tell; later, rounding
  // errors or A broke the recurrence. Where replacements of the residual have it stay where it is,
  // and where numbers of the size of A M A r leave their range, it cannot go on, either.
  CPUFREE_KERNEL_FN Verdict check(int, Monitor& monitor, Start start) const {
    const std::int64_t every = c_.args.params.replace_every;
    if (step_) monitor.note_gain(alpha_ * total_[kGamma]);
    if (every > 0 && monitor.iterations() - monitor.replaced_at() >= every) {
      const bool late = monitor.runs_late();
      return late || monitor.stalled(every > 50 ? 2 * every : 100) ? Verdict::restart
                                                                   : Verdict::replace;
    }
    if (step_ && start == Start::anew) {
      const double size = total_[kDelta] * c_.port().reciprocal(total_[kGamma]);  // of A M
      if (!monitor.in_range(size * size)) return Verdict::restart;
    }
    if (step_) return Verdict::go_on;
    if (taken_gamma_ == 0.0 && monitor.positive(total_[kGamma], Reason::diverged_indefinite_pc))
      monitor.positive(total_[kDelta], Reason::diverged_indefinite_mat);
    return Verdict::restart;
  }
  CPUFREE_KERNEL_FN std::int64_t limit(const Monitor& monitor) const {
    const SolveParams& params = c_.args.params;
    const std::int64_t replacement = monitor.replaced_at() + params.replace_every;
    const bool replaces = params.replace_every > 0 && replacement < params.maxiter;
    return replaces ? replacement : params.maxiter;
  }

 private:
  enum Sum { kGamma, kDelta, kRR, kSums };

  // u = M r, w = A u; with `directions` also s = A p, q = M s, z = A q.
  CPUFREE_KERNEL_FN bool set_images(bool directions) {
    const auto answer =
        images_cold<Ctx>(c_.port(), c_.args, c_.share(), c_.vectors, c_.state(), m_, directions);
    c_.go_on_from(answer.after);
    return answer.met;
  }

  // Takes the step, if there is one, and sends gamma = M r . r, delta = M r . w and r . r. The sums
  // live in registers, as nothing of them outlives this function.
  template <class F>
  CPUFREE_KERNEL_FN void send_sums(Start start, F&& meanwhile) {
    Sums sums[kSums];
    const auto add = [&](int lane, double u, double r, double w) {
      sums[kGamma][lane] += u * r;
      sums[kDelta][lane] += u * w;
      sums[kRR][lane] += r * r;
    };
    if (start == Start::no) {
      taken_gamma_ = total_[kGamma];
      taken_alpha_ = alpha_;
      update(c_.in_register(static_cast<T>(alpha_)), c_.in_register(static_cast<T>(beta_)), add);
    } else {
      const KeptImage<M, T> mr{m_, v_.u};
      c_.rows([&](Row i, int lane) { add(lane, mr(i, v_.r[i]), v_.r[i], v_.w[i]); });
    }
    c_.push(sums, meanwhile);
  }

  // m = M w, left in a scratch vector; n = A m, by the product that serves all uses.
  CPUFREE_KERNEL_FN bool multiply() {
    if (!apply_apart(c_, m_, v_.w)) return false;
    const M mine = m_;
    const auto w = c_.hot(v_.w);
    m_of_w_ = c_.exchange_scratch([&](Row i, int) { return mine.image(i, w[i]); });
    return multiply_apart(c_, m_of_w_, v_.n);
  }

  // z = n + beta z; q = m + beta q; s = w + beta s; p = u + beta p;
  // x += alpha p; r -= alpha s; u -= alpha q; w -= alpha z.
  // All of a row is read before any of it is written: compilers cannot tell the vectors apart.
  template <class F>
  CPUFREE_KERNEL_FN void update(T alpha, T beta, F&& add) {
    const auto z = c_.hot(v_.z), s = c_.hot(v_.s), x = c_.hot(v_.x), r = c_.hot(v_.r);
    const auto w = c_.hot(v_.w), n = c_.hot(v_.n);
    const auto p = c_.hot(v_.p), m = m_of_w_;
    const auto q = v_.q;
    const KeptImage<M, T> mr{m_, v_.u};
    const auto step = [&](Row i, int lane) {
      const T next_z = n[i] + beta * z[i];
      const T next_s = w[i] + beta * s[i];
      const T direction = mr(i, r[i]) + beta * p[i];
      const T next_x = x[i] + alpha * direction;
      const T next_r = r[i] - alpha * next_s;
      const T next_w = w[i] - alpha * next_z;
      mr.step(i, alpha, [&] { return q[i] = m[i] + beta * q[i]; });
      add(lane, mr(i, next_r), next_r, next_w);
      z[i] = next_z, s[i] = next_s, x[i] = next_x, r[i] = next_r, w[i] = next_w;
      p.keep(i, direction);
    };
    c_.rows(step, z, s, x, r, w, n, p, mr.reads());
  }

  // beta = gamma / gamma of the last step, alpha = gamma / (delta - beta gamma / alpha of the last
  // step). After a replacement, too: locally optimal ones would spoil the Krylov space.
  template <class F>
  CPUFREE_KERNEL_FN void set_step(F&& reciprocal) {
    const double gamma = total_[kGamma], delta = total_[kDelta];
    const bool first = taken_gamma_ == 0.0;
    beta_ = first ? 0.0 : gamma * reciprocal(taken_gamma_);
    const double curvature = first ? delta : delta - beta_ * gamma * reciprocal(taken_alpha_);
    alpha_ = gamma * reciprocal(curvature);
    step_ = Monitor::is_step(gamma > 0.0 && curvature > 0.0 && is_finite(curvature) &&
                             is_finite(alpha_));
  }

  Ghosted<T> m_of_w_;
  double alpha_ = 0.0, beta_ = 0.0;               // of the next step
  double taken_alpha_ = 0.0, taken_gamma_ = 0.0;  // of the last step, 0: there was none
  double total_[kSums] = {};
  bool step_ = false;
};

// Predict-and-recompute CG from r = b - A x, out of line.
template <class Ctx, class M>
CPUFREE_COLD_FN ColdResult<Ctx> take_over_cold(typename Ctx::PortType port,
                                               const typename Ctx::Args& args,
                                               const typename Ctx::Share& share,
                                               const typename Ctx::BlockVectors& v,
                                               typename Ctx::State state, const M& m,
                                               Monitors<Ctx>& monitors) {
  Ctx c(port, args, share, v, state);
  PredictRecomputeAs<Ctx, M, true> method(c, m, monitors);
  const Ending ending = iterate(c, method, monitors);
  return {c.state(), 0.0, ending != Ending::gave_up};
}

// Where the recurrences of pipelined CG have lost touch with b - A x. False: a wait gave up.
template <class Ctx, class M>
CPUFREE_KERNEL_FN bool hand_over(Ctx& c, const M& m, Monitors<Ctx>& monitors) {
  c.port().sync_block();
  c.each_column([&](int k) { monitors[k].note_hand_over(); });
  const auto answer =
      take_over_cold<Ctx>(c.port(), c.args, c.share(), c.vectors, c.state(), m, monitors);
  c.go_on_from(answer.after);
  return answer.met;
}

}  // namespace cpufree
