// What all methods share: the initial residual, the true residual, the end.
#pragma once

#include "cpufree/solvers/context.hpp"
#include "cpufree/solvers/stopping.hpp"

namespace cpufree {

// The answer of what is done out of line: the state in which to go on, a number, and whether all
// waits came to their end.
template <class Ctx>
struct Apart {
  typename Ctx::State after;
  double value = 0.0;
  bool here = true;
};

// True_residual, out of line.
template <class Ctx>
CPUFREE_COLD_FN Apart<Ctx> true_residual_apart(typename Ctx::PortType port,
                                               const typename Ctx::Args& args,
                                               const typename Ctx::Share& share,
                                               const BlockVectors<typename Ctx::T>& v,
                                               typename Ctx::State before, bool keep) {
  using T = typename Ctx::T;
  Ctx c(port, args, share, v, before);
  using L = Lanes<typename Ctx::PortType>;
  L sums[1];
  const Ghosted<T> copy = c.exchange_scratch([&](Row i, int) { return v.x[i]; });
  const bool here = c.multiply_rarely(copy, [&](Row i, int lane, T ax) {
    const T r = v.b[i] - ax;
    if (keep) v.r[i] = r;
    sums[0][lane] += static_cast<double>(r) * r;
  });
  double total[1] = {};
  const bool all_here = here && c.sum(sums, total);
  return {c.state(), total[0], all_here};
}

// Square of the norm of b - A x over all PEs; r becomes b - A x if `keep`. x travels in a scratch
// vector.
template <class Ctx>
CPUFREE_KERNEL_FN bool true_residual(Ctx& c, bool keep, double& rr) {
  const auto answer =
      true_residual_apart<Ctx>(c.port(), c.args, c.share(), c.vectors, c.state(), keep);
  c.go_on_from(answer.after);
  rr = answer.value;
  return answer.here;
}

// The speaker's notes to the host. Held by every block, used by one thread.
class Reporter {
 public:
  CPUFREE_KERNEL_FN Reporter(double* history, std::int64_t capacity, bool speaks)
      : history_(history, capacity), speaks_(speaks) {}
  template <class Ctx>
  CPUFREE_KERNEL_FN void tell(Ctx& c, const Monitor& monitor) {
    if (!speaks_) return;
    history_.add(monitor.iterations(), monitor.square());
    c.port().report(monitor.iterations(), monitor.square());
  }
  CPUFREE_KERNEL_FN const History& history() const { return history_; }
  CPUFREE_KERNEL_FN bool speaks() const { return speaks_; }

 private:
  History history_;
  bool speaks_;
};

// Quiet iterations (Monitor::quiet): no thread tells the others, each sees for itself, and the
// block's clerk notes them down while the sums of the next one travel. Held by every block.
class Books {
 public:
  // Iterations go on after this many of the monitor's and `reductions`, with `each` reductions an
  // iteration; they are quiet as long as fewer than `limit` have been. For one thread.
  CPUFREE_KERNEL_FN void open(std::int64_t iterations, std::int64_t reductions, std::int64_t limit,
                              int each) {
    constexpr std::int64_t kMany = std::int64_t{1} << 48;
    const std::int64_t more = limit - iterations < kMany ? limit - iterations : kMany;
    end_ = reductions + each * more;
  }
  // Whether the iteration at hand, of which `reductions` was the last one, is quiet.
  template <class Ctx>
  CPUFREE_KERNEL_FN bool quiet(const Ctx& c, const MonitorOf<Ctx>& monitor, double square) const {
    return c.reductions() < end_ && monitor.quiet(square, c.notes());
  }
  // It is: for the clerk to write down.
  template <class Ctx>
  CPUFREE_KERNEL_FN void note(Ctx& c, double square) {
    if (c.port().clerk()) square_ = square;
  }
  // By the clerk, for an iteration that was quiet, before a barrier that comes before the monitor's
  // next judgement.
  template <class Ctx, class R>
  CPUFREE_KERNEL_FN void write(Ctx& c, Monitor& monitor, R& reporter) {
    monitor.count(square_);
    reporter.tell(c, monitor);
  }

 private:
  std::int64_t end_ = 0;
  double square_ = 0.0;
};

// r = b - A x and the monitor's start.
template <class Ctx>
CPUFREE_KERNEL_FN bool begin_solve(Ctx& c, MonitorOf<Ctx>& monitor, Reporter& reporter) {
  using L = Lanes<typename Ctx::PortType>;
  const auto& v = c.vectors;
  double rr = 0.0;
  if (c.args.params.has_guess && !true_residual(c, true, rr)) return false;
  L sums[1];
  c.rows([&](Row i, int lane) {
    if (!c.args.params.has_guess) v.r[i] = v.b[i];
    sums[0][lane] += static_cast<double>(v.b[i]) * v.b[i];
  });
  double bb[1];
  if (!c.sum(sums, bb)) return false;
  const bool zero = bb[0] == 0.0;  // then the answer is 0, whatever the guess
  if (zero) c.rows([&](Row i, int) { v.x[i] = 0; });
  c.once([&] {
    monitor.begin(bb[0], c.args.params.has_guess && !zero ? rr : bb[0]);
    reporter.tell(c, monitor);
  });
  return true;
}

// The monitor's judgement of b - A x. `honest`: the recurrence had told the truth, and r is as it
// was; otherwise, or if `replace`, r = b - A x. A second product is cheaper than a vector kept for
// this.
template <class Ctx>
CPUFREE_KERNEL_FN bool verify(Ctx& c, MonitorOf<Ctx>& monitor, bool replace, bool& honest) {
  double rr = 0.0;
  if (!true_residual(c, replace, rr)) return false;
  c.once([&] { monitor.verify(rr, replace); });
  honest = monitor.honest();
  return honest || replace || true_residual(c, true, rr);
}

// After the last iteration: the true residual, if it is not known yet.
template <class Ctx>
CPUFREE_KERNEL_FN bool end_solve(Ctx& c, Monitor& monitor) {
  if (monitor.verified()) return true;
  double rr = 0.0;
  if (!true_residual(c, false, rr)) return false;
  c.once([&] { monitor.record_truth(rr); });
  return true;
}

}  // namespace cpufree
