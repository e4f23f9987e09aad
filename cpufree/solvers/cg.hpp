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
  using P = typename Ctx::PortType;
  using L = Lanes<P>;
  using Monitor = MonitorOf<Ctx>;

  CPUFREE_KERNEL_FN ConjugateGradient(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
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
    bool fresh = true;   // p = M r is to be set, and no step has been taken since
    bool move = false;   // x follows p before p changes
    bool quiet = false;  // the iteration before was
    while (true) {
      if (fresh && !precondition_residual(true, quiet)) return false;
      if (!quiet && monitor_.done()) return true;
      if (!quiet) open_books();
      direct(move);
      bool found = false;
      if (!curvature(found, quiet)) return false;
      if (!found) return true;
      if (!precondition_residual(false, quiet)) return false;
      fresh = false;
      move = quiet || s_.verdict == Verdict::go_on;
      if (move) continue;
      c_.rows([&](Row i, int) { v_.x[i] += alpha_ * v_.p[i]; });
      if (s_.verdict == Verdict::stop) return true;
      bool honest = true;
      if (!verify(c_, monitor_, false, honest)) return false;
      if (monitor_.done()) return true;
      fresh = !honest;
      if (honest) check_preconditioner();
    }
  }

 private:
  // Held by the block.
  struct Scalars {
    double rho = 0.0;       // r . M r
    double next = 0.0;      // known to the clerk: `rho` from the next curvature on
    T alpha = 0, beta = 0;  // for iterations that are not quiet
    Verdict verdict = Verdict::go_on;
  };

  CPUFREE_KERNEL_FN void open_books() {
    c_.once_more(
        [&] { books_.open(monitor_.iterations(), c_.reductions(), c_.args.params.maxiter, 2); });
  }

  // s = A p, alpha = rho / (p . s), if there is such a step. `quiet`: the step before was.
  CPUFREE_KERNEL_FN bool curvature(bool& found, bool quiet) {
    L sums[1];
    const auto p = c_.near(v_.p);  // at hand, for the product too: not the block's copy
    const auto s = c_.near(v_.s);
    if (!c_.multiply(p, [&](Row i, int lane, T ap) {
          s[i] = ap;
          sums[0][lane] += static_cast<double>(p[i]) * ap;
        }))
      return false;
    double total[1];
    const auto meanwhile = [&] {
      if (quiet) books_.write(c_, monitor_, reporter_);
      s_.rho = s_.next;
    };
    if (!c_.sum(sums, total, meanwhile, v_.r, v_.s, m_.reads())) return false;
    alpha_ = static_cast<T>(s_.rho * c_.port().reciprocal(total[0]));
    found = Monitor::blind ||
            (total[0] > 0.0 && is_finite(total[0]) && is_finite(static_cast<double>(alpha_)));
    if (found) return true;
    c_.once_more([&] {
      s_.alpha = static_cast<T>(s_.rho / total[0]);
      if (monitor_.positive(total[0], Reason::diverged_indefinite_mat))
        monitor_.usable(static_cast<double>(s_.alpha));
    });
    alpha_ = s_.alpha;
    found = !monitor_.done();
    return true;
  }

  // r -= alpha s, rho = r . M r, and the judgement of r, unless all threads see that it is quiet.
  // `fresh`: no step is taken, beta = 0, and no judgement.
  CPUFREE_KERNEL_FN bool precondition_residual(bool fresh, bool& quiet) {
    L sums[2];
    const T alpha = c_.port().at_hand(fresh ? T{0} : alpha_);
    const auto r = c_.near(v_.r);
    const auto s = c_.near(v_.s);
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
    const double rho = total[0];
    beta_ = fresh ? T{0} : static_cast<T>(rho * c_.port().reciprocal(s_.rho));
    quiet = !fresh &&
            (Monitor::blind ||
             (rho > 0.0 && is_finite(rho) && is_finite(static_cast<double>(beta_)))) &&
            books_.quiet(c_, monitor_, total[1]);
    if (quiet) {
      books_.note(c_, total[1]);
      if (c_.port().clerk()) s_.next = rho;
      return true;
    }
    c_.once_more([&] {  // all have asked whether it is quiet
      s_.beta = fresh ? T{0} : static_cast<T>(rho / s_.rho);
      s_.rho = s_.next = rho;
      s_.verdict = fresh ? Verdict::go_on : monitor_.look(total[1], c_.notes());
      if (!fresh) reporter_.tell(c_, monitor_);
      if (s_.verdict == Verdict::go_on) monitor_.positive(rho, Reason::diverged_indefinite_pc);
    });
    beta_ = s_.beta;
    return true;
  }

  // rho is looked at only where the solve goes on: it is 0 once r is.
  CPUFREE_KERNEL_FN void check_preconditioner() {
    c_.once_more([&] { monitor_.positive(s_.rho, Reason::diverged_indefinite_pc); });
  }

  // x += alpha p, if `move`; p = M r + beta p.
  CPUFREE_KERNEL_FN void direct(bool move) {
    const T alpha = c_.port().at_hand(alpha_);
    const T beta = c_.port().at_hand(beta_);
    const auto p = c_.near(v_.p);
    const auto x = c_.near(v_.x);
    const auto r = c_.near(v_.r);
    const M m = m_;  // at hand: the block's copy would be read again for every row
    c_.exchange(
        p,
        [&](Row i, int) {
          const T before = p[i];
          T next;
          if constexpr (M::pointwise)
            next = m.of(i, r[i]) + beta * before;
          else
            next = m.out[i] + beta * before;
          if (move) x[i] += alpha * before;
          return next;
        },
        p, r, x, m.reads());
  }

  Ctx& c_;
  const M& m_;
  const BlockVectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  typename P::template Held<Scalars> s_;
  typename P::template Held<Books> books_;
  T alpha_ = 0, beta_ = 0;  // of the step at hand: the same in all threads, who compute alike
};

}  // namespace cpufree
