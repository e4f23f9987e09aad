// The iterations of a block from the first to the last, whatever holds its tile; the looks at the
// updates, and at the host.
//
// A `Worker` holds the values of the block's tile:
//   steps(n)                   how many of the next n iterations it takes in one go: 1 to n;
//   advance(n, measured, c)    that many iterations; where measured, c gets the last one's changes;
//   send(), receive()          the exchange with the tiles around; receive() is false where the
//                              block is to leave the kernel.
#pragma once

#include <limits>

#include "cpufree/device/allreduce.hpp"
#include "cpufree/stencils/args.hpp"
#include "cpufree/stencils/change.hpp"

namespace cpufree {

// The looks at the updates, and at the host.
template <Port P>
class Checks {
 public:
  CPUFREE_KERNEL_FN Checks(P& port, Packet* slots, double tolerance)
      : port_(port), reduction_(port, slots), tolerance_(tolerance) {}

  CPUFREE_KERNEL_FN bool waits() const { return tolerance_ >= 0.0; }
  CPUFREE_KERNEL_FN StencilReason reason() const { return reason_; }
  CPUFREE_KERNEL_FN std::int64_t count() const {
    return static_cast<std::int64_t>(reduction_.epoch());
  }

  CPUFREE_KERNEL_FN void begin_turn(int iterations)
    requires TracingPort<P>
  {
    port_.begin_turn(iterations);
  }

  CPUFREE_KERNEL_FN void push(const Change<P>& change, std::int64_t iteration) {
    const double sums[2] = {change.above.sum(), change.squares.sum()};
    reduction_.push(sums);
    of_ = iteration;
  }

  // What the check that was pushed says. No-op where there is none. False: leave the kernel.
  CPUFREE_KERNEL_FN bool pull() {
    if (of_ < 0) return true;
    double total[2];
    unsigned notes = 0;
    if (!reduction_.pull(total, notes, false)) return false;
    if (port_.pe() == 0 && port_.block() == 0 && port_.lane() == 0)
      port_.report(of_, waits() ? total[1] : std::numeric_limits<double>::quiet_NaN());
    of_ = -1;
    if ((notes & kNoteInterrupt) != 0U) reason_ = StencilReason::interrupted;
    if ((notes & kNoteTimeLimit) != 0U) reason_ = StencilReason::time_limit;
    if (waits() && total[0] == 0.0) reason_ = StencilReason::converged;
    // Squares add up to NaN where a change is one; to infinity where it is merely large.
    if (waits() && total[1] != total[1]) reason_ = StencilReason::not_finite;
    return true;
  }

 private:
  P& port_;
  AllReduce<P> reduction_;
  double tolerance_;
  std::int64_t of_ = -1;  // the iteration of the check under way
  StencilReason reason_ = StencilReason::all_done;
};

// Where a run has got to.
struct JacobiState {
  std::int64_t iteration = 0;
  // The thread's largest update when last measured.
  double update = std::numeric_limits<double>::quiet_NaN();
};

// Iterates to the end. False: leave the kernel.
template <Port P, class T, class Worker>
CPUFREE_KERNEL_FN bool iterate(const JacobiArgs<T>& args, Worker& worker, Checks<P>& checks,
                               JacobiState& state) {
  std::int64_t next_check = 0;
  while (state.iteration < args.iterations) {
    if (state.iteration == next_check) next_check += args.check_every;
    const std::int64_t stop = next_check < args.iterations ? next_check : args.iterations;
    const std::int64_t left = stop - state.iteration;
    const std::int32_t steps =
        worker.steps(static_cast<std::int32_t>(left < args.layers ? left : args.layers));
    const bool check = steps == left;
    Change<P> change{args.tolerance, {}, {}, {}};
    const bool last = stop == args.iterations && check;
    const bool measured = last || (check && checks.waits());
    if constexpr (TracingPort<P>) checks.begin_turn(steps);
    worker.advance(steps, measured, change);
    state.iteration += steps;
    if (measured) state.update = change.most();
    if (last && !checks.waits()) return true;
    if (check && !checks.waits() && !checks.pull()) return false;  // of the check before
    if (checks.reason() != StencilReason::all_done) return true;
    if (check) checks.push(change, state.iteration);
    if (!last) worker.send();
    if (check && checks.waits() && !checks.pull()) return false;
    if (last || checks.reason() != StencilReason::all_done) return true;
    if (!worker.receive()) return false;
  }
  return true;
}

// Tells the host how the run has ended.
template <Port P, class T>
CPUFREE_KERNEL_FN void report_end(P& port, const JacobiArgs<T>& args, const JacobiState& state,
                                  const Checks<P>& checks, Epoch exchanges) {
  args.updates[port.block() * port.lanes() + port.lane()] = state.update;
  if (port.pe() != 0 || port.block() != 0 || port.lane() != 0) return;
  args.outcome->iterations = state.iteration;
  args.outcome->exchanges = static_cast<std::int64_t>(exchanges);
  args.outcome->checks = checks.count();
  args.outcome->reason = checks.reason();
  if (checks.waits() && checks.reason() == StencilReason::all_done)
    args.outcome->reason = StencilReason::not_converged;
}

}  // namespace cpufree
