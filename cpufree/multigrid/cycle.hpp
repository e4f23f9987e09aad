// One V-cycle of multigrid as preconditioner, in the kernel. Side by side with the mathematics:
// reference/multigrid.hpp.
#pragma once

#include "cpufree/multigrid/cycle_args.hpp"
#include "cpufree/solvers/cg.hpp"

namespace cpufree {

// Exchanges of a level in one cycle, at most. They are numbered from a multiple of it, so that
// every block knows all epochs from the number of the cycle. Numbers that a level does not need are
// left out: flags are compared by >=.
inline constexpr Epoch kCycleExchanges = 6;

// A level as one thread has it: the verbs of a solve, for the level's matrix.
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
// level has two, or three with the same proofs, or four.
template <Port P, class F>
class OnLevel {
  using Share = BlockShare<F>;

 public:
  using Ctx = Context<P, F>;
  using V = BlockVectors<float>;
  using Vector = typename Ctx::Vector;

  // `exchanges` of this cycle have been.
  CPUFREE_KERNEL_FN OnLevel(P& port, const CycleLevel<F>& level, Epoch cycle, Epoch exchanges)
      : level_(level),
        v(block_vectors(level.args, level.args.shares[port.block()], nullptr)),
        c(port, level.args, level.args.shares[port.block()], v,
          {cycle * kCycleExchanges + exchanges, 0, 0, static_cast<unsigned>(exchanges), false}) {}

  // Two steps of Chebyshev's iteration from x = 0. r: the right-hand side, then b - A x.
  CPUFREE_KERNEL_FN bool smooth_first() {
    const auto d = c.exchange_scratch([&](Row i, int) { return v.x[i] = level_.first * v.r[i]; });
    if (!subtract_product(d)) return false;
    return subtract_product(c.exchange_scratch(second_step(d)));
  }
  // Two more from x and r. What is left of r is of no use. `tell`: x is exchanged.
  CPUFREE_KERNEL_FN bool smooth_again(bool tell) {
    const auto d = c.exchange_scratch([&](Row i, int) {
      const float value = level_.first * v.r[i];
      v.x[i] += value;
      return value;
    });
    if (!subtract_product(d)) return false;
    const auto step = second_step(d);
    if (!tell) {
      c.rows(step);
      return true;
    }
    return c.await(c.exchange_scratch([&](Row i, int lane) {
      step(i, lane);
      return v.x[i];
    }));
  }
  // r of the level below = R r.
  CPUFREE_KERNEL_FN bool restrict_to(P& port, OnLevel& below, Epoch cycle) {
    const auto r = c.exchange_scratch([&](Row i, int) { return v.r[i]; });
    if (!c.await(r)) return false;
    if (level_.gathering.all != nullptr) return gather(port, below, r, cycle);
    transfer(port, level_.restriction[port.block()], below.share(port), r,
             [&](Row i, float value) { below.v.r[i] = value; });
    return true;
  }
  // x += P x of the level below, which has been exchanged; r = b - A x.
  CPUFREE_KERNEL_FN bool prolongate_from(P& port, const OnLevel& below) {
    transfer(port, level_.prolongation[port.block()], share(port), below.v.scratch[1],
             [&](Row i, float value) { v.s[i] = value; });
    return subtract_product(c.exchange_scratch([&](Row i, int) {
      v.x[i] += v.s[i];
      return v.s[i];
    }));
  }
  // x = the inverse times r, exchanged.
  CPUFREE_KERNEL_FN bool solve() {
    const auto r = c.exchange_scratch([&](Row i, int) { return v.r[i]; });
    if (!c.multiply(r, [&](Row i, int, float value) { v.x[i] = value; })) return false;
    return c.await(c.exchange_scratch([&](Row i, int) { return v.x[i]; }));
  }

 private:
  const CycleLevel<F>& level_;

 public:
  const V v;
  Ctx c;

 private:
  CPUFREE_KERNEL_FN const Share& share(P& port) const { return level_.args.shares[port.block()]; }
  CPUFREE_KERNEL_FN auto second_step(const Vector& d) const {
    return [this, d](Row i, int) {
      const float value = level_.keep * d[i] + level_.add * v.r[i];
      v.x[i] += value;
      return value;
    };
  }
  CPUFREE_KERNEL_FN bool subtract_product(const Vector& d) {
    return c.multiply(d, [&](Row i, int, float ad) { v.r[i] -= ad; });
  }
  // The same where all PEs have the level below whole: r is all that they have of it.
  CPUFREE_KERNEL_FN bool gather(P& port, OnLevel& below, const Vector& r, Epoch cycle) {
    const CycleGather& g = level_.gathering;
    Arrivals<P> arrivals(port, g.boards[port.block()], cycle);
    arrivals.begin();
    transfer(port, level_.restriction[port.block()], {}, r, [&](Row i, float value) {
      float* const place = g.all + g.rows[i.i];
      *place = value;
      for (int pe = 0; pe < port.pes(); ++pe)
        if (pe != port.pe()) port.put(place, pe, value);
    });
    arrivals.arrive_remote();
    arrivals.arrive_local();
    if (!arrivals.wait_local() || !arrivals.wait_halo()) return false;
    below.c.rows([&](Row i, int) { below.v.r[i] = g.all[i.i]; });
    return true;
  }
  // f(row, value) for the rows of mine of a level whose share is `rows`.
  template <class G>
  CPUFREE_KERNEL_FN static void transfer(P& port, const TransferShare<F>& by, const Share& rows,
                                         const Vector& from, G&& f) {
    const auto part = [&](const typename F::Rows& range, std::int32_t shift) {
      by.matrix.multiply(
          port, range, Operand<float>{from.data},
          [&, shift](std::int32_t i, int, float value) { f(Row{i, i - shift}, value); });
    };
    part(by.interior, rows.interior_shift);
    part(by.boundary, rows.boundary_shift);
  }
};

// M = S V S: S = D^-1/2, V one V-cycle with x = 0 for the scaled matrix, in single precision. It is
// symmetric, and positive definite as long as the largest eigenvalues are not underestimated by
// more than 26 %. For cg alone: the recurrences of M r that prcg and pipecg have are too
// inaccurate.
template <class T>
struct Multigrid {
  static constexpr bool pointwise = false;
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
    typename Ctx::Sums sums[1];
    c.rows([&](Row i, int lane) {
      const double value = static_cast<double>(s[i]) * static_cast<double>(c.vectors.b[i]);
      sums[0][lane] += value * value;
    });
    double total[1];
    if (!c.sum(sums, total)) return false;
    OnLevel first(c.port(), c.args.cycle->levels[0], 0, 0);
    c.each_column([&](int) {
      scale = s;
      x = {first.v.x.data};
      if (total[0] > 0.0 && is_finite(total[0])) unit = std::sqrt(total[0]);
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
      OnLevel first(port, levels[0], cycle, 0);
      const double by = 1.0 / unit;
      c.rows([&](Row i, int) {
        first.v.r[i] =
            static_cast<float>(by * static_cast<double>(scale[i]) * static_cast<double>(v[i]));
      });
    }
    CPUFREE_ONE_COPY
    for (int l = 0; l < last; ++l) {
      OnLevel level(port, levels[l], cycle, 0), below(port, levels[l + 1], cycle, 0);
      if (!level.smooth_first() || !level.restrict_to(port, below, cycle)) return false;
    }
    if (!solve_last(port, levels[last], cycle, last > 0)) return false;
    CPUFREE_ONE_COPY
    for (int l = last - 1; l >= 0; --l) {
      OnLevel level(port, levels[l], cycle, 3), below(port, levels[l + 1], cycle, 0);
      if (!level.prolongate_from(port, below) || !level.smooth_again(l > 0)) return false;
    }
    if (port.lane() == 0) cycles = cycle + 1;
    port.sync_block();
    return true;
  }

 private:
  template <class P, class F>
  CPUFREE_KERNEL_FN static bool solve_last(P& port, const CycleLevel<F>& last, Epoch cycle,
                                           bool tell) {
    OnLevel level(port, last, cycle, 0);
    if (last.solves) return level.solve();
    return level.smooth_first() && level.smooth_again(tell);
  }
};

}  // namespace cpufree
