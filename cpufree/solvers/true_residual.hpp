// The true residual b - A x: at the start, to verify, and at the end.
#pragma once

#include "cpufree/solvers/context.hpp"
#include "cpufree/solvers/report.hpp"

namespace cpufree {

// What a cold (out of line) function returns: the state of its context, to be taken over; a number;
// and whether all waits were met.
template <class Ctx>
struct ColdResult {
  typename Ctx::State after;
  double value = 0.0;
  bool met = true;
};

// What becomes of b - A x besides its norm: nothing; r, from sums in working precision, as
// textbooks have it; r, as accurate as it is.
enum class Keep { nothing, plain, accurate };

// true_residual, out of line. What is computed is the residual of this very x, up to some
// roundings of its own (accurate_sum.hpp).
template <class Ctx>
CPUFREE_COLD_FN ColdResult<Ctx> true_residual_cold(typename Ctx::PortType port,
                                                   const typename Ctx::Args& args,
                                                   const typename Ctx::Share& share,
                                                   const BlockVectors<typename Ctx::T>& v,
                                                   typename Ctx::State before, Keep keep) {
  using T = typename Ctx::T;
  Ctx c(port, args, share, v, before);
  using L = Lanes<typename Ctx::PortType>;
  L sums[1];
  const Ghosted<T> copy = c.exchange_scratch([&](Row i, int) { return v.x[i]; });
  const bool multiplied = c.multiply_cold(copy, [&](Row i, int lane, AccurateSum<T> ax) {
    const double r = ax.below(v.b[i]);
    if (keep == Keep::accurate) v.r[i] = static_cast<T>(r);
    if (keep == Keep::plain) v.r[i] = v.b[i] - ax.plain();
    sums[0][lane] += r * r;
  });
  double total[1] = {};
  const bool met = multiplied && c.sum(sums, total);
  return {c.state(), total[0], met};
}

// Square of the norm of b - A x over all PEs. x travels in a scratch vector.
template <class Ctx>
CPUFREE_KERNEL_FN bool true_residual(Ctx& c, Keep keep, double& rr) {
  const auto answer =
      true_residual_cold<Ctx>(c.port(), c.args, c.share(), c.vectors, c.state(), keep);
  c.go_on_from(answer.after);
  rr = answer.value;
  return answer.met;
}

// r = b - A x and the monitor's start.
template <class Ctx>
CPUFREE_KERNEL_FN bool begin_solve(Ctx& c, MonitorOf<Ctx>& monitor, Reporter& reporter) {
  using L = Lanes<typename Ctx::PortType>;
  const auto& v = c.vectors;
  double rr = 0.0;
  if (c.args.params.has_guess && !true_residual(c, Keep::plain, rr)) return false;
  L sums[1];
  c.rows([&](Row i, int lane) {
    if (!c.args.params.has_guess) v.r[i] = v.b[i];
    sums[0][lane] += static_cast<double>(v.b[i]) * v.b[i];
  });
  double bb[1];
  if (!c.sum(sums, bb)) return false;
  const bool zero = bb[0] == 0.0;  // then x = 0, whatever the guess
  if (zero) c.rows([&](Row i, int) { v.x[i] = 0; });
  c.once([&] {
    monitor.begin(bb[0], c.args.params.has_guess && !zero ? rr : bb[0]);
    reporter.report(c, monitor);
  });
  return true;
}

// Computes b - A x for the monitor. `accurate`: the recurrence's residual was near it. r becomes
// b - A x where it was not, as accurate as can be, and where `keep` says so; a second product for
// that is cheaper than a vector that keeps the first. False: a wait gave up.
template <class Ctx>
CPUFREE_KERNEL_FN bool verify(Ctx& c, MonitorOf<Ctx>& monitor, Keep keep, bool& accurate) {
  double rr = 0.0;
  if (!true_residual(c, keep, rr)) return false;
  c.once([&] { monitor.verify(rr, keep != Keep::nothing); });
  accurate = monitor.accurate();
  return accurate || keep == Keep::accurate || true_residual(c, Keep::accurate, rr);
}

// After the last iteration: the true residual, if it is not known yet.
template <class Ctx>
CPUFREE_KERNEL_FN bool end_solve(Ctx& c, Monitor& monitor) {
  if (monitor.verified()) return true;
  double rr = 0.0;
  if (!true_residual(c, Keep::nothing, rr)) return false;
  c.once([&] { monitor.record_true_residual(rr); });
  return true;
}

}  // namespace cpufree
