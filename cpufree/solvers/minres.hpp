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
// With a pointwise M, w and x take two steps at a time, as the vectors that these are made of are
// read anyway, but for one, and w and x are far more.
//
// Work per iteration with a pointwise M, per row: A once, 12.5 passes over vectors (update: read s,
// v and v before, r, write v, r, p; every other time read v before that, too, w and w before, x,
// write both w and x; s = A p: read p, write s) and D^-1 once.
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
        lanczos_{c.hot(v_.w), c.hot(v_.z), M::pointwise ? c.hot(v_.q) : Private<T>{}},
        direction_{c.hot(v_.n), c.hot(v_.u)},
        nothing_(c.args.params.roundoff * std::sqrt(c.args.params.roundoff)) {}

  template <class F>
  CPUFREE_HOT_FN bool advance(Start start, F&& meanwhile) {
    Sums sums[kSums];
    if (start == Start::no ? !next_vector(sums) : !first_vector(sums)) return false;
    if (!multiply(sums)) return false;
    if (!sum_beside<M>(c_, sums, total_, meanwhile, v_.s, lanczos_.newer, lanczos_.older, v_.r))
      return false;
    set_step([&](double x) -> Root {
      const double over = c_.port().reciprocal_root(x);
      return {x * over, over};
    });
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
    set_step([](double x) -> Root {
      const double root = std::sqrt(x);
      return {root, 1.0 / root};
    });
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
    if (waits_) take(waiting_, lanczos_.oldest);
    waits_ = false;
    if (!is_behind_) return;
    take(step_, lanczos_.older);
    const Residual residual = residual_step();
    const Private<T> newer = lanczos_.newer;
    c_.rows([&](Row i, int) { v_.r[i] = residual(true, v_.r[i], newer[i]); });
    is_behind_ = false;
  }

 private:
  enum Sum { kNu, kDelta, kRR, kRV, kVV, kSums };

  // Vectors that take turns: directions.
  struct Pair {
    Private<T> newer, older;
    CPUFREE_KERNEL_FN void turn() {
      const Private<T> last = newer;
      newer = older;
      older = last;
    }
  };
  // Lanczos vectors: three, where steps are taken by two.
  struct Ring {
    Private<T> newer, older, oldest;
    CPUFREE_KERNEL_FN const Private<T>& next() const { return M::pointwise ? oldest : older; }
    CPUFREE_KERNEL_FN void turn() {
      const Private<T> free = next();
      oldest = older;
      older = newer;
      newer = free;
    }
  };
  // The last rotation and the one before it, and r's norm by M after them, with a sign.
  struct Rotations {
    double cosine = 1.0, sine = 0.0;
    double older_cosine = 1.0, older_sine = 0.0;
    double phi = 0.0;
  };
  // sqrt(x), and 1 over it.
  struct Root {
    double root = 0.0, over = 0.0;
  };
  // Coefficients of a step: w = image * M v - second * w - third * w before; x += length * w;
  // r = of_r * r - of_v * v.
  template <class V>
  struct Direction {
    V image = 0, second = 0, third = 0, length = 0;
    CPUFREE_KERNEL_FN V operator()(V of_v, V w, V older) const {
      return image * of_v - second * w - third * older;
    }
  };
  struct Residual {
    T of_r, of_v;
    CPUFREE_KERNEL_FN T operator()(bool moves, T r, T v) const {
      return moves ? of_r * r - of_v * v : r;
    }
  };
  struct Step : Direction<double> {
    Rotations now;
    double of_r = 1.0, of_v = 0.0;
    double square = 0.0;  // ||r||^2 after it
    bool sound = false;   // A does not map r to nothing, as far as rounding errors show
  };

  // Of a row: the vector's entry, and that of r.
  struct Entries {
    T v, r;
  };
  // The same, held by loops.
  CPUFREE_KERNEL_FN T held(double number) const { return c_.in_register(static_cast<T>(number)); }
  CPUFREE_KERNEL_FN Direction<T> direction_of(const Direction<double>& d) const {
    return {held(d.image), held(d.second), held(d.third), held(d.length)};
  }
  CPUFREE_KERNEL_FN Residual residual_step() const { return {held(step_.of_r), held(step_.of_v)}; }
  // A pointwise M's entry at a row, read once for all that it multiplies there.
  CPUFREE_KERNEL_FN static T entry_of(const M& m, Row i) {
    if constexpr (M::pointwise)
      return m.entry(i);
    else
      return T{};
  }
  // w and x take a step, along M v; of the vector before the present one, M v is kept where M is
  // not pointwise.
  CPUFREE_KERNEL_FN void take(const Direction<double>& step, const Private<T>& v) {
    const Direction<T> direction = direction_of(step);
    c_.rows([&](Row i, int) {
      const T image = M::pointwise ? entry_of(m_, i) * v[i] : v_.q[i];
      const T next = direction(image, direction_.newer[i], direction_.older[i]);
      direction_.older[i] = next;
      v_.x[i] += direction.length * next;
    });
    direction_.turn();
  }

  // v = r, and nothing before it.
  CPUFREE_KERNEL_FN bool first_vector(Sums (&sums)[kSums]) {
    count_ = 1;
    is_first_ = true;
    is_behind_ = waits_ = false;
    before_ = {};
    coupling_ = 0.0;
    previous_over_ = 1.0;
    return spread(sums, lanczos_.newer, [&](Row i, T) -> Entries {
      const T r = v_.r[i];
      lanczos_.newer[i] = r;
      lanczos_.older[i] = direction_.newer[i] = direction_.older[i] = 0;
      return {r, r};
    });
  }

  // v = A M v / gamma - delta / gamma v - gamma / gamma before v before; and steps are taken.
  struct Lanczos {
    T of_s, of_v, of_older;
    CPUFREE_KERNEL_FN T operator()(T s, T v, T older) const {
      return of_s * s - of_v * v - of_older * older;
    }
  };
  CPUFREE_KERNEL_FN bool next_vector(Sums (&sums)[kSums]) {
    const double gamma = gamma_.root, over = gamma_.over;
    const double delta = total_[kDelta] * (over * over);
    const Lanczos next = {held(over), held(delta * over), held(gamma * previous_over_)};
    const bool both = is_behind_ && waits_;
    bool met = false;
    if constexpr (!M::pointwise)
      met = next_and_step(sums, next);
    else
      met = both ? next_and_two_steps(sums, next) : next_alone(sums, next);
    lanczos_.turn();
    if (M::pointwise && is_behind_) {
      if (!both) waiting_ = step_;
      waits_ = !both;
    }
    is_behind_ = false;
    before_ = is_first_ ? Rotations{1.0, 0.0, 1.0, 0.0, gamma} : step_.now;
    coupling_ = is_first_ ? 0.0 : gamma;
    previous_over_ = over;
    delta_ = delta;
    is_first_ = false;
    count_ += count_ < 3 ? 1 : 0;
    return met;
  }

  // Loops read all of a row before they write any of it, and have no branch for rows that stay:
  // else they would wait for memory again after each store, as compilers cannot know that vectors
  // do not overlap, and after each branch.

  // w and x wait for the next time.
  CPUFREE_KERNEL_FN bool next_alone(Sums (&sums)[kSums], const Lanczos& next) {
    const bool moves = is_behind_;
    const Residual residual = residual_step();
    const Ring v = lanczos_;
    const Private<T> s = c_.hot(v_.s), r = c_.hot(v_.r);
    const auto pass = [&](Row i, T) -> Entries {
      const T older = v.older[i], newer = v.newer[i];
      const Entries row = {next(s[i], newer, older), residual(moves, r[i], newer)};
      v.oldest[i] = row.v;
      r[i] = row.r;
      return row;
    };
    return spread(sums, v.oldest, pass, s, v.newer, v.older);
  }
  // w and x take the step that waits, and the one after it.
  CPUFREE_KERNEL_FN bool next_and_two_steps(Sums (&sums)[kSums], const Lanczos& next) {
    const Residual residual = residual_step();
    const Direction<T> one = direction_of(waiting_), two = direction_of(step_);
    const Ring v = lanczos_;
    const Pair w = direction_;
    const Private<T> s = c_.hot(v_.s), r = c_.hot(v_.r), x = c_.hot(v_.x);
    const auto pass = [&](Row i, T entry) -> Entries {
      const T at = x[i], last = w.newer[i];
      const T newer = v.newer[i], older = v.older[i];
      const T first = one(entry * v.oldest[i], last, w.older[i]);
      const T second = two(entry * older, first, last);
      const Entries row = {next(s[i], newer, older), residual(true, r[i], newer)};
      w.older[i] = first;
      w.newer[i] = second;
      x[i] = at + one.length * first + two.length * second;
      v.oldest[i] = row.v;
      r[i] = row.r;
      return row;
    };
    return spread(sums, v.oldest, pass, s, v.newer, v.older, v.oldest, w.newer, w.older, x);
  }
  // M is not pointwise: its image of the vector before is kept, and w and x take each step.
  CPUFREE_KERNEL_FN bool next_and_step(Sums (&sums)[kSums], const Lanczos& next) {
    const bool moves = is_behind_;
    const Residual residual = residual_step();
    const Direction<T> step = direction_of(step_);
    const Ring v = lanczos_;
    const Pair w = direction_;
    const auto pass = [&](Row i, T) -> Entries {
      const T newer = v.newer[i], older = w.older[i], image = v_.q[i];
      const T first = step(image, w.newer[i], older);
      const Entries row = {next(v_.s[i], newer, v.older[i]), residual(moves, v_.r[i], newer)};
      w.older[i] = moves ? first : older;
      if (moves) v_.x[i] += step.length * first;
      v_.q[i] = v_.p[i];
      v.older[i] = row.v;
      v_.r[i] = row.r;
      return row;
    };
    if (moves) direction_.turn();
    return spread(sums, v.older, pass);
  }

  // p = M v, exchanged, v(i) = f(i), which f writes to `vector`; the sums but M v . A M v. `read`:
  // vectors that f reads, besides r.
  template <class F, class... V>
  CPUFREE_KERNEL_FN bool spread(Sums (&sums)[kSums], const Private<T>& vector, F&& f,
                                const V&... read) {
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
            const T entry = m.entry(i);
            const Entries row = f(i, entry);
            const T image = entry * row.v;
            add(lane, row.v, row.r, image);
            return image;
          },
          read..., r, m.reads());
    } else {
      const Private<T> v = vector;
      c_.rows([&](Row i, int) { f(i, T{}); });
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
  CPUFREE_KERNEL_FN void set_step(F&& root_of) {
    const double nu = total_[kNu];
    gamma_ = root_of(nu);
    if (is_first_) {
      step_.sound = false;
      return;
    }
    const Rotations& b = before_;
    const double bar = b.cosine * delta_ - b.older_cosine * b.sine * coupling_;
    const double over = root_of(bar * bar + nu).over;
    Step& step = step_;
    step.now = {bar * over, gamma_.root * over, b.cosine, b.sine, 0.0};
    step.now.phi = -step.now.sine * b.phi;
    step.image = over * previous_over_;
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
    const double size = bar * bar + nu;
    const double least = image_of_r < size ? image_of_r : size;
    step.sound = Monitor::is_step(least > nothing_ * norm_ && is_finite(square));
    is_behind_ = step.sound;
  }

  Ring lanczos_;
  Pair direction_;
  double total_[kSums] = {};
  Step step_;
  Direction<double> waiting_;  // of the step before, where w and x lack it
  Rotations before_;
  Root gamma_;                  // of the present vector
  double previous_over_ = 1.0;  // 1 / gamma of the vector before the present one
  double coupling_ = 0.0;       // the same as an entry of the tridiagonal matrix: 0 at its start
  double delta_ = 0.0;          // of the vector before the present one
  // ||A r|| / (||A|| ||r||), squared, at which r is one that A maps to nothing: u^(3/4), u the unit
  // roundoff. Rounding errors keep it above u times the condition number of A beside its null
  // space, and beyond that steps are errors that make x grow. A regular A has at least one over its
  // condition number.
  double nothing_;
  double norm_ = 0.0;  // the largest of squares of columns of all tridiagonal matrices
  int count_ = 0;      // of vectors since the start, up to 3
  bool is_first_ = true;
  bool is_behind_ = false;  // w, x and r lack the step
  bool waits_ = false;      // w and x lack the one before it, too
};

}  // namespace cpufree
