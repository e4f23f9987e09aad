// The Jacobi kernel: what every block of every PE runs, from the first values to the last.
//
// A block owns a tile for the whole run, on chip where it fits. It computes `layers` iterations at
// a time, exchanges halos with the tiles next to it, and goes on. Every `check_every` iterations
// the blocks add up how many points still change; the host's word travels with that sum. Without a
// tolerance the sum is not waited for until the next check: it costs nothing.
#pragma once

#include "cpufree/stencils/edges.hpp"
#include "cpufree/stencils/iterate.hpp"

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

// A tile in memory, swept by a wavefront.
template <int D, bool kSource, Port P, class T>
class WavefrontTile {
 public:
  CPUFREE_KERNEL_FN WavefrontTile(P& port, const TileArgs<T>& tile, const Mailboxes<T>& mailboxes)
      : port_(port), tile_(tile), edges_(port, tile, mailboxes), values_{tile.values, 0} {}

  CPUFREE_KERNEL_FN const Layer<T>& values() const { return values_; }
  CPUFREE_KERNEL_FN Epoch exchanges() const { return edges_.epoch(); }

  CPUFREE_KERNEL_FN std::int32_t steps(std::int32_t most) const { return most; }
  CPUFREE_KERNEL_FN void advance(std::int32_t steps, bool measured, Change<P>& change) {
    if constexpr (P::computes)
      values_ = cpufree::advance<D, kSource>(port_, tile_.shape, values_, tile_.source, steps,
                                             measured ? &change : nullptr);
    else
      port_.sync_block();  // which ends it
  }
  CPUFREE_KERNEL_FN void send() { edges_.send(values_); }
  CPUFREE_KERNEL_FN bool receive() { return edges_.receive(values_); }

 private:
  P& port_;
  const TileArgs<T>& tile_;
  Edges<P, T> edges_;
  Layer<T> values_;
};

// Jacobi iterations on a grid of D dimensions, with or without a source term.
template <int D, bool kSource, Port P, class T>
CPUFREE_KERNEL_FN void jacobi_kernel(P& port, const JacobiArgs<T>& args) {
  TileArgs<T> mine = args.tiles[port.block()];
  if (args.in_fast_memory) mine.values = reinterpret_cast<T*>(port.fast_memory()) + mine.shape.lead;
  typename P::template Kept<TileArgs<T>> tile = port.keep(mine);
  const TileShape& s = tile.shape;
  WavefrontTile<D, kSource, P, T> worker(port, tile, args.mailboxes);
  load_tile(port, s, args.start,
            [&](std::int32_t i0, std::int32_t i1) { return worker.values().row(s, i0, i1); });
  if constexpr (kSource)
    load_tile(port, s, args.source, [&](std::int32_t i0, std::int32_t i1) {
      return tile.source + i0 * s.plane + i1 * s.row;
    });
  port.sync_block();
  Checks<P> checks(port, args.slots, args.tolerance);
  JacobiState state;
  if (!iterate(args, worker, checks, state)) return;
  store_tile(port, s, worker.values(), args.out);
  report_end(port, args, state, checks, worker.exchanges());
}

}  // namespace cpufree
