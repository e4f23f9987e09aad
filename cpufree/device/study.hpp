// Studies of a kernel: where its time goes, and what it takes without computing, or without other
// PEs. A study is a port: `Studied<P, S>` is the port P with other answers to the few questions of
// `Unstudied`, and the same kernels are instantiated with it. Normal ports are `Unstudied`, whose
// answers are constants and whose `mark` is nothing: a kernel outside of studies has not an
// instruction of this.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/device/types.hpp"

namespace cpufree {

enum class Study : std::int32_t {
  none,
  split,       // the whole kernel, and the time of its phases
  no_compute,  // all exchanges and reductions, and of loops over rows what these need
  no_comm,     // all loops; nothing is sent to other PEs, and nothing awaited from them
  trace        // the whole kernel, and a record of what it does (trace/traced.hpp)
};

// What a block spends its time with. `vector` is all that is nothing else.
enum class Phase : std::uint32_t { vector, spmv, halo_wait, reduction_wait };
inline constexpr int kPhases = 4;

// Seconds of each phase.
struct Split {
  double seconds[kPhases] = {};
};

// The answers of a port outside of studies.
struct Unstudied {
  static constexpr bool computes = true;      // loops over rows are to be done
  static constexpr bool communicates = true;  // with other PEs
  // Since the mark before, the block has spent its time with `phase`.
  CPUFREE_KERNEL_FN static void mark(Phase) {}
};

// Adds up the time of one block. It is kept by the threads of the block's first warp, which run in
// lockstep and so write the same; where they part, each adds what has passed since the mark before,
// whosever that was. Volatile, as any of them may have written last.
class Stopwatch {
 public:
  // `ticks`: of a clock that is read quickly; `now`: nanoseconds, of one that keeps the time.
  CPUFREE_KERNEL_FN Stopwatch(std::uint64_t ticks, std::uint64_t now)
      : first_(ticks), last_(ticks), began_(now) {}
  CPUFREE_KERNEL_FN void mark(Phase phase, std::uint64_t ticks) {
    volatile std::uint64_t& spent = spent_[static_cast<std::uint32_t>(phase)];
    spent = spent + (ticks - last_);
    last_ = ticks;
  }
  // The phases up to the last mark, which is now.
  CPUFREE_KERNEL_FN Split split(std::uint64_t now) const {
    const double whole = static_cast<double>(last_ - first_);
    const double tick = whole > 0.0 ? 1e-9 * static_cast<double>(now - began_) / whole : 0.0;
    Split split;
    for (int k = 0; k < kPhases; ++k) split.seconds[k] = tick * static_cast<double>(spent_[k]);
    return split;
  }

 private:
  std::uint64_t first_;
  volatile std::uint64_t last_;
  std::uint64_t began_;
  volatile std::uint64_t spent_[kPhases] = {};
};

// A port that is studied. Copies share the watch.
template <class P, Study S>
class Studied : public P {
 public:
  static constexpr bool computes = S != Study::no_compute;
  static constexpr bool communicates = S != Study::no_comm;

  CPUFREE_KERNEL_FN Studied(const P& port, Stopwatch& watch) : P(port), watch_(&watch) {}

  CPUFREE_KERNEL_FN void mark(Phase phase) {
    if constexpr (S == Study::split)
      if (this->lane() < P::warp_width) watch_->mark(phase, this->ticks());
  }

 private:
  Stopwatch* watch_;
};

// kernel(port), or as a study of it.
template <Study S, class P, class F>
CPUFREE_KERNEL_FN void run_as(P& port, F&& kernel) {
  if constexpr (S == Study::none) {
    kernel(port);
  } else {
    typename P::template Held<Stopwatch> watch = port.hold(Stopwatch(port.ticks(), port.now()));
    Studied<P, S> studied(port, watch);
    kernel(studied);
  }
}

// Whether a block exchanges anything with those of a PE.
template <class P>
CPUFREE_KERNEL_FN bool exchanges_with(const P& port, int pe) {
  if constexpr (P::communicates) return true;
  return pe == port.pe();
}

}  // namespace cpufree
