// The loop that all methods share: when the residual is judged, what follows where it may meet the
// stopping rule, when a method restarts, what the host hears.
//
// A method (cg.hpp, prcg.hpp, pipelined_cg.hpp) is its recurrences and nothing else:
//
//   kReductions                all-reduces of an iteration
//   advance(start, meanwhile)  one iteration, up to ||r||^2 and the coefficients of the next step.
//                              `start` other than Start::no: no step is taken, the vectors are set
//                              from r = b - A x. meanwhile() is called by one thread, while sums
//                              travel. False: a wait gave up.
//   square()                   ||r||^2
//   measure()                  r . M r
//   has_step()                 whether the coefficients are a step, as fast arithmetic finds
//   recompute(start)           the coefficients by true divisions
//   check(monitor, start)      what the coefficients say about A and M; by one thread
//   settle()                   x as far as r
//
// All threads of all PEs have the same numbers, from the same all-reduces, so that all take the
// same way without asking one another.
//
// Deferred decisions. To judge an iteration takes one thread and two barriers. While the residual
// is far from every threshold, every thread sees for itself that the iteration goes on
// (Monitor::needs_no_decision), and one thread counts it while the sums of the next one travel.
#pragma once

#include "cpufree/solvers/true_residual.hpp"

namespace cpufree {

// How an iteration starts.
enum class Start {
  no,        // it goes on
  replaced,  // r = b - A x replaces the recurrence's r; directions are kept
  anew       // all is set from r = b - A x
};

enum class Ending { done, gave_up, lost };

// What the block knows of the iterations ahead and of the last one. Held by the block.
class Decision {
 public:
  CPUFREE_KERNEL_FN Verdict verdict() const { return verdict_; }
  // By one thread: the verdict, and how many iterations may go on without one: until `limit` have
  // been done, `reductions` all-reduces each.
  template <class Ctx>
  CPUFREE_KERNEL_FN void set(const Ctx& c, const Monitor& monitor, Verdict verdict,
                             std::int64_t limit, int reductions) {
    constexpr std::int64_t kMany = std::int64_t{1} << 48;
    const std::int64_t left = limit - monitor.iterations();
    verdict_ = monitor.done() ? Verdict::stop : verdict;
    deferred_until_ = c.reductions() + reductions * (left < kMany ? left : kMany);
  }
  // Whether the iteration whose last all-reduce was the last one needs no decision.
  template <class Ctx>
  CPUFREE_KERNEL_FN bool deferred(const Ctx& c, const MonitorOf<Ctx>& monitor,
                                  double square) const {
    return c.reductions() < deferred_until_ && monitor.needs_no_decision(square, c.notes());
  }
  // It needs none: `square` is remembered, and counted by the same thread before the next barrier.
  template <class Ctx>
  CPUFREE_KERNEL_FN void defer(Ctx& c, double square) {
    if (c.port().bookkeeper()) square_ = square;
  }
  template <class Ctx>
  CPUFREE_KERNEL_FN void count(Ctx& c, Monitor& monitor, Reporter& reporter) const {
    monitor.count(square_);
    reporter.report(c, monitor);
  }

 private:
  Verdict verdict_ = Verdict::go_on;
  std::int64_t deferred_until_ = 0;  // number of an all-reduce
  double square_ = 0.0;
};

// Iterates from r = b - A x to the end; the monitor holds the reason. lost: the method, one that
// does not restart, has lost touch with b - A x, which r is again.
template <class Ctx, class Method>
CPUFREE_HOT_FN Ending iterate(Ctx& c, Method& method, MonitorOf<Ctx>& monitor, Reporter& reporter) {
  using Held = typename Ctx::PortType::template Held<Decision>;
  Held decision = c.port().hold(Decision());
  const auto decide = [&](Verdict verdict, Start start) {
    if (verdict == Verdict::go_on) verdict = method.check(monitor, start);
    decision.set(c, monitor, verdict, method.limit(monitor), Method::kReductions);
  };
  Start start = Start::anew;
  bool deferred = false;
  while (true) {
    const bool counts = deferred;
    if (!method.advance(start, [&] {
          if (counts) decision.count(c, monitor, reporter);
        }))
      return Ending::gave_up;
    deferred =
        start == Start::no && method.has_step() && decision.deferred(c, monitor, method.square());
    if (deferred) {
      decision.defer(c, method.square());
      continue;
    }
    method.recompute(start);
    c.once_more([&] {  // after all threads have asked whether the iteration is deferred
      Verdict verdict = Verdict::go_on;
      if (start == Start::anew) monitor.begin_measure(method.measure());
      if (start == Start::no && method.took_step()) {
        verdict = monitor.judge(method.square(), c.notes(), method.measure());
        reporter.report(c, monitor);
      }
      decide(verdict, start);
    });
    start = Start::no;
    if (decision.verdict() == Verdict::go_on) continue;
    method.settle();
    while (decision.verdict() != Verdict::go_on) {
      if (decision.verdict() == Verdict::stop) return Ending::done;
      const Verdict asked = decision.verdict();
      bool accurate = true;
      const Keep keep = asked == Verdict::verify    ? Keep::nothing
                        : asked == Verdict::replace ? Keep::plain
                                                    : Keep::accurate;
      if (!verify(c, monitor, keep, accurate)) return Ending::gave_up;
      if (monitor.done()) return Ending::done;
      if (!accurate || asked == Verdict::restart) {
        if constexpr (!Method::kRestarts) return Ending::lost;
        start = Start::anew;
        break;
      }
      if (asked == Verdict::replace) {
        start = Start::replaced;
        break;
      }
      c.once_more([&] { decide(Verdict::go_on, Start::no); });
    }
  }
}

// What methods have in common.
template <class Ctx, class M>
class Recurrence {
 public:
  using T = typename Ctx::T;
  using P = typename Ctx::PortType;
  using Sums = Lanes<P>;
  using Monitor = MonitorOf<Ctx>;

  static constexpr bool kRestarts = true;  // from r = b - A x, where r had been inaccurate

  CPUFREE_KERNEL_FN Recurrence(Ctx& c, const M& m) : c_(c), m_(m), v_(c.vectors) {}

  CPUFREE_KERNEL_FN static constexpr bool took_step() { return true; }
  CPUFREE_KERNEL_FN static void settle() {}
  // The last iteration without a decision.
  CPUFREE_KERNEL_FN std::int64_t limit(const Monitor&) const { return c_.args.params.maxiter; }

 protected:
  Ctx& c_;
  const M& m_;
  const BlockVectors<T>& v_;
};

}  // namespace cpufree
