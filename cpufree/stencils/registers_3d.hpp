// Tiles in registers: three dimensions, for blocks that are made of warps.
//
// Warp y holds row y of the block's tile, in all of its Z planes (or Z - 1); lane l of it the
// columns C l and on. Neighbours along axis 0 are the thread's own, those beside come from the next
// lane, the rows above and below through shared memory.
//
//   bytes         C Z values a thread: 32 floats of 512 threads are 64 KB, a tile of 8 x 16 x 128
//   work          5 additions, 1 multiplication and 1 selection a point; 2 shuffles, 2 selections
//                 and 4 accesses to shared memory for C points: 9 instructions a point where C = 4
//   shared memory 3 values moved for a point; the planes before and after the tile lie there too
//
// In place without copies: planes lie in Z + 1 slots. Going down, plane z moves from slot z + 1 to
// z, going up the other way; so they go down and up in turn, and every slot stays a register.
//
// The rows in shared memory have one copy. A warp reads those beside it while it computes, and
// writes its own after the barrier in the exchange's tell(), behind which all have computed (write
// after read); a barrier of receive() lies between that and the next iteration (read after write).
// The exchange, after every iteration, keeps the same order for what it leaves in shared memory: it
// writes that after the barrier of tell(), and before a barrier, or what a warp itself reads.
#pragma once

#include "cpufree/stencils/iterate.hpp"
#include "cpufree/stencils/tile3d_packets.hpp"
#include "cpufree/stencils/tile_values.hpp"

namespace cpufree {

template <WarpPort P, class T, int C, int Z, bool kSource>
class Tile3d {
 public:
  using Exchange = Tile3dPackets<P, T, C, Z, kSource>;

  // Starts with the values of `args`. Ends with a block barrier.
  CPUFREE_KERNEL_FN Tile3d(P& port, const TileArgs<T>& tile, const typename Exchange::Links& links,
                           const JacobiArgs<T>& args)
      : port_(port), exchange_(port, tile, links, args.mailboxes) {
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) owned_[c] = here().column() + c < here().width();
    load(args);
    port.sync_block();
  }

  CPUFREE_KERNEL_FN Epoch exchanges() const { return exchange_.epoch(); }
  CPUFREE_KERNEL_FN std::int32_t steps(std::int32_t) const { return 1; }

  CPUFREE_KERNEL_FN void advance(std::int32_t, bool measured, Change<P>& change) {
    if constexpr (!P::computes) {
      touch();
    } else if (here().works()) {
      if (measured)
        odd_ ? sweep<false, true>(change) : sweep<true, true>(change);
      else
        odd_ ? sweep<false, false>(change) : sweep<true, false>(change);
    }
    odd_ = !odd_;
  }

  CPUFREE_KERNEL_FN void send() {
    exchange_.begin();
    if (here().works())
      odd_ ? exchange_.template hand_out<0>(slot_) : exchange_.template hand_out<1>(slot_);
    exchange_.tell();
    if (here().works()) odd_ ? leave_rows<0>() : leave_rows<1>();
  }
  CPUFREE_KERNEL_FN bool receive() { return exchange_.receive(); }

  // Writes the owned points to the result.
  CPUFREE_KERNEL_FN void store(const GridView<T>& out) {
    port_.sync_block();  // the warps beside have read my row
    if (!here().works()) return;
    odd_ ? leave_rows<0>() : leave_rows<1>();
    for (int z = 0; z < here().depth(); ++z)
      for (int c = 0; c < C; ++c)
        if (here().column() + c < here().width())
          place(out, z, here().warp(), here().column() + c) = here().row(z, here().warp())[c];
  }

 private:
  CPUFREE_KERNEL_FN const Tile3dPlace<P, T, C, Z>& here() const { return exchange_.place(); }
  CPUFREE_KERNEL_FN bool there(int z) const { return z < Z - 1 || here().full(); }

  template <class V>
  CPUFREE_KERNEL_FN V& place(const GridView<V>& view, std::int32_t z, std::int32_t y,
                             std::int32_t x) const {
    const TileShape& s = here().tile().shape;
    return view(s.origin[0] + s.lo[0] + z, s.origin[1] + s.lo[1] + y, s.origin[2] + s.lo[2] + x);
  }

  // My points, and the halo before the first iteration: the values there, or those that it keeps.
  // Through shared memory, so that loops are loops: registers have no numbers.
  CPUFREE_KERNEL_FN void load(const JacobiArgs<T>& args) {
    if (!here().works()) return;
    const std::int32_t last = here().height() - 1;
    for (int z = -1; z <= here().depth(); ++z)
      for (int c = 0; c < C; ++c) {
        const auto value = [&](std::int32_t y) {
          const std::int32_t x = here().column() + c;
          return x < here().width() ? static_cast<T>(place(args.start, z, y, x)) : T{};
        };
        here().row(z == here().depth() ? Z : z, here().warp())[c] = value(here().warp());
        if (z < 0 || z == here().depth()) continue;
        if (here().warp() == 0) here().row(z, -1)[c] = value(-1);
        if (here().warp() == last) here().row(z, last + 1)[c] = value(last + 1);
        if constexpr (kSource)
          here().source(z)[c] = here().column() + c < here().width()
                                    ? place(args.source, z, here().warp(), here().column() + c)
                                    : T{};
      }
    for (int c = 0; c < C; ++c)
      if (!here().full()) here().row(Z - 1, here().warp())[c] = T{};
    CPUFREE_UNROLL
    for (int z = 0; z < Z; ++z) load_pack(here().row(z, here().warp()), slot_[z + 1]);
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) slot_[0][c] = T{};
    const std::int32_t z = port_.warp_lane() % 16;
    const int side = port_.warp_lane() / 16;
    if (z < here().depth())
      here().edge(side)[z] = place(args.start, z, here().warp(), side == 0 ? -1 : here().width());
    else if (z < Z)
      here().edge(side)[z] = T{};
  }

  // For studies without computing: the compiler is not to know that values are those of before.
  CPUFREE_KERNEL_FN void touch() {
    CPUFREE_UNROLL
    for (int z = 0; z < Z + 1; ++z) {
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) slot_[z][c] = port_.in_register(slot_[z][c]);
    }
  }

  // One iteration. kDown: plane z lies in slot z + 1 and goes to slot z, else the other way.
  template <bool kDown, bool kMeasured>
  CPUFREE_KERNEL_FN void sweep(Change<P>& change) {
    constexpr int from = kDown ? 1 : 0, to = 1 - from;
    T before[C], after[C];
    load_pack(here().row(-1, here().warp()), before);
    load_pack(here().row(Z, here().warp()), after);
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c)
      if (!here().full()) slot_[Z - 1 + from][c] = after[c];
    const bool first = port_.warp_lane() == 0, final_lane = port_.warp_lane() == P::warp_width - 1;
    const T* const beside = here().edge(first ? 0 : 1);
    CPUFREE_UNROLL
    for (int q = 0; q < Z; ++q) {
      const int z = kDown ? q : Z - 1 - q;
      const T halo = beside[z];
      T centre[C], north[C], south[C], f[C] = {};
      load_pack(here().row(z, here().warp() - 1), north);
      load_pack(here().row(z, here().warp() + 1), south);
      if constexpr (kSource) load_pack(here().source(z), f);
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) centre[c] = owned_[c] ? slot_[z + from][c] : halo;
      T left = port_.warp_up(centre[C - 1]);
      T right = port_.warp_down(centre[0]);
      if (first) left = halo;
      if (final_lane) right = halo;
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) {
        const ValuesAround<T> u{z == 0 ? before[c] : slot_[z == 0 ? 0 : z - 1 + from][c],
                                z == Z - 1 ? after[c] : slot_[z == Z - 1 ? 0 : z + 1 + from][c],
                                north[c],
                                south[c],
                                c == 0 ? left : centre[c == 0 ? 0 : c - 1],
                                c == C - 1 ? right : centre[c == C - 1 ? c : c + 1],
                                f[c]};
        const T value = port_.product(kJacobiWeight<3, T>, jacobi_sum<3, kSource>(u));
        if constexpr (kMeasured)
          if (owned_[c] && there(z))
            change.add(0, static_cast<double>(centre[c]), static_cast<double>(value));
        slot_[z + to][c] = value;
      }
    }
  }

  // Leaves my row where the warps beside read it.
  template <int kFrom>
  CPUFREE_KERNEL_FN void leave_rows() {
    CPUFREE_UNROLL
    for (int z = 0; z < Z; ++z) store_pack(here().row(z, here().warp()), slot_[z + kFrom]);
  }

  P& port_;
  Exchange exchange_;
  T slot_[Z + 1][C];
  bool owned_[C];
  bool odd_ = false;  // planes lie in slots z, else z + 1
};

// Jacobi iterations in three dimensions, on tiles that fit C columns of a warp's lanes, as many
// rows as the block has warps, and Z planes.
template <int C, int Z, bool kSource, WarpPort P, class T>
CPUFREE_KERNEL_FN void tile3d_kernel(P& port, const JacobiArgs<T>& args) {
  using Worker = Tile3d<P, T, C, Z, kSource>;
  using Links = typename Worker::Exchange::Links;
  typename P::template Kept<TileArgs<T>> tile = port.keep(args.tiles[port.block()]);
  typename P::template Kept<Links> links =
      port.keep(Worker::Exchange::links_of(port, tile, args.mailboxes));
  Worker worker(port, tile, links, args);
  Checks<P> checks(port, args.slots, args.tolerance);
  JacobiState state;
  if (!iterate(args, worker, checks, state)) return;
  worker.store(args.out);
  keep_rim(port, tile.shape, args.start, args.out);
  report_end(port, args, state, checks, worker.exchanges());
}

}  // namespace cpufree
