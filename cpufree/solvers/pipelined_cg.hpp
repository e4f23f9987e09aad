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

// Predict-and-recompute CG from here on, out of line.
template <class Ctx, class M>
CPUFREE_COLD_FN Apart<Ctx> take_over_apart(typename Ctx::PortType port,
                                           const typename Ctx::Args& args,
                                           const typename Ctx::Share& share,
                                           const BlockVectors<typename Ctx::T>& v,
                                           typename Ctx::State state, const M& m,
                                           MonitorOf<Ctx>& monitor, Reporter& reporter) {
  Ctx c(port, args, share, v, state);
  const bool here = PredictRecompute<Ctx, M>(c, m, monitor, reporter).take_over();
  return {c.state(), 0.0, here};
}

// w = A M r, s = A p and z = A M s (`directions`; else only the first), out of line. Where M is not
// pointwise, u = M r and q = M s are kept.
template <class Ctx, class M>
CPUFREE_COLD_FN Apart<Ctx> images_apart(typename Ctx::PortType port, const typename Ctx::Args& args,
                                        const typename Ctx::Share& share,
                                        const BlockVectors<typename Ctx::T>& v,
                                        typename Ctx::State state, const M& m, bool directions) {
  using T = typename Ctx::T;
  Ctx c(port, args, share, v, state);
  CPUFREE_ONE_COPY
  for (int k = 0; k < (directions ? 3 : 1); ++k) {
    const Private<T> from = k == 0 ? v.r : v.s;
    const Private<T> image = k == 0 ? v.u : v.q;
    const Private<T> to = k == 0 ? v.w : k == 1 ? v.s : v.z;
    if constexpr (!M::pointwise) {
      if (k != 1 && !m.apply(c, from)) return {c.state(), 0.0, false};
      if (k != 1) c.rows([&](Row i, int) { image[i] = m.out[i]; });
    }
    const Ghosted<T> copy = c.exchange_scratch([&](Row i, int) {
      if (k == 1) return v.p[i];
      if constexpr (M::pointwise)
        return m.of(i, from[i]);
      else
        return image[i];
    });
    if (!c.multiply(copy, [&](Row i, int, T value) { to[i] = value; }))
      return {c.state(), 0.0, false};
  }
  return {c.state(), 0.0, true};
}

template <class Ctx, class M>
class PipelinedCg {
 public:
  using T = typename Ctx::T;
  using P = typename Ctx::PortType;
  using L = Lanes<P>;
  using Monitor = MonitorOf<Ctx>;

  CPUFREE_KERNEL_FN PipelinedCg(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
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
    if (monitor_.done()) return true;
    if (!images(false)) return false;
    Step step{};         // to be taken, if it is found
    bool looked = true;  // the residual at hand has been judged
    bool quiet = false;  // the iteration before was
    while (true) {
      if (!quiet) open_books();
      // The sums of the new residual travel while n = A M w is computed.
      send_sums(step, quiet);
      if (!product()) return false;
      double total[kSums];
      if (!c_.pull(total, v_.z, v_.s, v_.x, v_.r, v_.p)) return false;
      step = next_step(total[kGamma], total[kDelta],
                       [&](double x) { return c_.port().reciprocal(x); });
      quiet = !looked && step.found && books_.quiet(c_, monitor_, total[kSquare]);
      bool over = false;
      if (quiet) books_.note(c_, total[kSquare]);
      if (!quiet && !listen(total, step, looked, over)) return false;
      if (over) return true;
      if (!step.found) continue;  // all vectors are new, and no step has been taken
      if (c_.port().clerk()) s_.next_gamma = total[kGamma], s_.next_alpha = step.alpha;
      looked = false;
    }
  }

 private:
  enum Sum { kGamma, kDelta, kSquare, kSums };

  // Held by the block.
  struct Scalars {
    double alpha = 0.0;
    double gamma = 0.0;                         // of the last step, 0: there was none
    double next_alpha = 0.0, next_gamma = 0.0;  // known to the clerk: those from the next sums on
    Verdict verdict = Verdict::go_on;
  };
  struct Step {
    double alpha = 0.0, beta = 0.0;
    bool found = false;
  };

  // Up to the last iteration, or to that after which the residual is to be replaced.
  CPUFREE_KERNEL_FN void open_books() {
    c_.once_more([&] {
      const SolveParams& params = c_.args.params;
      const std::int64_t due = replaced_at_ + params.replace_every;
      const bool soon = params.replace_every > 0 && due < params.maxiter;
      books_.open(monitor_.iterations(), c_.reductions(), soon ? due : params.maxiter, 1);
    });
  }

  // alpha and beta of the next step, the same in all threads; reciprocal(x) = 1 / x. Not found: the
  // recurrence, in which even sums of squares may go wrong, is broken.
  template <class F>
  CPUFREE_KERNEL_FN Step next_step(double gamma, double delta, F&& reciprocal) const {
    const bool first = s_.gamma == 0.0;
    const double beta = first ? 0.0 : gamma * reciprocal(s_.gamma);
    const double curvature = first ? delta : delta - beta * gamma * reciprocal(s_.alpha);
    const double alpha = gamma * reciprocal(curvature);
    const bool found = Monitor::blind ||
                       (gamma > 0.0 && curvature > 0.0 && is_finite(curvature) && is_finite(alpha));
    return {alpha, beta, found};
  }

  // The judgement of sums that are not quiet. `over`: the solve is; else, where there is no step,
  // all vectors have been computed anew. False: a wait gave up.
  CPUFREE_KERNEL_FN bool listen(const double (&total)[kSums], Step& step, bool& looked,
                                bool& over) {
    c_.once_more([&] {  // all have asked whether it is quiet
      s_.verdict = Verdict::go_on;
      if (looked) return;
      s_.verdict = monitor_.look(total[kSquare], c_.notes());
      reporter_.tell(c_, monitor_);
    });
    over = s_.verdict == Verdict::stop;
    if (over) return true;
    const std::int64_t every = c_.args.params.replace_every;
    const bool due = !looked && every > 0 && monitor_.iterations() - replaced_at_ >= every;
    bool honest = true;
    if (s_.verdict == Verdict::verify || due) {
      if (s_.verdict == Verdict::verify && !verify(c_, monitor_, false, honest)) return false;
      looked = !monitor_.done() && honest && due;
      if (looked && !replace(honest)) return false;
      over = monitor_.done() || !honest;
      if (over) return monitor_.done() || hand_over();
      step.found = step.found && !looked;
      if (looked) return true;
    }
    if (!step.found)  // of sums that are no ordinary numbers, too
      step = next_step(total[kGamma], total[kDelta], [](double x) { return 1.0 / x; });
    over = !step.found;
    return step.found || break_down(total[kGamma], total[kDelta]);
  }

  // There is no step: A or M is not positive definite, which the first sums tell; else rounding
  // errors, or A, broke the recurrence, and fresh vectors will tell.
  CPUFREE_KERNEL_FN bool break_down(double gamma, double delta) {
    c_.once_more([&] {
      if (s_.gamma == 0.0 && monitor_.positive(gamma, Reason::diverged_indefinite_pc))
        monitor_.positive(delta, Reason::diverged_indefinite_mat);
    });
    if (monitor_.done()) return true;
    bool honest = true;
    if (!verify(c_, monitor_, true, honest)) return false;
    return monitor_.done() || hand_over();
  }

  CPUFREE_KERNEL_FN bool hand_over() {
    c_.once_more([&] { monitor_.note_hand_over(); });
    const auto answer = take_over_apart<Ctx>(c_.port(), c_.args, c_.share(), c_.vectors, c_.state(),
                                             m_, monitor_, reporter_);
    c_.go_on_from(answer.after);
    return answer.here;
  }

  // u = M r, w = A u; with `directions` also s = A p, q = M s, z = A q.
  CPUFREE_KERNEL_FN bool images(bool directions) {
    const auto answer =
        images_apart<Ctx>(c_.port(), c_.args, c_.share(), c_.vectors, c_.state(), m_, directions);
    c_.go_on_from(answer.after);
    return answer.here;
  }

  // Takes the step, if there is one, and sends the sums of the residual. They live in registers, as
  // nothing of them outlives this function.
  CPUFREE_KERNEL_FN void send_sums(const Step& step, bool quiet) {
    L sums[kSums];
    const auto add = [&](int lane, double u, double r, double w) {
      sums[kGamma][lane] += u * r;
      sums[kDelta][lane] += u * w;
      sums[kSquare][lane] += r * r;
    };
    if (step.found) {
      update(c_.port().at_hand(static_cast<T>(step.alpha)),
             c_.port().at_hand(static_cast<T>(step.beta)), add);
    } else {
      const ResidualImage<M, T> mr{m_, v_.u};
      c_.rows([&](Row i, int lane) { add(lane, mr(i, v_.r[i]), v_.r[i], v_.w[i]); });
    }
    c_.push(sums, [&] {
      if (quiet) books_.write(c_, monitor_, reporter_);
      s_.gamma = s_.next_gamma;
      s_.alpha = s_.next_alpha;
    });
  }

  // m = M w (left in a scratch vector), n = A m.
  CPUFREE_KERNEL_FN bool product() {
    if constexpr (M::pointwise) {
      const M at_hand = m_;
      const auto w = c_.near(v_.w);
      m_of_w_ = c_.exchange_scratch([&](Row i, int) { return at_hand.of(i, w[i]); });
    } else {
      if (!m_.apply(c_, v_.w)) return false;
      m_of_w_ = c_.exchange_scratch([&](Row i, int) { return m_.out[i]; });
    }
    const auto n = c_.near(v_.n);
    return c_.multiply(m_of_w_, [&](Row i, int, T value) { n[i] = value; });
  }

  // All of a row is read before any of it is written, for as far as compilers know, one may be the
  // other.
  template <class F>
  CPUFREE_KERNEL_FN void update(T alpha, T beta, F&& add) {
    const auto z = c_.near(v_.z), s = c_.near(v_.s), x = c_.near(v_.x), r = c_.near(v_.r);
    const auto w = c_.near(v_.w), n = c_.near(v_.n);
    const auto p = c_.near(v_.p), m = m_of_w_;
    const auto u = v_.u, q = v_.q;
    const ResidualImage<M, T> mr{m_, u};
    const auto step = [&](Row i, int lane) {
      const T next_z = n[i] + beta * z[i];
      const T next_s = w[i] + beta * s[i];
      const T direction = mr(i, r[i]) + beta * p[i];
      const T next_x = x[i] + alpha * direction;
      const T next_r = r[i] - alpha * next_s;
      const T next_w = w[i] - alpha * next_z;
      if constexpr (!M::pointwise) {
        const T next_q = m[i] + beta * q[i];
        u[i] -= alpha * next_q;
        q[i] = next_q;
      }
      add(lane, mr(i, next_r), next_r, next_w);
      z[i] = next_z, s[i] = next_s, x[i] = next_x, r[i] = next_r, w[i] = next_w;
      p.keep(i, direction);
    };
    c_.rows(step, z, s, x, r, w, n, p, mr.reads());
  }

  // r = b - A x, and all that depends on r and p. alpha and beta go on by recurrence: locally
  // optimal ones after each replacement would spoil the Krylov space.
  CPUFREE_KERNEL_FN bool replace(bool& honest) {
    if (!verify(c_, monitor_, true, honest)) return false;
    replaced_at_ = monitor_.iterations();
    return monitor_.done() || !honest || images(true);
  }

  Ctx& c_;
  const M& m_;
  const BlockVectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  Ghosted<T> m_of_w_;
  typename P::template Held<Scalars> s_;
  typename P::template Held<Books> books_;
  std::int64_t replaced_at_ = 0;
};

}  // namespace cpufree
