// One V-cycle of multigrid as preconditioner, in the kernel. Side by side with the mathematics:
// reference/multigrid.hpp.
#pragma once

#include "cpufree/multigrid/cycle_args.hpp"
#include "cpufree/multigrid/level_context.hpp"
#include "cpufree/solvers/cg.hpp"

namespace cpufree {

// Exchanges of a level in one cycle, at most. They are numbered from a multiple of it, so that
// every block knows all epochs from the number of the cycle. Numbers that a level does not need are
// left out: flags are compared by >=.
inline constexpr Epoch kCycleExchanges = 6;

// What happens to a row, and what of it is exchanged. `first` and `turn` begin: they follow no
// product. All others follow r -= A d, d the vector exchanged before.
enum class CycleStep : std::int32_t {
  first,    // x = first r, of x                    the first of two steps of Chebyshev's iteration
  turn,     // -r, and r = 0
  second,   // x += keep d + add r, of what is added
  correct,  // x += d + first r, of first r         the first of two more steps, d = P x
  again,    // x += first r, of what is added       the same where nothing is to be corrected
  last,     // x += keep d + add r, of x
  alone,    // the same, of nothing
  residual  // r
};

struct RowOfLevel {
  float r, x, d;
};

// What a step that follows a product does to a row. Without branches: loops over rows vectorise.
struct StepRule {
  float keep = 0.0F, add = 0.0F;  // both 0: x stays
  bool corrects = false, tells_r = false, tells_x = false;

  template <class F>
  CPUFREE_KERNEL_FN StepRule(const CycleLevel<F>& level, CycleStep step)
      : corrects(step == CycleStep::correct),
        tells_r(step == CycleStep::residual),
        tells_x(step == CycleStep::last) {
    const bool first = corrects || step == CycleStep::again;
    if (!first && !tells_r) keep = level.keep;
    if (!tells_r) add = first ? level.first : level.add;
  }
  // r -= ad, and x moves; returns what is exchanged.
  CPUFREE_KERNEL_FN float apply(const RowOfLevel& row, float ad, float& r, float& x) const {
    const float left = row.r - ad;
    const float added = keep * row.d + add * left;
    const float moved = (corrects ? row.x + row.d : row.x) + added;
    r = left;
    x = moved;
    return tells_r ? left : tells_x ? moved : added;
  }
};

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
  // `exchanges` of this cycle have been.
  CPUFREE_KERNEL_FN OnLevel(P& port, const CycleLevel<F>& level, Epoch cycle, Epoch exchanges)
      : port_(port), level_(level), cycle_(cycle), exchanges_(exchanges) {}

  // The private vectors r and x of my block.
  CPUFREE_KERNEL_FN Private<float> r() const { return {level_.args.vectors.r + first_private()}; }
  CPUFREE_KERNEL_FN Private<float> x() const { return {level_.args.vectors.x + first_private()}; }

  // Two steps of Chebyshev's iteration from x = 0. r: the right-hand side, then b - A x, exchanged.
  CPUFREE_KERNEL_FN bool smooth_first() {
    return begin(CycleStep::first) && take(CycleStep::second) && take(CycleStep::residual, true);
  }
  // x += P x of the level below, which has been exchanged, and two more steps. What is left of r is
  // of no use. `tell`: x is exchanged.
  CPUFREE_KERNEL_FN bool smooth_again(const CycleLevel<F>& below, bool tell) {
    float* const to = level_.args.vectors.scratch[exchanges_ & 1U];
    transfer(port_, level_.prolongation[port_.block()], below.args.vectors.scratch[1], to, 0, 0);
    send_apart(port_, level_, state());
    ++exchanges_;
    return take(CycleStep::correct) && take(tell ? CycleStep::last : CycleStep::alone, tell);
  }
  // The last level: x, exchanged.
  CPUFREE_KERNEL_FN bool end() {
    if (level_.solves)  // the matrix is the inverse
      return begin(CycleStep::turn) && take(CycleStep::residual, true);
    return begin(CycleStep::first) && take(CycleStep::second) && take(CycleStep::again) &&
           take(CycleStep::last, true);
  }
  // r of the level below = R r.
  CPUFREE_KERNEL_FN bool restrict_to(const CycleLevel<F>& below) {
    const TransferShare<F>& by = level_.restriction[port_.block()];
    const float* const from = level_.args.vectors.scratch[(exchanges_ - 1) & 1U];
    if (level_.gathering.all != nullptr) return gather(by, below, from);
    const Share& rows = below.args.shares[port_.block()];
    transfer(port_, by, from, below.args.vectors.r + rows.first_private, rows.interior_shift,
             rows.boundary_shift);
    return true;
  }

 private:
  P& port_;
  const CycleLevel<F>& level_;
  Epoch cycle_;
  Epoch exchanges_;

  CPUFREE_KERNEL_FN std::int64_t first_private() const {
    return level_.args.shares[port_.block()].first_private;
  }
  CPUFREE_KERNEL_FN typename Ctx::State state() const {
    return {cycle_ * kCycleExchanges + exchanges_, 0, 0, static_cast<unsigned>(exchanges_), false};
  }
  // Those that a level has (CycleLevel): what a kernel would ask of the others takes longer to
  // compile than a step.
  CPUFREE_KERNEL_FN static V vectors_of(P& port, const CycleLevel<F>& level) {
    const auto& all = level.args.vectors;
    const std::int64_t first = level.args.shares[port.block()].first_private;
    V mine;
    mine.r = {all.r + first};
    mine.x = {all.x + first};
    for (int k = 0; k < 2; ++k) mine.scratch[k].data = all.scratch[k];
    return mine;
  }

  CPUFREE_KERNEL_FN bool begin(CycleStep step) {
    begin_apart(port_, level_, state(), step);
    ++exchanges_;
    return true;
  }
  CPUFREE_COLD_FN static void begin_apart(P port, const CycleLevel<F>& level,
                                          typename Ctx::State state, CycleStep step) {
    const V v = vectors_of(port, level);
    Ctx c(port, level.args, level.args.shares[port.block()], v, state);
    c.exchange_scratch([&](Row i, int) {
      const float r = v.r[i];
      if (step == CycleStep::first) return v.x[i] = level.first * r;
      v.r[i] = 0.0F;
      return -r;
    });
  }

  // `waits`: until what my block reads of the others has come.
  CPUFREE_KERNEL_FN bool take(CycleStep step, bool waits = false) {
    const bool here = take_apart(port_, level_, state(), step, waits);
    if (step != CycleStep::alone) ++exchanges_;
    return here;
  }
  CPUFREE_COLD_FN static bool take_apart(P port, const CycleLevel<F>& level,
                                         typename Ctx::State state, CycleStep step, bool waits) {
    const V v = vectors_of(port, level);
    Ctx c(port, level.args, level.args.shares[port.block()], v, state);
    const auto d = v.scratch[(state.scratch - 1) & 1U];
    // Copies: what is read through a reference is read anew for every row.
    const auto read = [r = v.r, x = v.x, d](Row i) { return RowOfLevel{r[i], x[i], d[i]}; };
    const auto next = [r = v.r, x = v.x, rule = StepRule(level, step)](Row i, const RowOfLevel& row,
                                                                       float ad) {
      return rule.apply(row, ad, r[i], x[i]);
    };
    return c.multiply_and_exchange_scratch(d, read, next, step != CycleStep::alone) &&
           (!waits || c.await(d));
  }

  // Row i of scratch is in place: that is told.
  CPUFREE_COLD_FN static void send_apart(P port, const CycleLevel<F>& level,
                                         typename Ctx::State state) {
    const V v = vectors_of(port, level);
    Ctx(port, level.args, level.args.shares[port.block()], v, state).exchange_written_scratch();
  }
  // to = what R or P makes of `from`. Row i of the interior is at to[i - interior_shift].
  CPUFREE_COLD_FN static void transfer(P port, const TransferShare<F>& by, const float* from,
                                       float* to, std::int32_t interior_shift,
                                       std::int32_t boundary_shift) {
    CPUFREE_ONE_COPY
    for (int k = 0; k < 2; ++k) {
      float* const place = to - (k == 0 ? interior_shift : boundary_shift);
      by.matrix.template multiply<LevelSlices>(
          port, k == 0 ? by.interior : by.boundary, Operand<float>{from},
          [&](std::int32_t i, int, float value) { place[i] = value; });
    }
  }
  // r of a level that all PEs have whole: each puts its rows to all.
  CPUFREE_KERNEL_FN bool gather(const TransferShare<F>& by, const CycleLevel<F>& below,
                                const float* from) {
    const CycleGather& g = level_.gathering;
    Arrivals<P> arrivals(port_, g.boards[port_.block()], cycle_);
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
    const Share& rows = below.args.shares[port_.block()];
    float* const r = below.args.vectors.r + rows.first_private - rows.interior_shift;
    for_each(port_, rows.interior.begin, rows.interior.end,
             [&](std::int32_t i, int) { r[i] = g.all[i]; });
    port_.sync_block();  // lanes may share rows
    return true;
  }
};

// M = S V S: S = D^-1/2, V one V-cycle with x = 0 for the scaled matrix, in single precision. It is
// symmetric, and positive definite as long as the largest eigenvalues are not underestimated by
// more than 26 %. For cg alone: the recurrences of M r that prcg and pipecg have are too
// inaccurate.
template <class T>
struct Multigrid {
  static constexpr bool pointwise = false;
  static constexpr bool takes_long = true;
  Private<const T> scale;
  Private<const float> x;  // of level 0
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
    OnLevel first(c.port(), c.args.cycle->levels[0], 0, 0);
    c.each_column([&](int) {
      scale = s;
      x = {first.x().data};
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
    const auto* const levels = c.args.cycle->levels;
    const int last = c.args.cycle->count - 1;
    const Epoch cycle = cycles;
    {
      const Private<float> r = OnLevel(port, levels[0], cycle, 0).r();
      const double by = 1.0 / unit;
      c.rows([&](Row i, int) {
        r[i] = static_cast<float>(by * static_cast<double>(scale[i]) * static_cast<double>(v[i]));
      });
    }
    port.sync_block();  // lanes may share the level's rows, and not those of A
    CPUFREE_ONE_COPY
    for (int l = 0; l < last; ++l) {
      if constexpr (TracingPort<typename Ctx::PortType>) port.enter_level(l);
      OnLevel level(port, levels[l], cycle, 0);
      if (!level.smooth_first() || !level.restrict_to(levels[l + 1])) return false;
    }
    if constexpr (TracingPort<typename Ctx::PortType>) port.enter_level(last);
    if (!OnLevel(port, levels[last], cycle, 0).end()) return false;
    CPUFREE_ONE_COPY
    for (int l = last - 1; l >= 0; --l) {
      if constexpr (TracingPort<typename Ctx::PortType>) port.enter_level(l);
      OnLevel level(port, levels[l], cycle, 3);
      if (!level.smooth_again(levels[l + 1], l > 0)) return false;
    }
    if constexpr (TracingPort<typename Ctx::PortType>) port.enter_level(-1);
    if (port.lane() == 0) cycles = cycle + 1;
    port.sync_block();
    return true;
  }
};

}  // namespace cpufree
