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
                                           typename Ctx::State state, const M& m, Monitor& monitor,
                                           Reporter& reporter) {
  Ctx c(port, args, share, v, state);
  const bool here = PredictRecompute<Ctx, M>(c, m, monitor, reporter).take_over();
  return {c.state(), 0.0, here};
}

template <class Ctx, class M>
class PipelinedCg {
 public:
  using T = typename Ctx::T;
  using P = typename Ctx::PortType;
  using L = Lanes<P>;

  CPUFREE_KERNEL_FN PipelinedCg(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
      : c_(c),
        m_(m),
        v_(c.vectors),
        monitor_(monitor),
        reporter_(reporter),
        s_(c.port().hold(Scalars())) {}

  // False: a wait gave up. Otherwise the monitor holds the reason.
  CPUFREE_KERNEL_FN bool run() {
    if (!begin_solve(c_, monitor_, reporter_)) return false;
    if (monitor_.done()) return true;
    if (!precondition_residual()) return false;
    bool looked = true;  // the residual at hand has been judged
    while (true) {
      // The sums of the current residual travel while n = A M w is computed.
      c_.push(sums_);
      if (!product()) return false;
      double total[kSums];
      if (!c_.pull(total)) return false;
      c_.once([&] { judge(total, looked); });
      if (s_.verdict == Verdict::stop) return true;
      if (s_.verdict == Verdict::verify || s_.due) {
        bool honest = true;
        if (s_.verdict == Verdict::verify && !verify(c_, monitor_, false, honest)) return false;
        looked = !monitor_.done() && honest && s_.due;
        if (looked && !replace(honest)) return false;
        if (monitor_.done()) return true;
        if (!honest) return hand_over();
        if (looked) continue;
        c_.once_more([&] { s_.step = coefficients(total[kGamma], total[kDelta]); });
      }
      if (!s_.step) {
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

  // Held by the block.
  struct Scalars {
    double alpha = 0.0, beta = 0.0;
    double gamma = 0.0;  // of the last step, 0: there was none
    std::int64_t replaced_at = 0;
    Verdict verdict = Verdict::go_on;
    bool due = false;   // the residual is to be replaced
    bool step = false;  // alpha and beta are those of a step
  };

  CPUFREE_KERNEL_FN void judge(const double (&total)[kSums], bool looked) {
    s_.verdict = Verdict::go_on;
    s_.due = false;
    if (!looked) {
      s_.verdict = monitor_.look(total[kSquare], c_.notes());
      reporter_.tell(c_, monitor_);
      const std::int64_t every = c_.args.params.replace_every;
      s_.due = every > 0 && monitor_.iterations() - s_.replaced_at >= every;
    }
    if (s_.verdict == Verdict::go_on && !s_.due)
      s_.step = coefficients(total[kGamma], total[kDelta]);
  }

  CPUFREE_KERNEL_FN bool hand_over() {
    c_.once_more([&] { monitor_.note_hand_over(); });
    const auto answer = take_over_apart<Ctx>(c_.port(), c_.args, c_.share(), c_.vectors, c_.state(),
                                             m_, monitor_, reporter_);
    c_.go_on_from(answer.after);
    return answer.here;
  }

  // (M r)(i), kept in u where it cannot be had on the fly.
  CPUFREE_KERNEL_FN T preconditioned(Row i) const {
    if constexpr (M::pointwise)
      return m_.at(v_.r, i);
    else
      return v_.u[i];
  }

  CPUFREE_KERNEL_FN void add(int lane, double u, double r, double w) {
    sums_[kGamma][lane] += u * r;
    sums_[kDelta][lane] += u * w;
    sums_[kSquare][lane] += r * r;
  }
  CPUFREE_KERNEL_FN void clear_sums() {
    for (auto& sum : sums_) sum = L{};
  }

  // to = M from, of a vector kept in full.
  CPUFREE_KERNEL_FN bool precondition_into(const Private<T>& from, const Private<T>& to) {
    if constexpr (!M::pointwise) {
      if (!m_.apply(c_, from)) return false;
      c_.rows([&](Row i, int) { to[i] = m_.out[i]; });
    }
    return true;
  }

  // to = A f, f(i) an expression of my rows.
  template <class F>
  CPUFREE_KERNEL_FN bool multiply_into(F&& f, const Private<T>& to) {
    const Ghosted<T> copy = c_.exchange_scratch([&](Row i, int) { return f(i); });
    return c_.multiply(copy, [&](Row i, int, T value) { to[i] = value; });
  }

  // u = M r, w = A u, and the sums.
  CPUFREE_KERNEL_FN bool precondition_residual() {
    if (!precondition_into(v_.r, v_.u)) return false;
    if (!multiply_into([&](Row i) { return preconditioned(i); }, v_.w)) return false;
    clear_sums();
    c_.rows([&](Row i, int lane) { add(lane, preconditioned(i), v_.r[i], v_.w[i]); });
    return true;
  }

  // m = M w (left in a scratch vector), n = A m.
  CPUFREE_KERNEL_FN bool product() {
    if constexpr (M::pointwise) {
      const M at_hand = m_;
      const auto w = v_.w;
      m_of_w_ = c_.exchange_scratch([&](Row i, int) { return at_hand.at(w, i); });
    } else {
      if (!m_.apply(c_, v_.w)) return false;
      m_of_w_ = c_.exchange_scratch([&](Row i, int) { return m_.out[i]; });
    }
    const auto n = v_.n;
    return c_.multiply(m_of_w_, [&](Row i, int, T value) { n[i] = value; });
  }

  // alpha and beta of the next step. False: there is none; the monitor knows the reason, or the
  // recurrence, in which even sums of squares may go wrong, is broken.
  CPUFREE_KERNEL_FN bool coefficients(double gamma, double delta) {
    const bool first = s_.gamma == 0.0;
    if (first && (!monitor_.positive(gamma, Reason::diverged_indefinite_pc) ||
                  !monitor_.positive(delta, Reason::diverged_indefinite_mat)))
      return false;
    s_.beta = first ? 0.0 : gamma / s_.gamma;
    const double curvature = first ? delta : delta - s_.beta * gamma / s_.alpha;
    if (!(gamma > 0.0) || !(curvature > 0.0) || !is_finite(gamma / curvature)) return false;
    s_.alpha = gamma / curvature;
    s_.gamma = gamma;
    return true;
  }

  CPUFREE_KERNEL_FN void update() {
    const T alpha = static_cast<T>(s_.alpha);
    const T beta = static_cast<T>(s_.beta);
    const auto z = v_.z, s = v_.s, x = v_.x, r = v_.r, w = v_.w, n = v_.n;
    const auto p = v_.p, m = m_of_w_;
    const auto u = v_.u, q = v_.q;
    const ResidualImage<M, T> mr{m_, r, u};
    clear_sums();
    c_.rows([&](Row i, int lane) {
      z[i] = n[i] + beta * z[i];
      s[i] = w[i] + beta * s[i];
      const T direction = mr(i) + beta * p[i];
      p.keep(i, direction);
      x[i] += alpha * direction;
      r[i] -= alpha * s[i];
      w[i] -= alpha * z[i];
      if constexpr (!M::pointwise) {
        q[i] = m[i] + beta * q[i];
        u[i] -= alpha * q[i];
      }
      add(lane, mr(i), r[i], w[i]);
    });
  }

  // r = b - A x, and all that depends on r and p: u, w, s = A p, q = M s, z = A q. alpha and beta
  // go on by recurrence: locally optimal ones after each replacement would spoil the Krylov space.
  CPUFREE_KERNEL_FN bool replace(bool& honest) {
    if (!verify(c_, monitor_, true, honest)) return false;
    c_.once_more([&] { s_.replaced_at = monitor_.iterations(); });
    if (monitor_.done() || !honest) return true;
    if (!precondition_residual()) return false;
    if (!multiply_into([&](Row i) { return v_.p[i]; }, v_.s)) return false;
    if (!precondition_into(v_.s, v_.q)) return false;
    const auto ms = [&](Row i) {
      if constexpr (M::pointwise)
        return m_.at(v_.s, i);
      else
        return v_.q[i];
    };
    return multiply_into(ms, v_.z);
  }

  Ctx& c_;
  const M& m_;
  const BlockVectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  L sums_[kSums];
  Ghosted<T> m_of_w_;
  typename P::template Held<Scalars> s_;
};

}  // namespace cpufree
