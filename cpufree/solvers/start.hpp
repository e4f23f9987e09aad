// What all methods share: the initial residual, the true residual, the end.
#pragma once

#include "cpufree/solvers/context.hpp"
#include "cpufree/solvers/stopping.hpp"

namespace cpufree {

// Square of the norm of b - A x over all PEs; r becomes b - A x if `keep`. x travels in a scratch
// vector.
template <class Ctx>
CPUFREE_KERNEL_FN bool true_residual(Ctx& c, bool keep, double& rr) {
  using T = typename Ctx::T;
  using L = Lanes<typename Ctx::PortType>;
  const auto& v = c.vectors;
  L sums[1];
  const T* const copy = c.exchange_scratch([&](std::int32_t i, int) { return v.x[i]; });
  const bool here = c.multiply(copy, [&](std::int32_t i, int lane, T ax) {
    const T r = v.b[i] - ax;
    if (keep) v.r[i] = r;
    sums[0][lane] += static_cast<double>(r) * r;
  });
  double total[1];
  if (!here || !c.sum(sums, total)) return false;
  rr = total[0];
  return true;
}

// r = b - A x and the monitor's start.
template <class Ctx>
CPUFREE_KERNEL_FN bool begin_solve(Ctx& c, Monitor& monitor) {
  using L = Lanes<typename Ctx::PortType>;
  const auto& v = c.vectors;
  double rr = 0.0;
  if (c.args.params.has_guess && !true_residual(c, true, rr)) return false;
  L sums[1];
  c.rows([&](std::int32_t i, int lane) {
    if (!c.args.params.has_guess) v.r[i] = v.b[i];
    sums[0][lane] += static_cast<double>(v.b[i]) * v.b[i];
  });
  double bb[1];
  if (!c.sum(sums, bb)) return false;
  monitor.begin(bb[0], c.args.params.has_guess ? rr : bb[0]);
  if (bb[0] == 0.0) {  // the answer is 0, whatever the guess
    c.rows([&](std::int32_t i, int) { v.x[i] = 0; });
    monitor.begin(0.0, 0.0);
  }
  return true;
}

// The monitor's judgement of b - A x. `honest`: the recurrence had told the truth, and r is as it
// was; otherwise, or if `replace`, r = b - A x. A second product is cheaper than a vector kept for
// this.
template <class Ctx>
CPUFREE_KERNEL_FN bool verify(Ctx& c, Monitor& monitor, bool replace, bool& honest) {
  double rr = 0.0;
  if (!true_residual(c, replace, rr)) return false;
  honest = monitor.verify(rr, replace);
  return honest || replace || true_residual(c, true, rr);
}

// After the last iteration: the true residual, if it is not known yet.
template <class Ctx>
CPUFREE_KERNEL_FN bool end_solve(Ctx& c, Monitor& monitor) {
  if (monitor.verified()) return true;
  double rr = 0.0;
  if (!true_residual(c, false, rr)) return false;
  monitor.record_truth(rr);
  return true;
}

// The speaker's notes to the host.
class Reporter {
 public:
  CPUFREE_KERNEL_FN Reporter(double* history, std::int64_t capacity, bool speaks)
      : history_(history, capacity), speaks_(speaks) {}
  template <class Ctx>
  CPUFREE_KERNEL_FN void tell(Ctx& c, const Monitor& monitor) {
    if (!speaks_) return;
    history_.add(monitor.iterations(), monitor.residual());
    c.port().report(monitor.iterations(), monitor.residual());
  }
  CPUFREE_KERNEL_FN const History& history() const { return history_; }
  CPUFREE_KERNEL_FN bool speaks() const { return speaks_; }

 private:
  History history_;
  bool speaks_;
};

}  // namespace cpufree
