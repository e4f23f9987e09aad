// Sweeps of values that stay in memory, for blocks that are made of warps: K iterations in one
// pass.
//
// Memory holds the box of a PE twice. A pass reads one copy and writes the other: 2 values moved
// for a point and K iterations. A warp streams along axis 0 over a strip of the columns, 16 bytes
// of a row to a lane, and keeps of every iteration the last two planes in registers. What comes in
// as the next plane of iteration 0 goes down the chain: plane y - t of iteration t is computed when
// plane y has been read. Columns beside come from the next lane. There is no shared memory and no
// barrier in it.
//
// Strips overlap: a warp computes more columns than it stores, on either side as many lanes as K
// columns take, and begins K planes before its first. In three dimensions the block's warps go
// together, K is 2 at most, and all of a window is stored (plane_pass.hpp).
//
// Points that keep their values, and those beyond them, are computed to be what they were. What
// lies outside of a tile's reach is computed too, from whatever is there, and never used.
//
// Between passes. Block a's tile depends on, and is read by, those at most K points away: the tiles
// with which it exchanges (make_tiling; diagonal ones too where K > 1), and these alone. Pass p of
// a begins when all of them have told the end of their pass p - 1. So
//   - what it reads, copy p of the values, was written before, in pass p - 1, by a or by one of
//     them: `publish` and `acquire` order it (read after write);
//   - what it writes, copy p + 1, was read last in pass p - 1, by a or by one of them, and all
//   these
//     have ended (write after read).
// Other PEs (and this one, across a periodic boundary) read ghosts: copies of points in their own
// memory. The block that has computed the points writes them there at the end of its pass, before
// it tells, into the same of the two boxes: the same holds for them.
#pragma once

#include "cpufree/device/pack.hpp"
#include "cpufree/stencils/iterate.hpp"
#include "cpufree/stencils/neighbours.hpp"
#include "cpufree/stencils/plane_pass.hpp"
#include "cpufree/stencils/sweep.hpp"
#include "cpufree/stencils/time_tile_pass.hpp"

namespace cpufree {

// A block's part of the values in memory.
template <int D, int K, bool kSource, WarpPort P, class T>
class TimeTile {
 public:
  CPUFREE_KERNEL_FN TimeTile(P& port, const TileArgs<T>& tile, const TimeTileArgs<T>& args,
                             const TimeTilePart& part, Flag* flags)
      : port_(port), tile_(tile), args_(args), part_(part), flags_(flags) {}

  CPUFREE_KERNEL_FN Epoch exchanges() const { return epoch_; }
  CPUFREE_KERNEL_FN int copy() const { return copy_; }

  // A kernel has passes of K iterations, and of one for what is left.
  CPUFREE_KERNEL_FN std::int32_t steps(std::int32_t most) const { return most >= K ? K : 1; }
  CPUFREE_KERNEL_FN void advance(std::int32_t steps, bool measured, Change<P>& change) {
    if constexpr (P::computes) pass(steps, measured, change);
    copy_ = 1 - copy_;
  }
  CPUFREE_KERNEL_FN void send() {
    if (part_.ghosts > 0) {
      port_.sync_block();  // the copies are made of what all warps have written
      for (std::int32_t g = 0; g < part_.ghosts; ++g) {
        // In registers: stores might change it elsewhere.
        const GhostCopy ghost = args_.ghosts[part_.first_ghost + g];
        if (exchanges_with(port_, ghost.pe)) copy(ghost);
      }
    }
    tell_neighbours(port_, tile_, flags_, ++epoch_);
  }
  CPUFREE_KERNEL_FN bool receive() { return await_neighbours(port_, tile_, flags_, epoch_); }

  // Copies the owned points, and those next to them that keep their values, to the result.
  CPUFREE_KERNEL_FN void store(const GridView<T>& out) const {
    TileBox box;
    CPUFREE_UNROLL
    for (int a = 0; a < 3; ++a) {
      box.lo[a] = part_.lo[a] - (part_.lo[a] == 0 && args_.keep_lo[a] == 0 ? 1 : 0);
      box.hi[a] =
          part_.hi[a] + (part_.hi[a] == args_.end[a] && args_.keep_hi[a] == args_.end[a] ? 1 : 0);
    }
    const T* const values = args_.values[copy_];
    each_row(port_, box, [&](std::int32_t i0, std::int32_t i1) {
      const T* const row = values + i0 * args_.plane + i1 * args_.row;
      T* const to = &out(args_.origin[0] + i0, args_.origin[1] + i1, args_.origin[2] + box.lo[2]);
      each_point(port_, box.lo[2], box.hi[2], [=](std::int32_t x) { to[x - box.lo[2]] = row[x]; });
    });
  }

 private:
  CPUFREE_KERNEL_FN void pass(std::int32_t steps, bool measured, Change<P>& change) {
    steps == K ? pass_of<K>(measured, change) : pass_of<1>(measured, change);
  }
  template <int L>
  CPUFREE_KERNEL_FN void pass_of(bool measured, Change<P>& change) {
    if constexpr (D == 3)
      PlanePass<L, kSource, P, T>(port_, args_, part_, copy_).run(measured, change);
    else
      TimeTilePass2d<L, kSource, P, T>(port_, args_, part_, copy_).run(measured, change);
  }

  // Points of mine, to where another PE holds a copy: 16 bytes at a time where both places are
  // multiples of that, as they are for whole planes and rows.
  CPUFREE_KERNEL_FN void copy(const GhostCopy& ghost) {
    constexpr int C = kStreamColumns<T>;
    const bool aligned = ghost.lo[2] % C == 0 && ghost.shift % C == 0;
    const std::int32_t packs = aligned ? (ghost.hi[2] - ghost.lo[2]) / C : 0;
    if (packs > 0) copy_columns<C>(ghost, ghost.lo[2], packs);
    const std::int32_t rest = ghost.lo[2] + packs * C;
    if (rest < ghost.hi[2]) copy_columns<1>(ghost, rest, ghost.hi[2] - rest);
  }

  // From column `begin` on, that number of times N values of every row. A thread reads kBatch times
  // before it stores: it then waits for memory once for all of them, not for each.
  template <int N>
  CPUFREE_KERNEL_FN void copy_columns(const GhostCopy& ghost, std::int32_t begin,
                                      std::int32_t width) {
    constexpr int kBatch = 4;
    T* const values = args_.values[copy_];
    const std::int32_t height = ghost.hi[1] - ghost.lo[1];
    const std::int32_t all = (ghost.hi[0] - ghost.lo[0]) * height * width;
    for (std::int32_t first = port_.lane(); first < all; first += kBatch * port_.lanes()) {
      std::int64_t place[kBatch];
      Pack<T, N> held[kBatch];
      CPUFREE_UNROLL
      for (int k = 0; k < kBatch; ++k) {
        const std::int32_t q = first + k * port_.lanes();
        const std::int32_t mine = q < all ? q : first;  // beyond the end: one again, for nothing
        const std::int32_t row = mine / width;
        place[k] = (ghost.lo[0] + row / height) * args_.plane +
                   (ghost.lo[1] + row % height) * args_.row + begin + (mine - row * width) * N;
        load_pack(values + place[k], held[k].value);
      }
      CPUFREE_UNROLL
      for (int k = 0; k < kBatch; ++k)
        if (first + k * port_.lanes() < all)
          port_.put(reinterpret_cast<Pack<T, N>*>(values + place[k] + ghost.shift), ghost.pe,
                    held[k]);
    }
  }

  P& port_;
  const TileArgs<T>& tile_;
  const TimeTileArgs<T>& args_;
  const TimeTilePart& part_;
  Flag* flags_;
  int copy_ = 0;
  Epoch epoch_ = 0;
};

// Jacobi iterations on values in memory, K in a pass.
template <int D, int K, bool kSource, WarpPort P, class T>
CPUFREE_KERNEL_FN void time_tile_kernel(P& port, const JacobiArgs<T>& args) {
  typename P::template Kept<TileArgs<T>> tile = port.keep(args.tiles[port.block()]);
  typename P::template Kept<TimeTilePart> part = port.keep(args.time_tile.parts[port.block()]);
  TimeTile<D, K, kSource, P, T> worker(port, tile, args.time_tile, part, args.mailboxes.flags);
  Checks<P> checks(port, args.slots, args.tolerance);
  JacobiState state;
  if (!iterate(args, worker, checks, state)) return;
  port.sync_block();
  worker.store(args.out);
  report_end(port, args, state, checks, worker.exchanges());
}

}  // namespace cpufree
