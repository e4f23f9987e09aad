// When to stop, and how honestly. Every block holds a Monitor; all are fed the same reduced numbers
// and so take the same decisions. What every iteration asks compares squares: a square root or a
// division of doubles costs a GPU as much as a row of the matrix.
//
// Stopping rule (SciPy's): ||r|| <= max(rtol ||b||, atol). The recurrence's r may be smaller than
// b - A x, so where it meets the rule the solver computes b - A x and asks again ("verify"). If
// that is still too large, and
//   - the recurrence is not far off (within a factor of two), it goes on unchanged, and is asked
//   again
//     when it has become smaller in proportion;
//   - the recurrence lied, the solver starts afresh from the true residual, which has nothing to do
//     with the old direction: CG with a foreign first direction converges slowly for good (Powell
//     1976, "Some convergence properties of the conjugate gradient method", Math. Program. 11).
// If the true residual does not even halve over several such looks, rounding errors admit no
// smaller one: stagnated.
#pragma once

#include <cmath>
#include <type_traits>

#include "cpufree/solvers/args.hpp"

namespace cpufree {

CPUFREE_KERNEL_FN bool is_finite(double v) { return v - v == 0.0; }

enum class Verdict { go_on, verify, stop };

class Monitor {
 public:
  static constexpr bool blind = false;  // steps are to be taken whatever the numbers

  CPUFREE_KERNEL_FN explicit Monitor(const SolveParams& params) : params_(params) {}

  CPUFREE_KERNEL_FN Reason reason() const { return reason_; }
  CPUFREE_KERNEL_FN bool done() const { return reason_ != Reason::running; }
  CPUFREE_KERNEL_FN std::int64_t iterations() const { return iterations_; }
  CPUFREE_KERNEL_FN double residual() const { return std::sqrt(square_); }
  CPUFREE_KERNEL_FN double square() const { return square_; }
  CPUFREE_KERNEL_FN double true_residual() const { return true_residual_; }
  CPUFREE_KERNEL_FN double bnorm() const { return bnorm_; }
  CPUFREE_KERNEL_FN std::int64_t replacements() const { return replacements_; }
  CPUFREE_KERNEL_FN std::int64_t handed_over_at() const { return handed_over_at_; }
  CPUFREE_KERNEL_FN void note_hand_over() { handed_over_at_ = iterations_; }
  CPUFREE_KERNEL_FN bool verified() const { return verified_; }
  CPUFREE_KERNEL_FN void stop(Reason reason) { reason_ = reason; }

  // The start: squares of the norms of b and of the (true) initial residual.
  CPUFREE_KERNEL_FN void begin(double bb, double rr) {
    bnorm_ = std::sqrt(bb);
    square_ = smallest_ = rr;
    true_residual_ = best_ = std::sqrt(rr);
    verified_ = true;
    target_ = larger(params_.rtol * bnorm_, params_.atol);
    trigger_ = squared(larger(target_, params_.roundoff * bnorm_));
    level_ = squared(1e3 * params_.roundoff * bnorm_);
    bound_ = squared(kDivergence * larger(true_residual_, bnorm_));
    listen();
    if (!is_finite(bb) || !is_finite(rr))
      stop(Reason::diverged_nanorinf);
    else if (bb == 0.0 || true_residual_ <= target_)
      stop(met());
    else if (params_.maxiter <= 0)
      stop(Reason::diverged_its);
  }

  // Whether `look` would say no more than "go on", unless to the last iteration. Any thread may
  // ask, also while the block's clerk tells of the iteration before (`count`): nothing that this
  // reads changes then. What is not quiet (NaN among it) is looked at.
  CPUFREE_KERNEL_FN bool quiet(double rr, unsigned notes) const {
    return rr > loud_ && rr <= bound_ && notes == 0U;
  }
  // After a quiet iteration: what `look` would note down.
  CPUFREE_KERNEL_FN void count(double rr) {
    ++iterations_;
    square_ = rr;
    verified_ = false;
    smallest_ = rr < smallest_ ? rr : smallest_;
  }

  // After an iteration: square of the norm of the recurrence's residual, and the host's notes.
  CPUFREE_KERNEL_FN Verdict look(double rr, unsigned notes) {
    count(rr);
    listen();
    if (!is_finite(rr))
      stop(Reason::diverged_nanorinf);
    else if (rr <= trigger_ || lost())
      return Verdict::verify;
    else if (rr > bound_)
      stop(Reason::diverged_dtol);
    else if (iterations_ >= params_.maxiter)
      stop(Reason::diverged_its);
    else if ((notes & kNoteInterrupt) != 0U)
      stop(Reason::interrupted);
    else if ((notes & kNoteTimeLimit) != 0U)
      stop(Reason::time_limit);
    return done() ? Verdict::stop : Verdict::go_on;
  }

  // b - A x was computed, square of its norm. Returns, as `honest` does, whether the recurrence had
  // told the truth. If not, or if `replaced`, the true residual is the recurrence's from now on.
  CPUFREE_KERNEL_FN bool verify(double rr, bool replaced) {
    const double believed = residual();
    const bool claimed = !replaced && believed <= target_;
    true_residual_ = std::sqrt(rr);
    verified_ = true;
    honest_ = true_residual_ <= 2.0 * believed && !lost();
    smallest_ = rr;
    if (replaced || !honest_) {
      square_ = rr;
      ++replacements_;
    }
    if (true_residual_ <= 0.5 * best_) {
      best_ = true_residual_;
      idle_ = 0;
    } else if (!honest_) {
      ++idle_;
    }
    if (claimed && honest_)  // shrinks each time: sooner or later the truth suffices, or is denied
      trigger_ = squared(0.9 * target_ * (believed / true_residual_));
    else if (!replaced || !honest_)
      trigger_ = squared(larger(target_, 0.1 * true_residual_));
    listen();
    if (!is_finite(rr)) {
      stop(Reason::diverged_nanorinf);
    } else if (true_residual_ <= target_) {
      stop(met());
    } else if (idle_ >= kPatience) {
      stop(Reason::stagnated);
    } else if (iterations_ >= params_.maxiter) {
      stop(Reason::diverged_its);
    }
    return honest_;
  }
  CPUFREE_KERNEL_FN bool honest() const { return honest_; }

  // The final look at b - A x of a solve that ended for another reason.
  CPUFREE_KERNEL_FN void record_truth(double rr) {
    true_residual_ = std::sqrt(rr);
    verified_ = true;
  }

  // A step length that overflows, out of sums that do not. False: stop.
  CPUFREE_KERNEL_FN bool usable(double alpha) {
    if (!is_finite(alpha)) stop(Reason::diverged_breakdown);
    return !done();
  }

  // Signs that A, or the preconditioner, is not positive definite. False: stop.
  CPUFREE_KERNEL_FN bool positive(double value, Reason otherwise) {
    if (value > 0.0 && is_finite(value)) return true;
    stop(is_finite(value) ? otherwise : Reason::diverged_nanorinf);
    return false;
  }

 private:
  static constexpr int kPatience = 3;
  static constexpr double kDivergence = 1e10;  // residuals of CG may grow by sqrt(condition number)

  // Beyond the level of rounding errors a recurrence may grow without end from a good x.
  CPUFREE_KERNEL_FN bool lost() const { return square_ > 1e4 * smallest_ && smallest_ <= level_; }

  // From which square of a residual downwards iterations are not quiet: where `look` may ask for
  // b - A x. Once at the level of rounding errors, all of them.
  CPUFREE_KERNEL_FN void listen() {
    loud_ = smallest_ <= level_ ? bound_ : larger(trigger_, level_);
  }

  CPUFREE_KERNEL_FN static double squared(double a) { return a * a; }
  CPUFREE_KERNEL_FN static double larger(double a, double b) { return a > b ? a : b; }
  CPUFREE_KERNEL_FN Reason met() const {
    return bnorm_ > 0.0 && true_residual_ <= params_.rtol * bnorm_ ? Reason::converged_rtol
                                                                   : Reason::converged_atol;
  }

  const SolveParams& params_;
  Reason reason_ = Reason::running;
  std::int64_t iterations_ = 0;
  std::int64_t replacements_ = 0;
  std::int64_t handed_over_at_ = -1;
  double bnorm_ = 0.0;
  double true_residual_ = 0.0;
  double best_ = 0.0;    // smallest true residual, in steps of one half
  int idle_ = 0;         // lies of the recurrence since then
  double target_ = 0.0;  // the rule
  // Squares:
  double square_ = 0.0;    // the recurrence's residual
  double smallest_ = 0.0;  // since its start
  double trigger_ = 0.0;   // where to compute b - A x: at the rule, and before it where it lied
  double level_ = 0.0;     // of rounding errors
  double loud_ = 0.0;      // at most this: not quiet
  double bound_ = 0.0;     // of divergence
  bool verified_ = false;
  bool honest_ = true;
};

// The monitor of a study in which the numbers mean nothing (study.hpp): it goes on, whatever they
// are, until the iterations are done or the host says stop.
class Counter : public Monitor {
 public:
  static constexpr bool blind = true;

  CPUFREE_KERNEL_FN explicit Counter(const SolveParams& params)
      : Monitor(params), most_(params.maxiter) {}

  CPUFREE_KERNEL_FN void begin(double bb, double rr) {
    Monitor::begin(bb, rr);
    stop(most_ > 0 ? Reason::running : Reason::diverged_its);
  }
  CPUFREE_KERNEL_FN bool quiet(double, unsigned notes) const { return notes == 0U; }
  CPUFREE_KERNEL_FN Verdict look(double rr, unsigned notes) {
    count(rr);
    if (iterations() >= most_)
      stop(Reason::diverged_its);
    else if ((notes & kNoteInterrupt) != 0U)
      stop(Reason::interrupted);
    else if ((notes & kNoteTimeLimit) != 0U)
      stop(Reason::time_limit);
    return done() ? Verdict::stop : Verdict::go_on;
  }
  CPUFREE_KERNEL_FN bool verify(double rr, bool) {
    record_truth(rr);
    if (iterations() >= most_) stop(Reason::diverged_its);
    return true;
  }
  CPUFREE_KERNEL_FN static bool usable(double) { return true; }
  CPUFREE_KERNEL_FN static bool positive(double, Reason) { return true; }

 private:
  std::int64_t most_;
};

template <class Ctx>
using MonitorOf =
    std::conditional_t<Ctx::PortType::computes && Ctx::PortType::communicates, Monitor, Counter>;

// Squares of residual norms, one per iteration, in bounded memory: when it is full, every other one
// is dropped and from then on only every other one kept. Used by one thread.
class History {
 public:
  CPUFREE_KERNEL_FN History(double* values, std::int64_t capacity)
      : values_(values), capacity_(capacity) {}
  CPUFREE_KERNEL_FN void add(std::int64_t iteration, double square) {
    if ((iteration & (stride_ - 1)) != 0) return;
    if (count_ == capacity_) {
      for (std::int64_t k = 0; 2 * k < count_; ++k) values_[k] = values_[2 * k];
      count_ = (count_ + 1) / 2;
      stride_ *= 2;
      if ((iteration & (stride_ - 1)) != 0) return;
    }
    values_[count_++] = square;
  }
  CPUFREE_KERNEL_FN std::int64_t count() const { return count_; }
  CPUFREE_KERNEL_FN std::int64_t stride() const { return stride_; }

 private:
  double* values_;
  std::int64_t capacity_;
  std::int64_t count_ = 0;
  std::int64_t stride_ = 1;  // a power of two
};

}  // namespace cpufree
