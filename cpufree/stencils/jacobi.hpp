// The Jacobi kernel: what every block of every PE runs, from the first values to the last.
//
// A block owns a tile for the whole run, on chip where it fits. It computes `layers` iterations at
// a time, exchanges halos with the tiles next to it, and goes on. Every `check_every` iterations
// the blocks add up how many points still change; the host's word travels with that sum. Without a
// tolerance the sum is not waited for until the next check: it costs nothing.
#pragma once

#include <limits>

#include "cpufree/device/allreduce.hpp"
#include "cpufree/stencils/edges.hpp"

namespace cpufree {

// Copies the stored points of the grid from `view` to where row(i0, i1) says.
template <Port P, class T, class F>
CPUFREE_KERNEL_FN void load_tile(P& port, const TileShape& s, const GridView<const T>& view,
                                 F&& row_at) {
  const TileBox box{{s.grid_lo[0], s.grid_lo[1], s.grid_lo[2]},
                    {s.grid_hi[0], s.grid_hi[1], s.grid_hi[2]}};
  each_row(port, box, [&](std::int32_t i0, std::int32_t i1) {
    T* const row = row_at(i0, i1);
    each_point(port, box.lo[2], box.hi[2], [&](std::int32_t x) {
      row[x] = view(s.origin[0] + i0, s.origin[1] + i1, s.origin[2] + x);
    });
  });
}

// Copies the owned points, and those next to them that keep their values, to `view`.
template <Port P, class T>
CPUFREE_KERNEL_FN void store_tile(P& port, const TileShape& s, const Layer<T>& values,
                                  const GridView<T>& view) {
  const TileBox box{{s.out_lo[0], s.out_lo[1], s.out_lo[2]},
                    {s.out_hi[0], s.out_hi[1], s.out_hi[2]}};
  each_row(port, box, [&](std::int32_t i0, std::int32_t i1) {
    const T* const row = values.row(s, i0, i1);
    each_point(port, box.lo[2], box.hi[2], [&](std::int32_t x) {
      view(s.origin[0] + i0, s.origin[1] + i1, s.origin[2] + x) = row[x];
    });
  });
}

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
template <class T>
struct JacobiState {
  Layer<T> values;
  std::int64_t iteration = 0;
  // The thread's largest update when last measured.
  double update = std::numeric_limits<double>::quiet_NaN();
};

// Iterates to the end. False: leave the kernel.
template <int D, bool kSource, Port P, class T>
CPUFREE_KERNEL_FN bool iterate(P& port, const JacobiArgs<T>& args, const TileArgs<T>& tile,
                               Edges<P, T>& edges, Checks<P>& checks, JacobiState<T>& state) {
  std::int64_t next_check = 0;
  while (state.iteration < args.iterations) {
    if (state.iteration == next_check) next_check += args.check_every;
    const std::int64_t stop = next_check < args.iterations ? next_check : args.iterations;
    const std::int64_t left = stop - state.iteration;
    const auto steps = static_cast<std::int32_t>(left < args.layers ? left : args.layers);
    const bool check = steps == left;
    Change<P> change{args.tolerance, {}, {}, {}};
    const bool last = stop == args.iterations && check;
    const bool measured = last || (check && checks.waits());
    state.values = advance<D, kSource>(port, tile.shape, state.values, tile.source, steps,
                                       measured ? &change : nullptr);
    state.iteration += steps;
    if (measured) state.update = change.most();
    if (last && !checks.waits()) return true;
    if (check && !checks.waits() && !checks.pull()) return false;  // of the check before
    if (checks.reason() != StencilReason::all_done) return true;
    if (check) checks.push(change, state.iteration);
    if (!last) edges.send(state.values);
    if (check && checks.waits() && !checks.pull()) return false;
    if (last || checks.reason() != StencilReason::all_done) return true;
    if (!edges.receive(state.values)) return false;
  }
  return true;
}

// Jacobi iterations on a grid of D dimensions, with or without a source term.
template <int D, bool kSource, Port P, class T>
CPUFREE_KERNEL_FN void jacobi_kernel(P& port, const JacobiArgs<T>& args) {
  TileArgs<T> mine = args.tiles[port.block()];
  if (args.in_fast_memory) mine.values = reinterpret_cast<T*>(port.fast_memory()) + mine.shape.lead;
  typename P::template Kept<TileArgs<T>> tile = port.keep(mine);
  const TileShape& s = tile.shape;
  JacobiState<T> state{{tile.values, 0}};
  load_tile(port, s, args.start,
            [&](std::int32_t i0, std::int32_t i1) { return state.values.row(s, i0, i1); });
  if constexpr (kSource)
    load_tile(port, s, args.source, [&](std::int32_t i0, std::int32_t i1) {
      return tile.source + i0 * s.plane + i1 * s.row;
    });
  port.sync_block();
  Edges<P, T> edges(port, tile, args.mailboxes);
  Checks<P> checks(port, args.slots, args.tolerance);
  if (!iterate<D, kSource>(port, args, tile, edges, checks, state)) return;
  store_tile(port, s, state.values, args.out);
  args.updates[port.block() * port.lanes() + port.lane()] = state.update;
  if (port.pe() != 0 || port.block() != 0 || port.lane() != 0) return;
  args.outcome->iterations = state.iteration;
  args.outcome->exchanges = static_cast<std::int64_t>(edges.epoch());
  args.outcome->checks = checks.count();
  args.outcome->reason = checks.reason();
  if (checks.waits() && checks.reason() == StencilReason::all_done)
    args.outcome->reason = StencilReason::not_converged;
}

}  // namespace cpufree
