// Kernels as studies (device/study.hpp): the verbs of Context, without what a study leaves out.
// Without computing: loops over rows, but for the packets that they send and look for. Without
// other PEs: puts to them, waits for them, and their share of sums. And the verbs mark where one
// phase ends and the next one begins. `P` is a port that is studied.
#pragma once

#include <type_traits>

#include "cpufree/solvers/kernel.hpp"
#include "cpufree/trace/traced.hpp"

namespace cpufree {

// The monitor of a study whose numbers mean nothing.
// It goes on, whatever the numbers are, until the iterations are done or the host stops the solve.
class BlindMonitor : public Monitor {
 public:
  using Monitor::Monitor;

  CPUFREE_KERNEL_FN void begin(double bb, double rr, double atol, double rows) {
    Monitor::begin(bb, rr, atol, rows);
    stop(Reason::running);
    within_limits(0U);
  }
  CPUFREE_KERNEL_FN bool needs_no_decision(double, unsigned notes) const { return notes == 0U; }
  CPUFREE_KERNEL_FN Verdict judge(double rr, unsigned notes, double) {
    count(rr);
    return within_limits(notes);
  }
  CPUFREE_KERNEL_FN bool verify(double rr, bool replaced, bool = false) {
    record_true_residual(rr);
    if (replaced) note_replacement();
    within_limits(0U);
    return true;
  }
  CPUFREE_KERNEL_FN static bool is_step(bool) { return true; }
  CPUFREE_KERNEL_FN static bool usable(double) { return true; }
  CPUFREE_KERNEL_FN static bool positive(double, Reason) { return true; }
  CPUFREE_KERNEL_FN static bool in_range(double) { return true; }
  CPUFREE_KERNEL_FN static bool stalled(std::int64_t) { return false; }
  CPUFREE_KERNEL_FN static bool runs_late() { return false; }
};

// A packet's wait is a phase of its own, and without other PEs there are no waits.
template <Port P, class T>
struct StudiedOperand : PacketOperand<P, T> {
  CPUFREE_KERNEL_FN T operator()(std::int32_t column) const {
    const std::int32_t columns[1] = {column};
    T out[1];
    fetch(columns, out);
    return out[0];
  }

  template <int N>
  CPUFREE_KERNEL_FN void fetch(const std::int32_t (&columns)[N], T (&out)[N]) const {
    if (this->look(columns, out) || !P::communicates) return;
    this->port.mark(Phase::spmv);
    PacketOperand<P, T>::fetch(columns, out);
    this->port.mark(Phase::halo_wait);
  }
};

template <Port P, class M, class Format>
class StudiedContext : public Context<P, M, Format> {
  using Base = Context<P, M, Format>;
  using Base::arrivals_, Base::gone_, Base::notes_, Base::port_, Base::reduction_, Base::share_;
  using typename Base::Part;

 public:
  using Base::args;
  using typename Base::Sums, typename Base::T, typename Base::Vector;
  using Monitor =
      std::conditional_t<P::computes && P::communicates, cpufree::Monitor, BlindMonitor>;
  static constexpr bool kComputes = P::computes;
  using Base::Base;

  template <class F, class... V>
  CPUFREE_KERNEL_FN void rows(F&& f, const V&... read) {
    if constexpr (P::computes) Base::rows(f, read...);
  }

  template <class F, class... V>
  CPUFREE_KERNEL_FN void exchange(const Vector& v, F&& f, const V&... read) {
    if constexpr (P::computes && P::communicates) {
      Base::exchange(v, f, read...);
    } else {
      arrivals_.begin();
      this->parts([&](const Part& part, auto boundary) {
        if (P::computes || boundary) write(v, part, boundary, f);
        if constexpr (P::communicates)
          if (boundary) this->arrive(v);
      });
      arrivals_.arrive_local();
    }
  }
  template <class F>
  CPUFREE_KERNEL_FN Vector exchange_scratch(F&& f) {
    const Vector v = this->next_scratch();
    exchange(v, f);
    return v;
  }

  template <class F, class... V>
  CPUFREE_KERNEL_FN bool multiply(const Vector& v, F&& f, const V&... read) {
    return multiply_by(this->hot(v), [](const auto& x) { return x; }, f, read...);
  }
  template <class F>
  CPUFREE_KERNEL_FN bool multiply_cold(const Vector& v, F&& f) {
    return multiply_by(
        v, [](const auto& x) { return ColdOperand{x}; },
        [&](Row row, int lane, const AccurateSum<T>& value) { f(row, lane, 0, value); });
  }

  template <int N, class F>
  CPUFREE_KERNEL_FN void push(const Sums (&partial)[N], F&& meanwhile) {
    Base::push(partial, meanwhile);
    port_.mark(Phase::vector);
  }
  template <int N, class... V>
  CPUFREE_KERNEL_FN bool pull(double (&total)[N], const V&... next) {
    this->prefetch_start(next...);
    port_.mark(Phase::vector);
    const bool here = reduction_.pull(total, notes_, gone_);
    port_.mark(Phase::reduction_wait);
    return here;
  }
  template <int N>
  CPUFREE_KERNEL_FN bool sum(const Sums (&partial)[N], double (&total)[N]) {
    return sum(partial, total, [] {});
  }
  template <int N, class F, class... V>
  CPUFREE_KERNEL_FN bool sum(const Sums (&partial)[N], double (&total)[N], F&& meanwhile,
                             const V&... next) {
    double sums[N];
    for (int n = 0; n < N; ++n) sums[n] = partial[n].sum();
    const bool here = reduction_.sum(sums, total, notes_, gone_, [&] {
      if (port_.bookkeeper()) meanwhile();
      this->prefetch_start(next...);
      port_.mark(Phase::vector);
    });
    port_.mark(Phase::reduction_wait);
    return here;
  }

 private:
  // Writes and sends a part's rows.
  template <class B, class F>
  CPUFREE_KERNEL_FN void write(const Vector& v, const Part& part, B boundary, F&& f) {
    const Vector to = v;
    const std::int32_t shift = part.shift;
    this->each(part, [&](std::int32_t i, int lane) {
      const Row row{i, i - shift};
      T value = 0;
      if constexpr (P::computes) {
        value = f(row, lane);
        to.set(row, value);
      }
      if (!boundary) return;
      if constexpr (P::communicates)
        this->send(to, row, value);
      else
        this->send_within(to, row, value);
    });
  }

  template <class As, class F, class... V>
  CPUFREE_KERNEL_FN bool multiply_by(const Vector& v, As&& as, F&& f, const V&... read) {
    port_.mark(Phase::vector);
    if (!arrivals_.wait_local()) return false;
    const auto plain = as(Operand<T>{v.data});
    const bool collects = this->block_halos();  // of rows of other blocks of the PE, too
    const bool packets = v.halo != nullptr && !collects;
    const auto any = as(StudiedOperand<P, T>{this->packet_operand(v)});
    if (!collects) port_.mark(Phase::halo_wait);
    bool here = true;
    this->parts_backwards([&](const Part& part, auto) {
      if (part.boundary && packets) return;
      if (part.boundary && collects)
        this->collect(v, [&](std::int32_t packet) { return within(packet); });
      if constexpr (P::communicates)
        if (part.boundary && !collects) here = arrivals_.wait_halo();
      if (part.boundary) port_.mark(Phase::halo_wait);
      if constexpr (P::computes)
        if (here) this->product(part, plain, f, read...);
      port_.mark(Phase::spmv);
    });
    if (packets) {
      this->product(this->boundary(), any, [&](Row row, int lane, const auto& value) {
        if constexpr (P::computes) f(row, lane, value);
      });
      port_.mark(Phase::spmv);
    }
    return here;
  }

  // The packet itself; where PEs do not communicate, one of my own in place of one that another PE
  // would send. A block that reads some has boundary rows, and so puts some.
  CPUFREE_KERNEL_FN std::int32_t within(std::int32_t packet) const {
    if constexpr (!P::communicates)
      if (args.source[packet] / port_.blocks() != port_.pe()) return share_.first_packet;
    return packet;
  }
};

// `solve_kernel` as a study.
template <Study S, template <class, class> class Algorithm, class M, class Format = AnySlices,
          Port P, class Matrix>
CPUFREE_KERNEL_FN void study_kernel(P& port, const SolveArgs<Matrix>& args) {
  if constexpr (S == Study::trace) {
    run_traced(port, args.traces, [&](auto& traced) {
      solve_in<Algorithm, M, StudiedContext<Traced<P>, Matrix, Format>>(traced, args);
      traced.mark(Phase::vector);
    });
  } else {
    typename P::template Held<Stopwatch> watch = port.hold(Stopwatch(port.ticks(), port.now()));
    Studied<P, S> studied(port, watch);
    solve_in<Algorithm, M, StudiedContext<Studied<P, S>, Matrix, Format>>(studied, args);
    if constexpr (S == Study::split) {
      studied.mark(Phase::vector);
      if (port.lane() == 0) args.splits[port.block()] = watch.split(port.now());
    }
  }
}

}  // namespace cpufree
