// The loop that all methods share: when the residual is judged, what follows where it may meet the
// stopping rule, when a method restarts, what the host hears.
//
// After an iteration each column has a verdict (monitor.hpp, and the method's `check`):
//
//   verdict   why                                   what follows
//   go_on     far from the end                      the next step
//   verify    r may meet the stopping rule          x as far as r; b - A x, and with it
//                                                   stop, or go_on where r was near it,
//                                                   or restart
//   replace   the method wants it                   r = b - A x, in working precision; an iteration
//                                                   that starts as `replaced`
//   restart   r has lost touch with b - A x,        r = b - A x, as accurate as it is; an iteration
//             or the recurrence broke down          that starts `anew`; of a method that does not
//                                                   restart, `lost`
//   stop      the monitor has a reason              the end; of several columns, that of this one
//
// A method (cg.hpp, prcg.hpp, pipelined_cg.hpp) is its recurrences and nothing else:
//
//   kReductions                all-reduces of an iteration
//   advance(start, meanwhile)  one iteration, up to ||r||^2 and the coefficients of the next step.
//                              `start` other than Start::no: no step is taken, the vectors are set
//                              from r = b - A x. meanwhile() is called by one thread, while sums
//                              travel. False: a wait gave up.
//   square(k)                  ||r||^2 of column k
//   measure(k)                 r . M r
//   took_step(k)               whether the last iteration was a step
//   has_step(k)                whether the coefficients are a step, as fast arithmetic finds
//   recompute(k, start)        the coefficients by true divisions
//   check(k, monitor, start)   what the coefficients say about A and M
//   settle()                   x as far as r
//   prepare()                  what the next step needs besides, after an iteration that was
//   judged.
//                              False: a wait gave up.
//
// What a method needs of its preconditioner M is one of the verbs of preconditioners.hpp.
//
// All threads of all PEs have the same numbers, from the same all-reduces, so that all take the
// same way without asking one another.
//
// Columns that have ended. Others go on, and loops have no conditions for columns: so the vectors
// p, r and s of an ended column become +0, its beta +0 and its alpha -0 (Method::freeze). Then
// A p = 0, r - alpha s = 0, p = M r + beta p = 0, and x + alpha p = x + (-0) = x to the last bit,
// whatever x is. No NaN of a column comes into another one: no verb combines two of them. A method
// whose columns share directions (`kCoupled`) keeps its vectors, freezes by its coefficients alone,
// and restarts in all columns that go on where it restarts in one.
#pragma once

#include "cpufree/solvers/true_residual.hpp"

namespace cpufree {

enum class Ending { done, gave_up, lost };

// Ends the columns that stop. False: none is left.
template <class Ctx, class Method>
CPUFREE_KERNEL_FN bool end_columns(Ctx& c, Method& method, Monitors<Ctx>& monitors) {
  if constexpr (Ctx::kColumns == 1) {
    return !monitors.all_stop();
  } else {
    using Values = typename Ctx::Values;
    const ColumnMask ended = monitors.which(Verdict::stop);
    const bool left = !monitors.all_stop();
    if (!ended.any()) return left;
    const auto& v = c.vectors;
    if constexpr (!Method::kCoupled)
      c.rows([&](Row i, int) {
        v.p.set(i, select(ended, Values{}, v.p[i]));
        v.r[i] = select(ended, Values{}, v.r[i]);
        v.s[i] = select(ended, Values{}, v.s[i]);
      });
    c.port().sync_block();  // all threads have asked who ends
    c.each_column([&](int k) {
      if (!ended.has(k)) return;
      method.freeze(k);
      monitors.end(k);
    });
    return left;
  }
}

// What the verdicts of an iteration ask for, until all columns go on or start; `start` says which.
// False: the loop ends as `ending` says.
template <class Ctx, class Method>
CPUFREE_KERNEL_FN bool follow(Ctx& c, Method& method, Monitors<Ctx>& monitors, Start& start,
                              Ending& ending) {
  while (true) {
    ending = Ending::done;
    if (!end_columns(c, method, monitors)) return false;
    if (monitors.all_go_on()) return true;
    ending = Ending::gave_up;
    if (!verify(c, method, monitors)) return false;
    start = monitors.next_start();
    ending = Ending::lost;
    if (start == Start::anew && !Method::kRestarts) return false;
    if (start != Start::no) return true;
  }
}

// Iterates from r = b - A x to the end; the monitors hold the reasons. lost: the method, one that
// does not restart, has lost touch with b - A x, which r is again.
template <class Ctx, class Method>
CPUFREE_HOT_FN Ending iterate(Ctx& c, Method& method, Monitors<Ctx>& monitors) {
  constexpr bool kSingle = Ctx::kColumns == 1;
  Start start = Start::anew;
  bool deferred = false;
  const auto needs_no_decision = [&](int k) {
    return start == Start::no && method.has_step(k) &&
           monitors.needs_no_decision(c, k, method.square(k));
  };
  while (true) {
    if constexpr (TracingPort<typename Ctx::PortType>) c.port().begin_turn(1);
    const bool counts = deferred;
    if (!method.advance(start, [&] {
          if (counts) monitors.count_deferred(c);
        }))
      return Ending::gave_up;
    if constexpr (kSingle) {
      deferred = needs_no_decision(0);
      if (deferred) {
        monitors.defer(c, method.square(0));
        continue;
      }
      method.recompute(0, start);
      c.port().sync_block();  // all threads have asked whether the iteration is deferred
    }
    c.each_column([&](int k) {
      if constexpr (!kSingle) {
        if (!monitors.runs(k) || (start != Start::no && !monitors.starts(k))) return;
        if (needs_no_decision(k)) return monitors.count(c, k, method.square(k));
        method.recompute(k, start);
      }
      monitors.judge(c, k, method, start);
    });
    monitors.report(c);
    start = Start::no;
    if (!monitors.all_go_on()) {
      method.settle();
      Ending ending = Ending::done;
      if (!follow(c, method, monitors, start, ending)) return ending;
    }
    if (start == Start::no && !method.prepare()) return Ending::gave_up;
  }
}

// What methods have in common.
template <class Ctx, class M>
class Recurrence {
 public:
  using T = typename Ctx::T;
  using Values = typename Ctx::Values;
  using Sums = typename Ctx::Sums;
  using Totals = typename Ctx::Totals;
  using Monitor = typename Ctx::Monitor;

  static constexpr bool kRestarts = true;  // from r = b - A x, where r had been inaccurate
  static constexpr bool kCoupled = false;  // p, r and s of a column are that column's alone

  CPUFREE_KERNEL_FN Recurrence(Ctx& c, const M& m, const Monitors<Ctx>& monitors)
      : c_(c), m_(m), v_(c.vectors), monitors_(monitors) {}

  CPUFREE_KERNEL_FN static constexpr bool took_step(int) { return true; }
  CPUFREE_KERNEL_FN static void settle() {}
  CPUFREE_KERNEL_FN static bool prepare() { return true; }
  // The last iteration without a decision.
  CPUFREE_KERNEL_FN std::int64_t limit(const Monitor&) const { return c_.args.params.maxiter; }

 protected:
  Ctx& c_;
  const M& m_;
  const typename Ctx::BlockVectors& v_;
  const Monitors<Ctx>& monitors_;
};

}  // namespace cpufree
