// The monitors of all columns of a solve, their histories, and what has been decided of each.
//
// Held by the block. Thread k of it keeps the books of column k. All blocks have the same sums, and
// so come to the same decisions. What threads read here they read between the barrier after it was
// written (Context::each_column) and their part in the next all-reduce, which has a barrier before
// it is written again.
//
// Deferred decisions. To judge an iteration takes one thread and two barriers. While the residual
// of a single column is far from every threshold, every thread sees for itself that the iteration
// goes on (Monitor::needs_no_decision), and one thread counts it while the sums of the next one
// travel. Several columns have a barrier for their scalars anyway: there the thread that keeps a
// column asks, and counts at once.
#pragma once

#include <utility>

#include "cpufree/solvers/context.hpp"
#include "cpufree/solvers/monitor.hpp"

namespace cpufree {

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

// What becomes of b - A x besides its norm: nothing; r, from sums in working precision, as
// textbooks have it; r, as accurate as it is.
enum class Keep { nothing, plain, accurate };

// How an iteration starts.
enum class Start {
  no,        // it goes on
  replaced,  // r = b - A x replaces the recurrence's r; directions are kept
  anew       // all is set from r = b - A x; of several columns, in those that start
};

template <class Ctx>
class Monitors {
  static constexpr int K = Ctx::kColumns;

 public:
  using Monitor = typename Ctx::Monitor;

  template <class Args>
  CPUFREE_KERNEL_FN Monitors(const Args& args, bool reports)
      : Monitors(args, reports, std::make_integer_sequence<int, K>()) {}

  CPUFREE_KERNEL_FN const Monitor& operator[](int k) const { return monitor_[k]; }
  CPUFREE_KERNEL_FN Monitor& operator[](int k) { return monitor_[k]; }
  CPUFREE_KERNEL_FN const History& history(int k) const { return history_[k]; }

  // Whether column k runs; a single one does until the kernel leaves the loop.
  CPUFREE_KERNEL_FN bool runs(int k) const { return K == 1 || running_[k]; }
  // Whether it is one that starts, in an iteration that does.
  CPUFREE_KERNEL_FN bool starts(int k) const {
    return K == 1 || is(k, Verdict::restart) || (Ctx::kRounded && is(k, Verdict::replace));
  }
  CPUFREE_KERNEL_FN bool all_go_on() const {
    if constexpr (K == 1) return verdict_[0] == Verdict::go_on;
    return !columns_where<K>([&](int k) { return runs(k) && verdict_[k] != Verdict::go_on; }).any();
  }
  CPUFREE_KERNEL_FN bool all_stop() const {
    return !columns_where<K>([&](int k) { return runs(k) && verdict_[k] != Verdict::stop; }).any();
  }
  CPUFREE_KERNEL_FN ColumnMask which(Verdict asked) const {
    return columns_where<K>([&](int k) { return is(k, asked); });
  }
  // Columns that ask for b - A x, and what is to become of it.
  CPUFREE_KERNEL_FN ColumnMask asking() const {
    return columns_where<K>([&](int k) {
      return runs(k) && verdict_[k] != Verdict::go_on && verdict_[k] != Verdict::stop;
    });
  }
  CPUFREE_KERNEL_FN Keep wanted() const {
    if constexpr (Ctx::kRounded) return Keep::accurate;
    if (K > 1 || verdict_[0] == Verdict::verify) return Keep::nothing;
    return verdict_[0] == Verdict::replace ? Keep::plain : Keep::accurate;
  }
  // How the next iteration starts, once b - A x is known.
  CPUFREE_KERNEL_FN Start next_start() const {
    if (which(Verdict::restart).any()) return Start::anew;
    return which(Verdict::replace).any() ? Start::replaced : Start::no;
  }

  // All below but `needs_no_decision`, `defer` and `report` are called by the thread of column k.

  // The start: squares of the norms of b and of the initial residual, and the rows. Columns that
  // are not done by that start.
  CPUFREE_KERNEL_FN void begin(Ctx& c, int k, double bb, double rr, double rows) {
    monitor_[k].begin(bb, rr, c.args.atol[k], rows);
    verdict_[k] = monitor_[k].done() ? Verdict::stop : Verdict::restart;
    if constexpr (Ctx::kRounded) monitor_[k].verify_early();
    if constexpr (K > 1) {
      share_of_b_[k] = bb > 0.0 ? 1.0 / bb : 0.0;
      running_[k] = true;
    }
    note(c, k);
  }

  // Whether the iteration whose last all-reduce was the last one needs no decision in column k.
  CPUFREE_KERNEL_FN bool needs_no_decision(const Ctx& c, int k, double square) const {
    if constexpr (K == 1)
      return c.reductions() < deferred_until_ && monitor_[0].needs_no_decision(square, c.notes());
    else
      return monitor_[k].iterations() + 1 < c.args.params.maxiter &&
             monitor_[k].needs_no_decision(square, c.notes());
  }
  // It needs none: `square` is remembered, and counted by the same thread before the next barrier.
  CPUFREE_KERNEL_FN void defer(Ctx& c, double square) {
    if (c.port().bookkeeper()) square_ = square;
  }
  CPUFREE_KERNEL_FN void count_deferred(Ctx& c) { count(c, 0, square_); }
  CPUFREE_KERNEL_FN void count(Ctx& c, int k, double square) {
    monitor_[k].count(square);
    note(c, k);
  }

  // Judges the iteration that the method has just advanced, as `start` says.
  template <class Method>
  CPUFREE_KERNEL_FN void judge(Ctx& c, int k, const Method& method, Start start) {
    Verdict verdict = Verdict::go_on;
    if (start == Start::anew) monitor_[k].begin_measure(method.measure(k));
    if (start == Start::no && method.took_step(k)) {
      verdict = monitor_[k].judge(method.square(k), c.notes(), method.measure(k));
      note(c, k);
    }
    decide(c, k, method, verdict, start);
  }

  // b - A x is known, the square of its norm; `kept`: r is b - A x now.
  template <class Method>
  CPUFREE_KERNEL_FN void verify(Ctx& c, int k, const Method& method, double rr, bool kept) {
    const bool early = Ctx::kRounded && verdict_[k] != Verdict::restart;
    monitor_[k].verify(rr, kept, early);
    if (monitor_[k].done())
      verdict_[k] = Verdict::stop;
    else if (early && monitor_[k].falls())
      verdict_[k] = Verdict::replace;
    else if (!monitor_[k].accurate())
      verdict_[k] = Verdict::restart;
    else if (verdict_[k] == Verdict::verify)
      decide(c, k, method, Verdict::go_on, Start::no);
  }

  CPUFREE_KERNEL_FN void end(int k) { running_[k] = false; }
  // Has it start again unless it stops, as another column does.
  CPUFREE_KERNEL_FN void restart(int k) {
    if (verdict_[k] != Verdict::stop) verdict_[k] = Verdict::restart;
  }

  // Tells the host of the column that is farthest from its end; a single one tells as it counts.
  CPUFREE_KERNEL_FN void report(Ctx& c) const {
    if constexpr (K == 1) return;
    if (!c.reports() || c.port().lane() != 0) return;
    int slowest = 0;
    double most = -1.0;
    for (int k = 0; k < K; ++k) {
      const double part = runs(k) ? monitor_[k].square() * share_of_b_[k] : -1.0;
      if (part > most) most = part, slowest = k;
    }
    c.port().report(report_of_column(slowest, monitor_[slowest].iterations()),
                    monitor_[slowest].square());
  }

 private:
  template <class Args, int... k>
  CPUFREE_KERNEL_FN Monitors(const Args& args, bool reports, std::integer_sequence<int, k...>)
      : monitor_{(static_cast<void>(k), Monitor(args.params))...},
        history_{History(reports ? args.history + k * args.params.history_capacity : nullptr,
                         args.params.history_capacity)...} {}

  CPUFREE_KERNEL_FN bool is(int k, Verdict verdict) const {
    return runs(k) && verdict_[k] == verdict;
  }

  // The verdict, unless the method has another one; and how many iterations may go on without one.
  template <class Method>
  CPUFREE_KERNEL_FN void decide(Ctx& c, int k, const Method& method, Verdict verdict, Start start) {
    if (verdict == Verdict::go_on) verdict = method.check(k, monitor_[k], start);
    verdict_[k] = monitor_[k].done() ? Verdict::stop : verdict;
    if constexpr (K == 1) {
      constexpr std::int64_t kMany = std::int64_t{1} << 48;
      const std::int64_t left = method.limit(monitor_[0]) - monitor_[0].iterations();
      deferred_until_ = c.reductions() + Method::kReductions * (left < kMany ? left : kMany);
    }
  }

  CPUFREE_KERNEL_FN void note(Ctx& c, int k) {
    if (!c.reports()) return;
    history_[k].add(monitor_[k].iterations(), monitor_[k].square());
    if constexpr (K == 1) c.port().report(monitor_[0].iterations(), monitor_[0].square());
  }

  Monitor monitor_[K];
  History history_[K];
  Verdict verdict_[K] = {};
  // Of a single column: the all-reduce up to which decisions are deferred, and what is not counted.
  std::int64_t deferred_until_ = 0;
  double square_ = 0.0;
  // Of several columns:
  bool running_[K] = {};
  double share_of_b_[K] = {};  // 1 / ||b||^2
};

}  // namespace cpufree
