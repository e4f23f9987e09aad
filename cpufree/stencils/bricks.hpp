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
// In place without copies: planes lie in Z + 1 slots and go down and up in turn, as rows do in
// registers.hpp.
//
// The rows in shared memory have one copy. A warp reads those beside it while it computes, and
// writes its own after the barrier in `tell_neighbours`, behind which all have computed (write
// after read); the barrier that ends `await_neighbours` lies between that and the next iteration
// (read after write). Halo rows and columns are written and read by the same warp.
//
// Exchange: values and flags after every iteration. A thread stores its values straight into the
// mailbox of the neighbour, 16 bytes at a time, in the order in which the thread at the same place
// of the neighbour reads them. The block's flags say that all of them are there: visible, because
// the flag was stored after `publish`, and read after `acquire`.
//
// Mailboxes (write after read): two parities. Block a writes the mailbox of exchange e again in e +
// 2, after it has waited for the flags of e + 1, b's among them. b told these behind a barrier,
// before which all of its threads had read the mailbox of e, for they read it at the end of
// receive(e).
#pragma once

#include "cpufree/device/warp_port.hpp"
#include "cpufree/stencils/brick_shape.hpp"
#include "cpufree/stencils/iterate.hpp"
#include "cpufree/stencils/neighbours.hpp"
#include "cpufree/stencils/tile_values.hpp"

namespace cpufree {

// Mailboxes of a tile's six sides: 0 and 1 across axis 0, 2 and 3 axis 1, 4 and 5 axis 2.
struct BrickLinks {
  std::int64_t get[6] = {-1, -1, -1, -1, -1, -1};  // in my memory; negative: nobody
  std::int64_t put[6] = {-1, -1, -1, -1, -1, -1};  // in theirs
  std::int32_t pe[6] = {};
};

CPUFREE_KERNEL_FN int side_of_brick(const TileShape& s, const TileEdge& halo) {
  for (int a = 0; a < 2; ++a) {
    if (halo.hi[a] <= s.lo[a]) return 2 * a;
    if (halo.lo[a] >= s.hi[a]) return 2 * a + 1;
  }
  return halo.hi[2] <= s.lo[2] ? 4 : 5;
}

template <class P, class T>
CPUFREE_KERNEL_FN BrickLinks brick_links_of(const P& port, const TileArgs<T>& tile) {
  BrickLinks links;
  for (std::int32_t e = 0; e < tile.edges; ++e) {  // sends and receives are in the same order
    const TileEdge& edge = tile.receives[e];
    if (!exchanges_with(port, edge.pe)) continue;
    const int side = side_of_brick(tile.shape, edge);
    links.get[side] = edge.mailbox;
    links.put[side] = tile.sends[e].mailbox;
    links.pe[side] = edge.pe;
  }
  return links;
}

template <WarpPort P, class T, int C, int Z, bool kSource>
class BrickTile {
 public:
  static_assert(Z <= 16, "half a warp receives the columns of one side");
  static_assert(Z % (16 / sizeof(T)) == 0, "columns are sent 16 bytes at a time");

  // Starts with the values of `args`. Ends with a block barrier.
  CPUFREE_KERNEL_FN BrickTile(P& port, const TileArgs<T>& tile, const BrickLinks& links,
                              const JacobiArgs<T>& args)
      : port_(port), tile_(tile), links_(links), mailboxes_(args.mailboxes) {
    warp_ = port.warp();
    works_ = warp_ < height();
    full_ = depth() == Z;
    column_ = port.warp_lane() * C;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) owned_[c] = column_ + c < width();
    load(args);
    port.sync_block();
  }

  CPUFREE_KERNEL_FN Epoch exchanges() const { return epoch_; }
  CPUFREE_KERNEL_FN std::int32_t steps(std::int32_t) const { return 1; }

  CPUFREE_KERNEL_FN void advance(std::int32_t, bool measured, Change<P>& change) {
    if constexpr (!P::computes) {
      touch();
    } else if (works_) {
      if (measured)
        odd_ ? sweep<false, true>(change) : sweep<true, true>(change);
      else
        odd_ ? sweep<false, false>(change) : sweep<true, false>(change);
    }
    odd_ = !odd_;
  }

  CPUFREE_KERNEL_FN void send() {
    ++epoch_;
    if (works_) odd_ ? hand_out<0>() : hand_out<1>();
    tell_neighbours(port_, tile_, mailboxes_.flags, epoch_);
    if (works_) odd_ ? leave_rows<0>() : leave_rows<1>();
  }

  CPUFREE_KERNEL_FN bool receive() {
    if (!await_neighbours(port_, tile_, mailboxes_.flags, epoch_)) return false;
    if (works_) take();
    return true;
  }

  // Writes the owned points to the result.
  CPUFREE_KERNEL_FN void store(const GridView<T>& out) {
    port_.sync_block();  // the warps beside have read my row
    if (!works_) return;
    odd_ ? leave_rows<0>() : leave_rows<1>();
    for (int z = 0; z < depth(); ++z)
      for (int c = 0; c < C; ++c)
        if (column_ + c < width()) place(out, z, warp_, column_ + c) = row(z, warp_)[c];
  }

 private:
  using Room = BrickRoom<T, C, Z>;
  static constexpr int kPack = 16 / static_cast<int>(sizeof(T));  // of columns

  CPUFREE_KERNEL_FN std::int32_t extent(int a) const {
    return tile_.shape.hi[a] - tile_.shape.lo[a];
  }
  CPUFREE_KERNEL_FN std::int32_t depth() const { return extent(0); }
  CPUFREE_KERNEL_FN std::int32_t height() const { return extent(1); }
  CPUFREE_KERNEL_FN std::int32_t width() const { return extent(2); }
  CPUFREE_KERNEL_FN bool there(int z) const { return z < Z - 1 || full_; }
  CPUFREE_KERNEL_FN T* memory() const { return reinterpret_cast<T*>(port_.fast_memory()); }
  CPUFREE_KERNEL_FN T* row(int z, int y) const {
    return memory() + Room::row(port_.warps(), z, y) + column_;
  }
  CPUFREE_KERNEL_FN T* edge(int side) const {
    return memory() + Room::edge(port_.warps(), warp_) + side * Z;
  }
  CPUFREE_KERNEL_FN T* source(int z) const {
    return memory() + Room::source(port_.warps(), z, warp_) + column_;
  }

  template <class V>
  CPUFREE_KERNEL_FN V& place(const GridView<V>& view, std::int32_t z, std::int32_t y,
                             std::int32_t x) const {
    const TileShape& s = tile_.shape;
    return view(s.origin[0] + s.lo[0] + z, s.origin[1] + s.lo[1] + y, s.origin[2] + s.lo[2] + x);
  }

  // My points, and the halo before the first iteration: the values there, or those that it keeps.
  // Through shared memory, so that loops are loops: registers have no numbers.
  CPUFREE_KERNEL_FN void load(const JacobiArgs<T>& args) {
    if (!works_) return;
    const std::int32_t last = height() - 1;
    for (int z = -1; z <= depth(); ++z)
      for (int c = 0; c < C; ++c) {
        const auto value = [&](std::int32_t y) {
          const std::int32_t x = column_ + c;
          return x < width() ? static_cast<T>(place(args.start, z, y, x)) : T{};
        };
        row(z == depth() ? Z : z, warp_)[c] = value(warp_);
        if (z < 0 || z == depth()) continue;
        if (warp_ == 0) row(z, -1)[c] = value(-1);
        if (warp_ == last) row(z, last + 1)[c] = value(last + 1);
        if constexpr (kSource)
          source(z)[c] = column_ + c < width() ? place(args.source, z, warp_, column_ + c) : T{};
      }
    for (int c = 0; c < C; ++c)
      if (!full_) row(Z - 1, warp_)[c] = T{};
    CPUFREE_UNROLL
    for (int z = 0; z < Z; ++z) load_pack(row(z, warp_), slot_[z + 1]);
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) slot_[0][c] = T{};
    const std::int32_t z = port_.warp_lane() % 16;
    const int side = port_.warp_lane() / 16;
    if (z < depth())
      edge(side)[z] = place(args.start, z, warp_, side == 0 ? -1 : width());
    else if (z < Z)
      edge(side)[z] = T{};
  }

  // For studies without computing: the compiler is not to know that values are those of before.
  CPUFREE_KERNEL_FN void touch() {
    CPUFREE_UNROLL
    for (int z = 0; z < Z + 1; ++z) {
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) slot_[z][c] = port_.at_hand(slot_[z][c]);
    }
  }

  // One iteration. kDown: plane z lies in slot z + 1 and goes to slot z, else the other way.
  template <bool kDown, bool kMeasured>
  CPUFREE_KERNEL_FN void sweep(Change<P>& change) {
    constexpr int from = kDown ? 1 : 0, to = 1 - from;
    T before[C], after[C];
    load_pack(row(-1, warp_), before);
    load_pack(row(Z, warp_), after);
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c)
      if (!full_) slot_[Z - 1 + from][c] = after[c];
    const bool first = port_.warp_lane() == 0, final_lane = port_.warp_lane() == kWarp - 1;
    const T* const beside = edge(first ? 0 : 1);
    CPUFREE_UNROLL
    for (int q = 0; q < Z; ++q) {
      const int z = kDown ? q : Z - 1 - q;
      const T halo = beside[z];
      T centre[C], north[C], south[C], f[C] = {};
      load_pack(row(z, warp_ - 1), north);
      load_pack(row(z, warp_ + 1), south);
      if constexpr (kSource) load_pack(source(z), f);
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

  // Where a side's mailbox lies at this exchange.
  CPUFREE_KERNEL_FN T* mailbox(std::int64_t place) const {
    return mailboxes_.values + static_cast<std::int64_t>(epoch_ & 1U) * mailboxes_.size + place;
  }
  template <int N>
  CPUFREE_KERNEL_FN void put(int side, std::int64_t place, const T (&values)[N]) {
    Pack<T, N> pack;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) pack.value[k] = values[k];
    port_.put(reinterpret_cast<Pack<T, N>*>(mailbox(links_.put[side] + place)), links_.pe[side],
              pack);
  }

  // Sends what the blocks around need: planes lie in slots z + kFrom.
  template <int kFrom>
  CPUFREE_KERNEL_FN void hand_out() {
    const std::int64_t mine = warp_ * Room::kWidth + column_;
    if (links_.put[0] >= 0) put(0, mine, slot_[kFrom]);
    if (links_.put[1] >= 0) {
      T last[C];
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c)
        last[c] = full_ ? slot_[Z - 1 + kFrom][c] : slot_[Z - 2 + kFrom][c];
      put(1, mine, last);
    }
    for (int side = 2; side < 4; ++side) {
      if (links_.put[side] < 0 || warp_ != (side == 2 ? 0 : height() - 1)) continue;
      CPUFREE_UNROLL
      for (int z = 0; z < Z; ++z) put(side, z * Room::kWidth + column_, slot_[z + kFrom]);
    }
    const std::int32_t last = width() - 1;
    if (port_.warp_lane() == 0) put_columns<kFrom>(4, 0);
    if (port_.warp_lane() == last / C) put_columns<kFrom>(5, last % C);
  }

  // My column `c` of all planes.
  template <int kFrom>
  CPUFREE_KERNEL_FN void put_columns(int side, std::int32_t c) {
    if (links_.put[side] < 0) return;
    CPUFREE_UNROLL
    for (int z = 0; z < Z; z += kPack) {
      T values[kPack];
      CPUFREE_UNROLL
      for (int k = 0; k < kPack; ++k) {
        values[k] = slot_[z + k + kFrom][0];
        CPUFREE_UNROLL
        for (int j = 1; j < C; ++j)
          if (c == j) values[k] = slot_[z + k + kFrom][j];
      }
      put(side, warp_ * Z + z, values);
    }
  }

  // Leaves my row where the warps beside read it.
  template <int kFrom>
  CPUFREE_KERNEL_FN void leave_rows() {
    CPUFREE_UNROLL
    for (int z = 0; z < Z; ++z) store_pack(row(z, warp_), slot_[z + kFrom]);
  }

  // My part of the halo, out of the mailboxes to where `sweep` reads it.
  CPUFREE_KERNEL_FN void take() {
    const std::int64_t mine = warp_ * Room::kWidth + column_;
    const std::int32_t r = port_.warp_lane() % 16;
    const int beside = port_.warp_lane() / 16;
    if (r < Z && links_.get[4 + beside] >= 0)
      edge(beside)[r] = *from(links_.get[4 + beside] + warp_ * Z + r);
    for (int side = 0; side < 2; ++side) {
      if (links_.get[side] < 0) continue;
      T values[C];
      load_pack(from(links_.get[side] + mine), values);
      store_pack(row(side == 0 ? -1 : Z, warp_), values);
    }
    for (int side = 2; side < 4; ++side) {
      if (links_.get[side] < 0 || warp_ != (side == 2 ? 0 : height() - 1)) continue;
      const T* const rows = from(links_.get[side] + column_);
      const int y = side == 2 ? -1 : height();
      CPUFREE_UNROLL
      for (int z = 0; z < Z; ++z) {
        T values[C];
        load_pack(rows + z * Room::kWidth, values);
        store_pack(row(z, y), values);
      }
    }
    port_.warp_sync();
  }
  CPUFREE_KERNEL_FN const T* from(std::int64_t place) const {
    return port_.in_memory(mailbox(place));
  }

  P& port_;
  const TileArgs<T>& tile_;
  const BrickLinks& links_;
  const Mailboxes<T>& mailboxes_;
  T slot_[Z + 1][C];
  bool owned_[C];
  std::int32_t warp_, column_;
  bool works_, full_;
  bool odd_ = false;  // planes lie in slots z, else z + 1
  Epoch epoch_ = 0;
};

// Jacobi iterations in three dimensions, on tiles that fit C columns of a warp's lanes, as many
// rows as the block has warps, and Z planes.
template <int C, int Z, bool kSource, WarpPort P, class T>
CPUFREE_KERNEL_FN void brick_kernel(P& port, const JacobiArgs<T>& args) {
  typename P::template Kept<TileArgs<T>> tile = port.keep(args.tiles[port.block()]);
  typename P::template Kept<BrickLinks> links = port.keep(brick_links_of(port, tile));
  BrickTile<P, T, C, Z, kSource> worker(port, tile, links, args);
  Checks<P> checks(port, args.slots, args.tolerance);
  JacobiState state;
  if (!iterate(args, worker, checks, state)) return;
  worker.store(args.out);
  keep_rim(port, tile.shape, args.start, args.out);
  report_end(port, args, state, checks, worker.exchanges());
}

}  // namespace cpufree
