// The stopping rule, and what ends a solve otherwise. Every block holds a Monitor; all are fed the
// same reduced numbers and so take the same decisions. Every iteration compares squares: a square
// root or a division of doubles costs a GPU as much as a row of the matrix.
//
// Stopping rule (SciPy's): ||r|| <= max(rtol ||b||, atol). The residual r of the recurrence may be
// smaller than the true residual b - A x. Where r meets the rule, the solver therefore computes
// b - A x and tests that ("verify"). If it is still too large, and
//   - r is accurate within a factor of two, the recurrence goes on unchanged, and the true residual
//     is computed again when r has become smaller in proportion;
//   - r is less accurate, the method restarts from the true residual. It must not keep the old
//     direction, with which CG converges slowly for good (Powell 1976, "Some convergence properties
//     of the conjugate gradient method", Math. Program. 11).
// If the true residual does not halve over several verifications, rounding errors hold it where it
// is: stagnated. The sums of b - A x are as if in twice the precision (accurate_sum.hpp), so that
// their own rounding decides nothing.
//
// Where products are with a rounded A (Context::kRounded), r loses touch with b - A x with every
// step. There b - A x is computed whenever r has fallen to a tenth, and takes its place, while
// directions are kept: the iteration is one of A that is disturbed a little, and takes some per
// cent more steps. Restarts instead, which throw away what CG has learnt, took up to half as many
// again (docs/solving/precision.md).
//
// Divergence. CG reduces the energy norm of the error. By it sqrt(r . M r) may grow by no more than
// the square root of the condition number of M A, which no system has above 1e10 that can be
// solved; ||r|| may grow by that of A, which scales of the unknowns make as large as they like. So
// the measure of divergence is r . M r. Only where ||r|| has grown is it looked at: recurrences
// that grow without end have all norms grow.
#pragma once

#include <cmath>

#include "cpufree/solvers/args.hpp"

namespace cpufree {

CPUFREE_KERNEL_FN bool is_finite(double v) { return v - v == 0.0; }

// What comes after an iteration.
enum class Verdict {
  go_on,
  verify,   // compute b - A x: the stopping rule may be met
  replace,  // the method wants r and all that depends on it computed again
  restart,  // the recurrence broke down: start from r = b - A x
  stop      // Monitor::reason says why
};

class Monitor {
 public:
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
  // The last iteration after which b - A x replaced r; 0: none.
  CPUFREE_KERNEL_FN std::int64_t replaced_at() const { return replaced_at_; }
  CPUFREE_KERNEL_FN void stop(Reason reason) { reason_ = reason; }

  // The start: squares of the norms of b and of the (true) initial residual; the absolute
  // tolerance; how many rows there are, 0 if it does not matter.
  CPUFREE_KERNEL_FN void begin(double bb, double rr, double atol = 0.0, double rows = 0.0) {
    bnorm_ = std::sqrt(bb);
    rows_ = rows;
    square_ = smallest_ = rated_ = rr;
    true_residual_ = best_ = std::sqrt(rr);
    verified_ = true;
    target_ = larger(params_.rtol * bnorm_, atol);
    trigger_ = squared(larger(target_, params_.roundoff * bnorm_));
    level_ = squared(1e3 * params_.roundoff * bnorm_);
    bound_ = squared(kDivergence * larger(true_residual_, bnorm_));
    measure_ = rr;
    growth_ = squared(kDivergence * larger(1.0, bnorm_ / true_residual_));
    set_decision_level();
    if (!is_finite(bb) || !is_finite(rr))
      stop(Reason::diverged_nanorinf);
    else if (bb == 0.0 || true_residual_ <= target_)
      stop(met());
    else if (params_.maxiter <= 0)
      stop(Reason::diverged_its);
  }

  // b - A x is wanted whenever r has fallen to a tenth.
  CPUFREE_KERNEL_FN void verify_early() {
    trigger_ = squared(larger(target_, kEarly * true_residual_));
    set_decision_level();
  }

  // Where the first iteration starts: r . M r, from which growth counts.
  CPUFREE_KERNEL_FN void begin_measure(double measure) {
    if (iterations_ == 0) measure_ = measure;
  }

  // Whether `judge` would return go_on, the limit of iterations aside. Any thread may ask, also
  // while one thread counts the iteration before (`count`), which changes nothing that this reads.
  // A NaN needs a decision.
  CPUFREE_KERNEL_FN bool needs_no_decision(double rr, unsigned notes) const {
    return rr > decide_below_ && rr <= bound_ && notes == 0U;
  }
  // Counts an iteration that needs no decision.
  CPUFREE_KERNEL_FN void count(double rr) {
    ++iterations_;
    square_ = rr;
    verified_ = false;
    smallest_ = rr < smallest_ ? rr : smallest_;
  }

  // After an iteration: square of the norm of the recurrence's residual, the host's notes, and
  // r . M r.
  CPUFREE_KERNEL_FN Verdict judge(double rr, unsigned notes, double measure) {
    count(rr);
    const bool grew = rr > bound_ && is_finite(rr);
    const bool diverged = grew && !(measure <= growth_ * measure_);
    if (grew && !diverged) bound_ = 1e4 * rr;  // asked again when it has grown further
    set_decision_level();
    if (!is_finite(rr))
      stop(Reason::diverged_nanorinf);
    else if (rr <= trigger_ || diverges())
      return Verdict::verify;
    else if (diverged)
      stop(Reason::diverged_dtol);
    else
      return within_limits(notes);
    return Verdict::stop;
  }

  // After b - A x was computed, with the square of its norm. Returns, as `accurate` does, whether
  // the recurrence's residual was near it. If not, or if `replaced`, r is b - A x from now on.
  // `early`: it was wanted by the rules of verify_early().
  CPUFREE_KERNEL_FN bool verify(double rr, bool replaced, bool early = false) {
    const double recursive = residual();
    const bool judged = !replaced || early;  // else it is the method that wants it
    const bool met_rule = judged && recursive <= target_;
    true_residual_ = std::sqrt(rr);
    verified_ = true;
    accurate_ = true_residual_ <= 2.0 * recursive && !diverges();
    smallest_ = rr;
    if (replaced || !accurate_) {
      square_ = rr;
      note_replacement();
    }
    if (true_residual_ <= 0.5 * best_) {
      best_ = true_residual_;
      failures_ = 0;
      halved_at_ = iterations_;
      gain_when_halved_ = gain_;
    } else if (!accurate_) {
      ++failures_;
    }
    if (met_rule && accurate_)  // shrinks each time, until the rule is met or r is inaccurate
      trigger_ = squared(0.9 * target_ * (recursive / true_residual_));
    else if (judged || !accurate_)
      trigger_ = squared(larger(target_, kEarly * true_residual_));
    set_decision_level();
    if (!is_finite(rr)) {
      stop(Reason::diverged_nanorinf);
    } else if (true_residual_ <= target_) {
      stop(met());
    } else if (failures_ >= kMaxFailures) {
      stop(Reason::stagnated);
    } else if (iterations_ >= params_.maxiter) {
      stop(Reason::diverged_its);
    }
    return accurate_;
  }
  CPUFREE_KERNEL_FN bool accurate() const { return accurate_; }
  // Whether true residuals still fall.
  CPUFREE_KERNEL_FN bool falls() const { return failures_ == 0; }

  // b - A x of a solve that ended for another reason, square of its norm.
  CPUFREE_KERNEL_FN void record_true_residual(double rr) {
    true_residual_ = std::sqrt(rr);
    verified_ = true;
  }

  // The same norm, rows divided by their entries of the diagonal, over that of b so divided;
  // squared.
  CPUFREE_KERNEL_FN void record_weighted(double square) { weighted_ = std::sqrt(square); }
  CPUFREE_KERNEL_FN double weighted_residual() const { return weighted_; }

  // Whether numbers of which `sound` is said are a step.
  CPUFREE_KERNEL_FN static bool is_step(bool sound) { return sound; }
  // A step length that overflows, out of sums that do not. False: stop.
  CPUFREE_KERNEL_FN bool usable(double alpha) {
    if (!is_finite(alpha)) stop(Reason::diverged_breakdown);
    return !done();
  }

  // pipecg: the next step reduces the square of the error's energy norm by `gain`, and those since
  // the last call are taken to have done the same.
  CPUFREE_KERNEL_FN void note_gain(double gain) {
    const std::int64_t steps = iterations_ - gained_at_;
    gain_ += gain * static_cast<double>(steps > 0 ? steps : 1);
    gained_at_ = iterations_;
  }
  // Whether, at the rate since the last call, it takes more than three times as many iterations as
  // there are rows to the stopping rule, or to rounding errors. Exact recurrences would take as
  // many as rows at most; before that, rates say little.
  CPUFREE_KERNEL_FN bool runs_late() {
    const double done = static_cast<double>(iterations_);
    const double steps = static_cast<double>(iterations_ - rated_at_);
    const double gained = std::log(rated_ / square_);
    const double least = squared(larger(target_, params_.roundoff * bnorm_));
    const double left = std::log(square_ / least);
    rated_ = square_;
    rated_at_ = iterations_;
    return done >= rows_ && left > 0.0 && !(left * steps < gained * (3.0 * rows_ - done));
  }
  // Whether the recurrences get nowhere: the residual has not halved for N iterations at the
  // level of rounding errors, or for twice as many, and as many as it took to get here; and x has
  // moved little. A residual alone may stay where it is, or grow, while x gets better. What a bad
  // guess has x move at first says nothing of how far it has to go.
  CPUFREE_KERNEL_FN bool stalled(std::int64_t iterations) const {
    constexpr double kLittle = 1e-4;  // of all that x has gained
    const std::int64_t since = iterations_ - halved_at_;
    if (since < iterations || square_ <= squared(0.5 * best_) ||
        gain_ - gain_when_halved_ > kLittle * gain_)
      return false;
    return squared(best_) <= level_ ||
           (!params_.has_guess && since >= 2 * iterations && since >= halved_at_);
  }

  // At the start of a recurrence: whether a number that is `square` now, and shrinks as the square
  // of the residual does, stays in the range of doubles.
  CPUFREE_KERNEL_FN bool in_range(double square) const {
    constexpr double kLeast = 2.2250738585072014e-308;  // with all digits
    const double last = trigger_ < square_ ? trigger_ : square_;
    return is_finite(square) && square * last >= kLeast * square_;
  }

  // Signs that A, or the preconditioner, is not positive definite. False: stop.
  CPUFREE_KERNEL_FN bool positive(double value, Reason otherwise) {
    if (value > 0.0 && is_finite(value)) return true;
    stop(is_finite(value) ? otherwise : Reason::diverged_nanorinf);
    return false;
  }

 protected:
  // Whether iterations are left and the host wants more of them.
  CPUFREE_KERNEL_FN Verdict within_limits(unsigned notes) {
    if (iterations_ >= params_.maxiter)
      stop(Reason::diverged_its);
    else if ((notes & kNoteInterrupt) != 0U)
      stop(Reason::interrupted);
    else if ((notes & kNoteTimeLimit) != 0U)
      stop(Reason::time_limit);
    return done() ? Verdict::stop : Verdict::go_on;
  }

  CPUFREE_KERNEL_FN void note_replacement() {
    ++replacements_;
    replaced_at_ = iterations_;
  }

 private:
  static constexpr int kMaxFailures = 3;
  static constexpr double kDivergence = 1e10;
  static constexpr double kEarly = 0.1;

  // Below the level of rounding errors a recurrence may grow without end, from a good x.
  CPUFREE_KERNEL_FN bool diverges() const {
    return square_ > 1e4 * smallest_ && smallest_ <= level_;
  }

  // Iterations with a smaller square of the residual need a decision: there `judge` may ask for
  // b - A x. Once at the level of rounding errors, all iterations need one.
  CPUFREE_KERNEL_FN void set_decision_level() {
    decide_below_ = smallest_ <= level_ ? bound_ : larger(trigger_, level_);
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
  std::int64_t replaced_at_ = 0;
  std::int64_t handed_over_at_ = -1;
  double bnorm_ = 0.0;
  double true_residual_ = 0.0;
  double weighted_ = 0.0;
  double best_ = 0.0;  // smallest true residual, in steps of one half
  int failures_ = 0;   // inaccurate residuals since then
  std::int64_t halved_at_ = 0;
  std::int64_t gained_at_ = 0;  // of pipecg alone:
  double gain_ = 0.0;           // in the square of the error's energy norm
  double gain_when_halved_ = 0.0;
  std::int64_t rated_at_ = 0;  // when the rate was last asked for
  double rated_ = 0.0;         // square of the residual then
  double rows_ = 0.0;
  double target_ = 0.0;  // the rule
  // Squares:
  double square_ = 0.0;        // the recurrence's residual
  double smallest_ = 0.0;      // since its start
  double trigger_ = 0.0;       // where to compute b - A x: at the rule, or before it after failures
  double level_ = 0.0;         // of rounding errors
  double decide_below_ = 0.0;  // at most this: a decision is needed
  double bound_ = 0.0;         // beyond this, divergence is judged
  double measure_ = 0.0;       // r . M r at the start
  double growth_ = 0.0;  // of it that is divergence; a good guess leaves as much room as a bad one
  bool verified_ = false;
  bool accurate_ = true;
};

}  // namespace cpufree
