// One V-cycle of multigrid as preconditioner, in the kernel. Side by side with the mathematics:
// reference/multigrid.hpp.
#pragma once

#include "cpufree/multigrid/cycle_steps.hpp"
#include "cpufree/multigrid/level_context.hpp"
#include "cpufree/multigrid/packet_steps.hpp"
#include "cpufree/solvers/cg.hpp"

namespace cpufree {

// A level as one thread has it. Steps and transfers are out of line, one copy of each for all
// levels (apart.hpp says why). What a product gives a row is used at once, and exchanged: a pass
// over the vectors for each product, two for the rest.
//
// Exchanges are of the two scratch vectors in turn, six a cycle on a level in the middle:
//
//   number       1   2    3   4               5   6
//   of           d   d'   r   P x of the      d   x, for the level
//                         |   level below     |   above
//                         R reads it              P of the level above reads it
//
// Proof (ii) of channel.hpp holds: between two exchanges of a vector lies one of the other, of the
// same level. Those who read a vector through R or P have done so before their next exchange on the
// level, and they are among the blocks that are waited for there: blocks of a PE and of its
// neighbours all await one another (Awaited::everybody), and R and P read no further than the
// matrix. On level 0 there are five, and the first of a cycle is of the same vector as the last of
// the cycle before; between them lies an all-reduce of conjugate gradients, proof (i). The last
// level has two, or four, with the same proofs.
template <Port P, class F>
class OnLevel {
  using Ctx = LevelContext<P, F>;
  using V = BlockVectors<float>;
  using Share = BlockShare<F>;

 public:
  // `exchanges` of this cycle have been. `gone`: of my thread, whether a wait for packets gave up.
  CPUFREE_KERNEL_FN OnLevel(P& port, const CycleLevel<F>& level, Epoch cycle, Epoch exchanges,
                            bool& gone)
      : port_(port), level_(level), cycle_(cycle), exchanges_(exchanges), gone_(gone) {}

  // Two steps of Chebyshev's iteration from x = 0. r: the right-hand side, then b - A x, exchanged.
  CPUFREE_KERNEL_FN bool smooth_first() {
    begin(CycleStep::first);
    return take(CycleStep::second) && take(CycleStep::residual, true);
  }
  // x += P x of the level below, which has been exchanged, and two more steps. What is left of r is
  // of no use. `tell`: x is exchanged.
  CPUFREE_KERNEL_FN bool smooth_again(const CycleLevel<F>& below, bool tell) {
    prolongate(below);
    return take(CycleStep::correct) && take(tell ? CycleStep::last : CycleStep::alone, tell);
  }
  // The last level: x, exchanged.
  CPUFREE_KERNEL_FN bool end() {
    begin(level_.solves ? CycleStep::turn : CycleStep::first);
    if (level_.solves) return take(CycleStep::residual, true);  // the matrix is the inverse
    return take(CycleStep::second) && take(CycleStep::again) && take(CycleStep::last, true);
  }
  // r of the level below = R r.
  CPUFREE_KERNEL_FN bool restrict_to(const CycleLevel<F>& below) {
    const TransferShare<F>& by = level_.restriction;
    const Share& rows = below.share;
    float* const r = below.args.vectors.r + rows.first_private;
    if (by_packets(level_, CycleStep::down, below)) return true;
    const float* const from = level_.args.vectors.scratch[(exchanges_ - 1) & 1U];
    if (level_.gathering.all != nullptr) return gather(by, below, from);
    transfer(port_, by, from, r, rows.interior_shift, rows.boundary_shift);
    return true;
  }

 private:
  P& port_;
  const CycleLevel<F>& level_;
  Epoch cycle_;
  Epoch exchanges_;
  bool& gone_;

  CPUFREE_KERNEL_FN typename Ctx::State state() const {
    return {cycle_ * kCycleExchanges + exchanges_, 0, 0, static_cast<unsigned>(exchanges_), false};
  }
  // Those that a level has (CycleLevel): what a kernel would ask of the others takes longer to
  // compile than a step.
  CPUFREE_KERNEL_FN static V vectors_of(const CycleLevel<F>& level) {
    const auto& all = level.args.vectors;
    const std::int64_t first = level.share.first_private;
    V mine;
    mine.r = {all.r + first};
    mine.x = {all.x + first};
    for (int k = 0; k < 2; ++k) mine.scratch[k].data = all.scratch[k];
    return mine;
  }

  // The same by packets, where `level` has them. Whether it has.
  CPUFREE_KERNEL_FN bool by_packets(const CycleLevel<F>& level, CycleStep step,
                                    const CycleLevel<F>& below) {
    if constexpr (WarpPort<P>) {
      if (!has_packets(level)) return false;
      const auto exchanges = static_cast<int>(exchanges_);
      if (!take_packets(port_, level_, below, cycle_, exchanges, step)) gone_ = true;
      return true;
    } else {
      return false;
    }
  }

  CPUFREE_KERNEL_FN void begin(CycleStep step) {
    if (!by_packets(level_, step, level_)) begin_apart(port_, level_, state(), step);
    ++exchanges_;
  }
  CPUFREE_STEP_FN static void begin_apart(P port, const CycleLevel<F>& level,
                                          typename Ctx::State state, CycleStep step) {
    const V v = vectors_of(level);
    Ctx(port, level.args, level.share, v, state).exchange_scratch([&](Row i, int) {
      return begin_row(level, step, v.r[i], v.x[i]);
    });
  }

  // `waits`: until what my block reads of the others has come.
  CPUFREE_KERNEL_FN bool take(CycleStep step, bool waits = false) {
    const bool here =
        by_packets(level_, step, level_) || take_apart(port_, level_, state(), step, waits);
    if (step != CycleStep::alone) ++exchanges_;
    return here;
  }
  CPUFREE_STEP_FN static bool take_apart(P port, const CycleLevel<F>& level,
                                         typename Ctx::State state, CycleStep step, bool waits) {
    const V v = vectors_of(level);
    Ctx c(port, level.args, level.share, v, state);
    const auto d = v.scratch[(state.scratch - 1) & 1U];
    // Copies: what is read through a reference is read again for every row.
    const auto read = [r = v.r, x = v.x, d](Row i) { return RowOfLevel{r[i], x[i], d[i]}; };
    const auto next = [r = v.r, x = v.x, rule = StepRule(level, step)](Row i, const RowOfLevel& row,
                                                                       float ad) {
      return rule.apply(row, ad, r[i], x[i]);
    };
    return c.multiply_and_exchange_scratch(d, read, next, step != CycleStep::alone) &&
           (!waits || c.await(d));
  }
  // P x of the level below, exchanged. Levels below one that has packets have them, too.
  CPUFREE_KERNEL_FN void prolongate(const CycleLevel<F>& below) {
    if (!by_packets(below, CycleStep::up, below))
      transfer(port_, level_.prolongation, below.args.vectors.scratch[1],
               level_.args.vectors.scratch[exchanges_ & 1U], 0, 0);
    if (!has_packets(level_)) send_apart(port_, level_, state());
    ++exchanges_;
  }

  // Row i of scratch is in place: that is told.
  CPUFREE_STEP_FN static void send_apart(P port, const CycleLevel<F>& level,
                                         typename Ctx::State state) {
    const V v = vectors_of(level);
    Ctx(port, level.args, level.share, v, state).exchange_written_scratch();
  }
  // to = what R or P makes of `from`. Row i of the interior is at to[i - interior_shift].
  CPUFREE_STEP_FN static void transfer(P port, const TransferShare<F>& by, const float* from,
                                       float* to, std::int32_t interior_shift,
                                       std::int32_t boundary_shift) {
    CPUFREE_ONE_COPY
    for (int k = 0; k < 2; ++k) {
      float* const place = to - (k == 0 ? interior_shift : boundary_shift);
      by.matrix.template multiply<LevelSlices>(
          port, k == 0 ? by.interior : by.boundary, LevelOperand<P>{port, from},
          [&](std::int32_t i, int, float value) { place[i] = value; });
    }
  }
  // r of a level that all PEs have whole: each puts its rows to all.
  CPUFREE_KERNEL_FN bool gather(const TransferShare<F>& by, const CycleLevel<F>& below,
                                const float* from) {
    const CycleGather& g = level_.gathering;
    Arrivals<P> arrivals(port_, g.board, cycle_);
    arrivals.begin();
    transfer(port_, by, from, g.mine, 0, 0);
    port_.sync_block();
    for_each(port_, by.interior.begin, by.interior.end, [&](std::int32_t i, int) {
      float* const place = g.all + g.rows[i];
      *place = g.mine[i];
      for (int pe = 0; pe < port_.pes(); ++pe)
        if (pe != port_.pe()) port_.put(place, pe, g.mine[i]);
    });
    arrivals.arrive_remote();
    arrivals.arrive_local();
    if (!arrivals.wait_local() || !arrivals.wait_halo()) return false;
    const Share& rows = below.share;
    float* const r = below.args.vectors.r + rows.first_private - rows.interior_shift;
    for_each(port_, rows.interior.begin, rows.interior.end,
             [&](std::int32_t i, int) { r[i] = g.all[i]; });
    port_.sync_block();  // lanes may share rows
    return true;
  }
};

// A copy of the block's levels where it reads them fast, if there is room for one. All threads call
// it; a barrier is to follow.
template <Port P, class F>
CPUFREE_KERNEL_FN const CycleLevel<F>* bring_levels(P& port, const CycleLevel<F>* levels, int count,
                                                    std::int32_t place) {
  const CycleLevel<F>* const mine = levels + static_cast<std::int64_t>(port.block()) * count;
  if (place < 0) return mine;
  auto* const to = reinterpret_cast<CycleLevel<F>*>(port.fast_memory() + place);
  for (int l = port.lane(); l < count; l += port.lanes()) to[l] = mine[l];
  return to;
}

// M = S V S: S = D^-1/2, V one V-cycle with x = 0 for the scaled matrix, in single precision. It is
// symmetric, and positive definite as long as the largest eigenvalues are not underestimated by
// more than 26 %. For cg alone: the recurrences of M r that prcg and pipecg have are too
// inaccurate.
template <class T>
struct Multigrid {
  static constexpr bool pointwise = false;
  static constexpr bool takes_long = true;
  Private<const T> scale;
  Private<const float> x;        // of level 0
  const void* levels = nullptr;  // CycleLevel of the matrix's single precision, of my block
  int count = 0;
  // S r is divided by it, and so fits into single precision whatever the units of A and b.
  double unit = 1.0;
  // Cycles that have been. All threads read it before the first barrier of `apply`; then one
  // thread writes it, and the last barrier lies before the next reads.
  mutable Epoch cycles = 0;

  template <class Vectors>
  CPUFREE_KERNEL_FN explicit Multigrid(const Vectors&) {}

  template <class Ctx>
  CPUFREE_KERNEL_FN bool prepare(Ctx& c) {
    using P = typename Ctx::PortType;
    static_assert(!RemotePort<P>, "cycles are for PEs of one node");
    const Private<const T> s{c.args.cycle->scale + c.share().first_private};
    RareSums<Ctx> sums;
    c.rows([&](Row i, int lane) {
      const double value = static_cast<double>(s[i]) * static_cast<double>(c.vectors.b[i]);
      sums.partial[0][lane] += value * value;
    });
    if (!sum_apart(c, sums)) return false;
    const double square = sums.total[0];
    const int many = c.args.cycle->count;
    const auto* const mine =
        bring_levels(c.port(), c.args.cycle->levels, many, c.args.residency.levels);
    c.port().sync_block();
    c.each_column([&](int) {
      scale = s;
      levels = mine;
      count = many;
      x = {mine->args.vectors.x + mine->share.first_private};
      if (square > 0.0 && is_finite(square)) unit = std::sqrt(square);
    });
    return true;
  }
  CPUFREE_KERNEL_FN static void report(Outcome&) {}
  CPUFREE_KERNEL_FN T image(Row i, T) const {
    return static_cast<T>(unit * static_cast<double>(scale[i]) * static_cast<double>(x[i]));
  }
  CPUFREE_KERNEL_FN Private<const T> reads() const { return {}; }

  template <class Ctx>
  CPUFREE_KERNEL_FN bool apply(Ctx& c, const Private<T>& v) const {
    auto& port = c.port();
    const auto* const all = static_cast<decltype(c.args.cycle->levels)>(levels);
    const int last = count - 1;
    const Epoch cycle = cycles;
    bool gone = false;
    {
      const Private<float> r{all->args.vectors.r + all->share.first_private};
      const double by = 1.0 / unit;
      c.rows([&](Row i, int) {
        r[i] = static_cast<float>(by * static_cast<double>(scale[i]) * static_cast<double>(v[i]));
      });
    }
    port.sync_block();  // lanes may share the level's rows, and not those of A
    CPUFREE_ONE_COPY
    for (int l = 0; l < last; ++l) {
      if constexpr (TracingPort<typename Ctx::PortType>) port.enter(l);
      OnLevel level(port, all[l], cycle, 0, gone);
      if (!level.smooth_first() || !level.restrict_to(all[l + 1])) return false;
    }
    if constexpr (TracingPort<typename Ctx::PortType>) port.enter(last);
    if (!OnLevel(port, all[last], cycle, 0, gone).end()) return false;
    CPUFREE_ONE_COPY
    for (int l = last - 1; l >= 0; --l) {
      if constexpr (TracingPort<typename Ctx::PortType>) port.enter(l);
      OnLevel level(port, all[l], cycle, 3, gone);
      if (!level.smooth_again(all[l + 1], l > 0)) return false;
    }
    if constexpr (TracingPort<typename Ctx::PortType>) port.enter(-1);
    if (port.lane() == 0) cycles = cycle + 1;
    return port.all(!gone);
  }
};

}  // namespace cpufree
