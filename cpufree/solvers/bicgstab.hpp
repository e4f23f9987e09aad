// Stabilised biconjugate gradients (van der Vorst 1992, "Bi-CGSTAB: a fast and smoothly converging
// variant of Bi-CG for the solution of nonsymmetric linear systems", SIAM J. Sci. Stat. Comput.
// 13(2)), preconditioned from the right by a pointwise M, so that r is b - A x: for matrices that
// are not symmetric. Side by side with the mathematics: reference/bicgstab.hpp.
//
// Two products and two all-reduces an iteration: rho = shadow . r and ||r||^2 of the next r come
// from sums of s and t, of which it is made (Yang & Brent 2002, "The improved BiCGStab method for
// large and sparse unsymmetric linear systems on parallel distributed memory architectures").
//
// Work per iteration, per row: A twice, 21 passes over vectors (directions: read x, p, M s, r, t,
// v, write x, r, p; v = A p: read p, the shadow, write v; s: read r, v, the shadow, write r, M s;
// t = A M s: read M s, r, the shadow, write t) and D^-1 twice.
//
// Exchanges of p: between two of them every block contributes to an all-reduce after it has read p
// (proof (i) of channel.hpp). M s, as it travels, is a scratch vector (proof (ii)), whose rows are
// read until x has taken its step.
#pragma once

#include "cpufree/solvers/iterate.hpp"
#include "cpufree/solvers/preconditioners.hpp"

namespace cpufree {

template <class Ctx, class M>
class StabilizedBiCg : public Recurrence<Ctx, M> {
  using Base = Recurrence<Ctx, M>;
  using Base::c_, Base::m_, Base::v_;
  using typename Base::Monitor, typename Base::Sums, typename Base::T;
  static_assert(M::pointwise);

 public:
  static constexpr int kReductions = 2;

  CPUFREE_KERNEL_FN StabilizedBiCg(Ctx& c, const M& m, const Monitors<Ctx>& monitors)
      : Base(c, m, monitors), shadow_(c.hot(v_.z)), v_of_p_(c.hot(v_.s)), t_(c.hot(v_.w)) {}

  template <class F>
  CPUFREE_HOT_FN bool advance(Start start, F&& meanwhile) {
    if (start != Start::no) return begin(meanwhile);
    update_direction();
    if (!multiply_direction(meanwhile) || !multiply_rest()) return false;
    set_step([&](double x) { return c_.port().reciprocal(x); });
    is_behind_ = true;
    steps_ += steps_ < 2 ? 1 : 0;
    return true;
  }

  CPUFREE_KERNEL_FN double square(int) const { return square_; }
  CPUFREE_KERNEL_FN double measure(int) const { return square_; }
  CPUFREE_KERNEL_FN bool took_step(int) const {
    return Monitor::is_step(alpha_ != T{0} || omega_ != T{0});
  }
  CPUFREE_KERNEL_FN bool has_step(int) const { return Monitor::is_step(goes_on_); }
  CPUFREE_KERNEL_FN void recompute(int, Start start) {
    if (start == Start::no) set_step([](double x) { return 1.0 / x; });
  }
  // Where shadow . r, or a sum that is divided by, has vanished, the recurrence starts again with r
  // as its shadow; where that happens at once and x has not moved, it cannot go on.
  CPUFREE_KERNEL_FN Verdict check(int, Monitor& monitor, Start start) const {
    if (start != Start::no || has_step(0)) return Verdict::go_on;
    if (!is_finite(square_))
      monitor.stop(Reason::diverged_nanorinf);
    else if (steps_ > 1 || took_step(0))
      return Verdict::restart;
    else
      monitor.stop(Reason::diverged_breakdown);
    return Verdict::go_on;
  }
  CPUFREE_KERNEL_FN void settle() {
    if (!is_behind_) return;
    const Mover move = mover();
    c_.rows([&](Row i, int) { move(i, v_.p[i]); });
    is_behind_ = false;
  }

 private:
  enum First { kShadowV, kVV, kFirst };
  enum Second { kShadowS, kSS, kTS, kTT, kShadowT, kSecond };

  // Whether a sum is nothing but rounding errors: |sum| <= u sqrt(product), the product that of the
  // squares of the norms of its vectors.
  CPUFREE_KERNEL_FN bool vanishes(double sum, double product) const {
    const double u = c_.args.params.roundoff;
    return !(sum * sum > u * u * product);
  }

  // shadow = r; rho = r . r.
  template <class F>
  CPUFREE_KERNEL_FN bool begin(F&& meanwhile) {
    Sums sums[1];
    c_.rows([&](Row i, int lane) {
      const T r = v_.r[i];
      shadow_[i] = r;
      add_products(sums[0][lane], r, r);
    });
    double total[1];
    if (!sum_beside<M>(c_, sums, total, meanwhile, v_.r, m_.reads())) return false;
    rho_ = next_rho_ = of_shadow_ = square_ = total[0];
    alpha_ = omega_ = beta_ = 0;
    steps_ = 0;
    is_behind_ = false;
    return true;
  }

  // What takes the step, held by the loops that do: x += alpha p + omega M s; r = s - omega t, s
  // being r. Returns r.
  struct Mover {
    T alpha, omega;
    Private<T> x, r, t;
    Ghosted<T> image;
    CPUFREE_KERNEL_FN T operator()(Row i, T p) const {
      const T next_x = x[i] + (alpha * p + omega * image[i]);
      const T next_r = r[i] - omega * t[i];
      x[i] = next_x;
      r[i] = next_r;
      return next_r;
    }
  };
  CPUFREE_KERNEL_FN Mover mover() const {
    return {
        c_.in_register(alpha_), c_.in_register(omega_), c_.hot(v_.x), c_.hot(v_.r), t_, m_of_s_};
  }

  // p = M r + beta (p - omega M v), as it travels; x and r take the step before it.
  CPUFREE_KERNEL_FN void update_direction() {
    const M m = m_;
    const auto p = c_.hot(v_.p);
    const Private<T> v = v_of_p_, r = c_.hot(v_.r);
    const Mover move = mover();
    const T beta = c_.in_register(beta_), omega = move.omega;
    const bool moves = is_behind_, first = steps_ == 0;
    c_.exchange(
        p,
        [&](Row i, int) {
          const T old = p[i];
          const T of_v = m.image(i, v[i]);
          const T image = m.image(i, moves ? move(i, old) : r[i]);
          return first ? image : image + beta * (old - omega * of_v);
        },
        p, v, r, v_.x, t_, m.reads());
    is_behind_ = false;
    rho_ = next_rho_;
  }

  // v = A p; alpha = rho / (shadow . v).
  template <class F>
  CPUFREE_KERNEL_FN bool multiply_direction(F&& meanwhile) {
    Sums sums[kFirst];
    const auto shadow = shadow_, v = v_of_p_;
    if (!c_.multiply(
            c_.hot(v_.p),
            [&](Row i, int lane, T ap) {
              add_products(sums[kShadowV][lane], shadow[i], ap);
              add_products(sums[kVV][lane], ap, ap);
              v[i] = ap;
            },
            shadow))
      return false;
    double total[kFirst];
    if (!sum_beside<M>(c_, sums, total, meanwhile, v_.r, v, shadow, m_.reads())) return false;
    const double alpha = rho_ * c_.port().reciprocal(total[kShadowV]);
    const bool sound =
        !vanishes(total[kShadowV], of_shadow_ * total[kVV]) && is_finite(static_cast<T>(alpha));
    // Without a length the step is one of minimal residuals, along M r.
    alpha_ = Monitor::is_step(sound) ? static_cast<T>(alpha) : T{0};
    return true;
  }

  // s = r - alpha v, in place of r; M s travels; t = A M s.
  CPUFREE_KERNEL_FN bool multiply_rest() {
    Sums sums[kSecond];
    const M m = m_;
    const T alpha = c_.in_register(alpha_);
    const auto r = c_.hot(v_.r);
    const auto shadow = shadow_, v = v_of_p_, t = t_;
    m_of_s_ = c_.exchange_scratch([&](Row i, int lane) {
      const T s = r[i] - alpha * v[i];
      r[i] = s;
      add_products(sums[kShadowS][lane], shadow[i], s);
      add_products(sums[kSS][lane], s, s);
      return m.image(i, s);
    });
    if (!c_.multiply(
            m_of_s_,
            [&](Row i, int lane, T image) {
              add_products(sums[kTS][lane], image, r[i]);
              add_products(sums[kTT][lane], image, image);
              add_products(sums[kShadowT][lane], shadow[i], image);
              t[i] = image;
            },
            r, shadow))
      return false;
    return sum_beside<M>(c_, sums, total_, [] {}, v_.p, v, r, v_.x, t, m.reads());
  }

  // omega = (t . s) / (t . t), rho and ||r||^2 of r = s - omega t, and
  // beta = (rho / rho before) (alpha / omega).
  template <class F>
  CPUFREE_KERNEL_FN void set_step(F&& reciprocal) {
    const double ts = total_[kTS], tt = total_[kTT], ss = total_[kSS];
    const double length = vanishes(ts, tt * ss) ? 0.0 : ts * reciprocal(tt);
    omega_ = static_cast<T>(length);
    const double omega = omega_;
    next_rho_ = total_[kShadowS] - omega * total_[kShadowT];
    const double square = ss - omega * (2.0 * ts - omega * tt);
    square_ = square > 0.0 || !is_finite(square) ? square : 0.0;
    const double beta = next_rho_ * reciprocal(rho_) * (alpha_ * reciprocal(omega));
    beta_ = static_cast<T>(beta);
    goes_on_ = omega != 0.0 && alpha_ != T{0} && is_finite(beta_) &&
               !vanishes(next_rho_, of_shadow_ * square_);
  }

  Private<T> shadow_, v_of_p_, t_;
  Ghosted<T> m_of_s_;
  double total_[kSecond] = {};
  double rho_ = 0.0, next_rho_ = 0.0;
  double of_shadow_ = 0.0;  // square of its norm
  double square_ = 0.0;     // of ||r||
  T alpha_ = 0, beta_ = 0, omega_ = 0;
  int steps_ = 0;           // since the start, up to 2
  bool goes_on_ = false;    // there are coefficients of a next step
  bool is_behind_ = false;  // x and r lack the step
};

}  // namespace cpufree
