// Minimal residuals (Paige & Saunders 1975, "Solution of sparse indefinite systems of linear
// equations", SIAM J. Numer. Anal. 12(4)), with a preconditioner M (Elman, Silvester & Wathen 2014,
// "Finite Elements and Fast Iterative Solvers", algorithm 4.1): A symmetric, M symmetric positive
// definite. Side by side with the mathematics: reference/minres.hpp.
//
// One all-reduce an iteration, at no price in accuracy: Lanczos vectors v are not normalised.
// gamma^2 = v . M v and gamma^2 delta = M v . A M v of the same v are summed together, and divided
// afterwards: variant (1,7) of Paige 1972, "Computational variants of the Lanczos method for the
// eigenproblem", which is a stable one. The rotation of step k takes gamma of vector k + 1. So x,
// its direction w and r are a step behind, which they take along with the next Lanczos vector.
//
// Work per iteration with a pointwise M, per row: A once, 14 passes over vectors (update: read s,
// v and w, both twice, x, r, write v, w, x, r, p; s = A p: read p, write s) and D^-1 once.
//
// Exchanges of p: every block contributes to an all-reduce after it has read p and before p is
// exchanged again (proof (i) of channel.hpp).
//
// r is carried along, as the stopping rule is about its plain norm. That of the next r comes from
// sums of the present one and of v.
#pragma once

#include "cpufree/solvers/iterate.hpp"
#include "cpufree/solvers/preconditioners.hpp"

namespace cpufree {

template <class Ctx, class M>
class MinimalResidual : public Recurrence<Ctx, M> {
  using Base = Recurrence<Ctx, M>;
  using Base::c_, Base::m_, Base::v_;
  using typename Base::Monitor, typename Base::Sums, typename Base::T;

 public:
  static constexpr int kReductions = 1;

  CPUFREE_KERNEL_FN MinimalResidual(Ctx& c, const M& m, const Monitors<Ctx>& monitors)
      : Base(c, m, monitors),
        lanczos_{c.hot(v_.w), c.hot(v_.z)},
        direction_{c.hot(v_.n), c.hot(v_.u)},
        nothing_(c.args.params.roundoff * std::sqrt(c.args.params.roundoff)) {}

  template <class F>
  CPUFREE_HOT_FN bool advance(Start start, F&& meanwhile) {
    Sums sums[kSums];
    if (start == Start::no ? !next_vector(sums) : !first_vector(sums)) return false;
    if (!multiply(sums)) return false;
    if (!sum_beside<M>(c_, sums, total_, meanwhile, v_.s, v_.w, v_.z, v_.x, v_.r)) return false;
    set_step([&](double x) { return c_.port().reciprocal(x); });
    return true;
  }

  CPUFREE_KERNEL_FN double square(int) const { return is_first_ ? total_[kRR] : step_.square; }
  CPUFREE_KERNEL_FN double measure(int) const {
    return is_first_ ? total_[kNu] : step_.now.phi * step_.now.phi;
  }
  CPUFREE_KERNEL_FN bool took_step(int) const { return step_.sound; }
  CPUFREE_KERNEL_FN bool has_step(int) const {
    return Monitor::is_step(step_.sound && total_[kNu] > 0.0);
  }
  CPUFREE_KERNEL_FN void recompute(int, Start) {
    set_step([](double x) { return 1.0 / x; });
  }
  // Where Lanczos vectors come to an end and x is not good enough yet, they start again from
  // b - A x; where they end at once, A maps r to nothing, and no x makes it smaller.
  CPUFREE_KERNEL_FN Verdict check(int, Monitor& monitor, Start) const {
    const double nu = total_[kNu];
    const double all = nu + total_[kDelta] + total_[kVV];
    if (nu < 0.0 || !is_finite(all) || (is_first_ && nu == 0.0))
      monitor.positive(is_finite(all) ? nu : all, Reason::diverged_indefinite_pc);
    else if (!is_first_ && !Monitor::is_step(step_.sound) && count_ == 2)
      monitor.stop(Reason::diverged_breakdown);
    else if (!is_first_ && !has_step(0))
      return Verdict::restart;
    return Verdict::go_on;
  }
  CPUFREE_KERNEL_FN void settle() {
    if (!is_behind_) return;
    const Mover move = mover();
    const Private<T> before = lanczos_.older;
    c_.rows([&](Row i, int) { move(i, image_of(m_, v_.q, i, before[i])); });
    is_behind_ = false;
    direction_.turn();
  }

 private:
  enum Sum { kNu, kDelta, kRR, kRV, kVV, kSums };

  // Two vectors that take turns.
  struct Pair {
    Private<T> newer, older;
    CPUFREE_KERNEL_FN void turn() {
      const Private<T> last = newer;
      newer = older;
      older = last;
    }
  };
  // The last rotation and the one before it, and r's norm by M after them, with a sign.
  struct Rotations {
    double cosine = 1.0, sine = 0.0;
    double older_cosine = 1.0, older_sine = 0.0;
    double phi = 0.0;
  };
  // Coefficients of a step: w = image * M v - second * w - third * w before; x += length * w;
  // r = of_r * r - of_v * v.
  struct Step {
    Rotations now;
    double image = 0.0, second = 0.0, third = 0.0;
    double length = 0.0;
    double of_r = 1.0, of_v = 0.0;
    double square = 0.0;  // ||r||^2 after it
    bool sound = false;   // A does not map r to nothing, as far as rounding errors show
  };

  // What takes the step, held by the loops that do: w, x and r of a row, from M times the Lanczos
  // vector before the present one. All is read before any of it is written.
  struct Mover {
    T image, second, third, length, of_r, of_v;
    Private<T> w, older, v, x, r;
    CPUFREE_KERNEL_FN void operator()(Row i, T of_before) const {
      const T next = image * of_before - second * w[i] - third * older[i];
      const T next_x = x[i] + length * next;
      const T next_r = of_r * r[i] - of_v * v[i];
      older[i] = next;
      x[i] = next_x;
      r[i] = next_r;
    }
  };
  CPUFREE_KERNEL_FN Mover mover() const {
    const auto held = [&](double number) { return c_.in_register(static_cast<T>(number)); };
    return {held(step_.image), held(step_.second), held(step_.third), held(step_.length),
            held(step_.of_r),  held(step_.of_v),   direction_.newer,  direction_.older,
            lanczos_.newer,    c_.hot(v_.x),       c_.hot(v_.r)};
  }
  // M times the vector before the present one, which is `before`.
  CPUFREE_KERNEL_FN static T image_of(const M& m, const Private<T>& kept, Row i, T before) {
    if constexpr (M::pointwise)
      return m.image(i, before);
    else
      return kept[i];
  }

  // v = r, and nothing before it.
  CPUFREE_KERNEL_FN bool first_vector(Sums (&sums)[kSums]) {
    count_ = 1;
    is_first_ = true;
    is_behind_ = false;
    before_ = {};
    coupling_ = 0.0;
    previous_gamma_ = 1.0;
    return spread(sums, lanczos_.newer, [&](Row i) {
      const T r = v_.r[i];
      lanczos_.newer[i] = r;
      lanczos_.older[i] = direction_.newer[i] = direction_.older[i] = 0;
      return r;
    });
  }

  // v = A M v / gamma - delta / gamma v - gamma / gamma before v before; and x takes its step.
  CPUFREE_KERNEL_FN bool next_vector(Sums (&sums)[kSums]) {
    const double gamma = std::sqrt(total_[kNu]);
    const double over = c_.port().reciprocal(gamma);
    const double delta = total_[kDelta] * (over * over);
    const T of_s = c_.in_register(static_cast<T>(over));
    const T of_v = c_.in_register(static_cast<T>(delta * over));
    const T of_older = c_.in_register(static_cast<T>(gamma / previous_gamma_));
    const bool moves = is_behind_;
    const Mover move = mover();
    const M m = m_;
    const Private<T> s = c_.hot(v_.s), newer = lanczos_.newer, older = lanczos_.older, q = v_.q;
    const auto p = c_.hot(v_.p);
    const bool met = spread(sums, older, [&](Row i) {
      const T before = older[i];
      const T next = of_s * s[i] - of_v * newer[i] - of_older * before;
      if (moves) move(i, image_of(m, q, i, before));
      older[i] = next;
      if constexpr (!M::pointwise) q[i] = p[i];
      return next;
    });
    lanczos_.turn();
    if (moves) direction_.turn();
    is_behind_ = false;
    before_ = is_first_ ? Rotations{1.0, 0.0, 1.0, 0.0, gamma} : step_.now;
    coupling_ = is_first_ ? 0.0 : gamma;
    previous_gamma_ = gamma;
    delta_ = delta;
    is_first_ = false;
    count_ += count_ < 3 ? 1 : 0;
    return met;
  }

  // p = M v, exchanged, v(i) = f(i), which f writes to `vector`; the sums but M v . A M v.
  template <class F>
  CPUFREE_KERNEL_FN bool spread(Sums (&sums)[kSums], const Private<T>& vector, F&& f) {
    const auto add = [&](int lane, double v, double r, double image) {
      sums[kNu][lane] += v * image;
      sums[kRR][lane] += r * r;
      sums[kRV][lane] += r * v;
      sums[kVV][lane] += v * v;
    };
    const auto r = c_.hot(v_.r);
    if constexpr (M::pointwise) {
      const M m = m_;
      c_.exchange(
          c_.hot(v_.p),
          [&](Row i, int lane) {
            const T v = f(i);
            const T image = m.image(i, v);
            add(lane, v, r[i], image);
            return image;
          },
          v_.s, v_.w, v_.z, v_.n, v_.u, v_.x, r, m.reads());
    } else {
      const Private<T> v = vector;
      c_.rows([&](Row i, int) { f(i); });
      if (!apply_apart(c_, m_, v)) return false;
      c_.exchange(c_.hot(v_.p), [&](Row i, int lane) {
        const T image = m_.image(i, v[i]);
        add(lane, v[i], r[i], image);
        return image;
      });
    }
    return true;
  }

  // s = A p; p . s.
  CPUFREE_KERNEL_FN bool multiply(Sums (&sums)[kSums]) {
    const auto p = c_.hot(v_.p);
    const auto s = c_.hot(v_.s);
    return c_.multiply(p, [&](Row i, int lane, T ap) {
      sums[kDelta][lane] += static_cast<double>(p[i]) * ap;
      s[i] = ap;
    });
  }

  // The step before the present vector, whose gamma closes the column of the tridiagonal matrix.
  template <class F>
  CPUFREE_KERNEL_FN void set_step(F&& reciprocal) {
    if (is_first_) {
      step_.sound = false;
      return;
    }
    const Rotations& b = before_;
    const double nu = total_[kNu];
    const double bar = b.cosine * delta_ - b.older_cosine * b.sine * coupling_;
    const double size = std::sqrt(bar * bar + nu);
    const double over = reciprocal(size);
    Step& step = step_;
    step.now = {bar * over, std::sqrt(nu) * over, b.cosine, b.sine, 0.0};
    step.now.phi = -step.now.sine * b.phi;
    step.image = over * reciprocal(previous_gamma_);
    step.second = (b.sine * delta_ + b.older_cosine * b.cosine * coupling_) * over;
    step.third = b.older_sine * coupling_ * over;
    step.length = step.now.cosine * b.phi;
    step.of_r = nu * over * over;
    step.of_v = step.length * over;
    const double rest =
        step.of_v * step.of_v * total_[kVV] - 2.0 * step.of_r * step.of_v * total_[kRV];
    const double square = step.of_r * step.of_r * total_[kRR] + rest;
    step.square = square > 0.0 || !is_finite(square) ? square : 0.0;
    // Of A in the norm of M, as far as vectors have shown it; and ||A r|| / ||r||, r before this.
    const double norm = delta_ * delta_ + coupling_ * coupling_ + nu;
    if (norm > norm_) norm_ = norm;
    const double image_of_r = bar * bar + b.cosine * b.cosine * nu;
    const double least = image_of_r < size * size ? image_of_r : size * size;
    step.sound = Monitor::is_step(least > nothing_ * norm_ && is_finite(square));
    is_behind_ = step.sound;
  }

  Pair lanczos_, direction_;
  double total_[kSums] = {};
  Step step_;
  Rotations before_;
  double previous_gamma_ = 1.0;  // of the vector before the present one
  double coupling_ = 0.0;        // the same as an entry of the tridiagonal matrix: 0 at its start
  double delta_ = 0.0;           // of the vector before the present one
  // ||A r|| / (||A|| ||r||), squared, at which r is one that A maps to nothing: u^(3/4), u the unit
  // roundoff. Rounding errors keep it above u times the condition number of A beside its null
  // space, and beyond that steps are errors that make x grow. A regular A has at least one over its
  // condition number.
  double nothing_;
  double norm_ = 0.0;  // the largest of squares of columns of all tridiagonal matrices
  int count_ = 0;      // of vectors since the start, up to 3
  bool is_first_ = true;
  bool is_behind_ = false;  // w, x and r lack the step
};

}  // namespace cpufree
