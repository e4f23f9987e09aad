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

  CPUFREE_KERNEL_FN ConjugateGradient(Ctx& c, const M& m, Monitor& monitor, Reporter& reporter)
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
    bool fresh = true;  // p = M r is to be set, and no step has been taken since
    bool move = false;  // x follows p before p changes
    while (true) {
      if (fresh && !precondition_residual(T{0}, true)) return false;
      if (monitor_.done()) return true;
      direct(static_cast<T>(s_.alpha), static_cast<T>(s_.beta), move);
      if (!curvature()) return false;
      if (monitor_.done()) return true;
      const T alpha = static_cast<T>(s_.alpha);
      if (!precondition_residual(alpha, false)) return false;
      fresh = false;
      move = s_.verdict == Verdict::go_on;
      if (move) continue;
      c_.rows([&](Row i, int) { v_.x[i] += alpha * v_.p[i]; });
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
    double rho = 0.0;                // r . M r
    double alpha = 0.0, beta = 0.0;  // of the step at hand
    Verdict verdict = Verdict::go_on;
  };

  // s = A p, alpha = rho / (p . s).
  CPUFREE_KERNEL_FN bool curvature() {
    L sums[1];
    const auto p = v_.p;
    const auto s = v_.s;
    if (!c_.multiply(v_.p, [&](Row i, int lane, T ap) {
          s[i] = ap;
          sums[0][lane] += static_cast<double>(p[i]) * ap;
        }))
      return false;
    double total[1];
    if (!c_.sum(sums, total)) return false;
    c_.once([&] {
      if (!monitor_.positive(total[0], Reason::diverged_indefinite_mat)) return;
      s_.alpha = s_.rho / total[0];
      monitor_.usable(static_cast<double>(static_cast<T>(s_.alpha)));
    });
    return true;
  }

  // r -= alpha s, rho = r . M r, and the judgement of r. `fresh`: beta = 0, and no judgement.
  CPUFREE_KERNEL_FN bool precondition_residual(T alpha, bool fresh) {
    L sums[2];
    const auto r = v_.r;
    const auto s = v_.s;
    if (!precondition(
            c_, m_, v_.r, [&](Row i, int) { r[i] -= alpha * s[i]; },
            [&](Row i, int lane, T z) {
              sums[0][lane] += static_cast<double>(r[i]) * z;
              sums[1][lane] += static_cast<double>(r[i]) * r[i];
            }))
      return false;
    double total[2];
    if (!c_.sum(sums, total)) return false;
    c_.once([&] {
      s_.verdict = fresh ? Verdict::go_on : monitor_.look(total[1], c_.notes());
      if (!fresh) reporter_.tell(c_, monitor_);
      s_.beta = fresh ? 0.0 : total[0] / s_.rho;
      s_.rho = total[0];
      if (s_.verdict == Verdict::go_on) monitor_.positive(s_.rho, Reason::diverged_indefinite_pc);
    });
    return true;
  }

  // rho is looked at only where the solve goes on: it is 0 once r is.
  CPUFREE_KERNEL_FN void check_preconditioner() {
    c_.once_more([&] { monitor_.positive(s_.rho, Reason::diverged_indefinite_pc); });
  }

  // x += alpha p, if `move`; p = M r + beta p.
  CPUFREE_KERNEL_FN void direct(T alpha, T beta, bool move) {
    const auto p = v_.p;
    const auto x = v_.x;
    const auto r = v_.r;
    const M m = m_;  // at hand: the block's copy would be read again for every row
    c_.exchange(p, [&](Row i, int) {
      const T before = p[i];
      if (move) x[i] += alpha * before;
      if constexpr (M::pointwise)
        return m.at(r, i) + beta * before;
      else
        return m.out[i] + beta * before;
    });
  }

  Ctx& c_;
  const M& m_;
  const BlockVectors<T>& v_;
  Monitor& monitor_;
  Reporter& reporter_;
  typename P::template Held<Scalars> s_;
};

}  // namespace cpufree
