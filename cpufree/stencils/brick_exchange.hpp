// What the tiles of bricks.hpp have in common with their exchanges of halos, and the exchange by
// values and flags. The other one, by packets: brick_packets.hpp.
//
// An exchange has `Links`, with whom and where, the same for all threads of the block; and, called
// by all of them in this order, once an iteration:
//   begin()              the next one begins;
//   hand_out<kFrom>(s)   by warps that work: sends what the blocks around need. Plane z lies in
//                        s[z + kFrom];
//   tell()               contains a block barrier, and says that all is sent where that is needed;
//   receive()            waits for the halo and leaves it where the tile reads it. Contains a block
//                        barrier. False: leave the kernel.
//
// Values and flags. A thread stores its values straight into the mailbox of the neighbour, 16 bytes
// at a time, in the order in which the thread at the same place of the neighbour reads them. The
// block's flags say that all of them are there: visible, because the flag was stored after
// `publish`, and read after `acquire`.
//
// Mailboxes (write after read): two parities. Block a writes the mailbox of exchange e again in e +
// 2, after it has waited for the flags of e + 1, b's among them. b told these behind a barrier,
// before which all of its threads had read the mailbox of e, for they read it at the end of
// receive(e).
#pragma once

#include "cpufree/device/warp_port.hpp"
#include "cpufree/stencils/args.hpp"
#include "cpufree/stencils/brick_shape.hpp"
#include "cpufree/stencils/neighbours.hpp"

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

// The block's tile, and what shared memory has of it: all that is the same in all iterations.
template <WarpPort P, class T, int C, int Z>
class BrickPlace {
 public:
  using Room = BrickRoom<T, C, Z>;

  CPUFREE_KERNEL_FN BrickPlace(P& port, const TileArgs<T>& tile) : port_(port), tile_(tile) {
    warp_ = port.warp();
    works_ = warp_ < height();
    full_ = depth() == Z;
    column_ = port.warp_lane() * C;
  }

  CPUFREE_KERNEL_FN P& port() const { return port_; }
  CPUFREE_KERNEL_FN const TileArgs<T>& tile() const { return tile_; }
  CPUFREE_KERNEL_FN std::int32_t warp() const { return warp_; }
  CPUFREE_KERNEL_FN std::int32_t column() const { return column_; }  // the thread's first
  CPUFREE_KERNEL_FN bool works() const { return works_; }            // the warp has a row
  CPUFREE_KERNEL_FN bool full() const { return full_; }              // of Z planes, not one less

  CPUFREE_KERNEL_FN std::int32_t extent(int a) const {
    return tile_.shape.hi[a] - tile_.shape.lo[a];
  }
  CPUFREE_KERNEL_FN std::int32_t depth() const { return extent(0); }
  CPUFREE_KERNEL_FN std::int32_t height() const { return extent(1); }
  CPUFREE_KERNEL_FN std::int32_t width() const { return extent(2); }

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

 private:
  P& port_;
  const TileArgs<T>& tile_;
  std::int32_t warp_, column_;
  bool works_, full_;
};

template <WarpPort P, class T, int C, int Z>
class BrickValues {
 public:
  static_assert(Z <= 16, "half a warp receives the columns of one side");
  static_assert(Z % (16 / sizeof(T)) == 0, "columns are sent 16 bytes at a time");
  using Place = BrickPlace<P, T, C, Z>;
  using Links = BrickLinks;

  CPUFREE_KERNEL_FN static Links links_of(const P& port, const TileArgs<T>& tile,
                                          const Mailboxes<T>&) {
    return brick_links_of(port, tile);
  }

  CPUFREE_KERNEL_FN BrickValues(P& port, const TileArgs<T>& tile, const Links& links,
                                const Mailboxes<T>& mailboxes)
      : place_(port, tile), links_(links), mailboxes_(mailboxes) {}

  CPUFREE_KERNEL_FN const Place& place() const { return place_; }
  CPUFREE_KERNEL_FN Epoch epoch() const { return epoch_; }
  CPUFREE_KERNEL_FN void begin() { ++epoch_; }

  template <int kFrom>
  CPUFREE_KERNEL_FN void hand_out(const T (&slot)[Z + 1][C]) {
    const std::int64_t mine = place_.warp() * Room::kWidth + place_.column();
    if (links_.put[0] >= 0) put(0, mine, slot[kFrom]);
    if (links_.put[1] >= 0) {
      T last[C];
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c)
        last[c] = place_.full() ? slot[Z - 1 + kFrom][c] : slot[Z - 2 + kFrom][c];
      put(1, mine, last);
    }
    for (int side = 2; side < 4; ++side) {
      if (links_.put[side] < 0 || place_.warp() != (side == 2 ? 0 : place_.height() - 1)) continue;
      CPUFREE_UNROLL
      for (int z = 0; z < Z; ++z) put(side, z * Room::kWidth + place_.column(), slot[z + kFrom]);
    }
    const std::int32_t last = place_.width() - 1;
    if (port().warp_lane() == 0) put_columns<kFrom>(slot, 4, 0);
    if (port().warp_lane() == last / C) put_columns<kFrom>(slot, 5, last % C);
  }

  CPUFREE_KERNEL_FN void tell() {
    tell_neighbours(port(), place_.tile(), mailboxes_.flags, epoch_);
  }

  CPUFREE_KERNEL_FN bool receive() {
    if (!await_neighbours(port(), place_.tile(), mailboxes_.flags, epoch_)) return false;
    if (place_.works()) take();
    return true;
  }

 private:
  using Room = BrickRoom<T, C, Z>;
  static constexpr int kPack = 16 / static_cast<int>(sizeof(T));  // of columns

  CPUFREE_KERNEL_FN P& port() const { return place_.port(); }

  // Where a side's mailbox lies at this exchange.
  CPUFREE_KERNEL_FN T* mailbox(std::int64_t at) const {
    return mailboxes_.values + static_cast<std::int64_t>(epoch_ & 1U) * mailboxes_.size + at;
  }
  template <int N>
  CPUFREE_KERNEL_FN void put(int side, std::int64_t at, const T (&values)[N]) {
    Pack<T, N> pack;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) pack.value[k] = values[k];
    port().put(reinterpret_cast<Pack<T, N>*>(mailbox(links_.put[side] + at)), links_.pe[side],
               pack);
  }

  // Column `c` of the thread, of all planes.
  template <int kFrom>
  CPUFREE_KERNEL_FN void put_columns(const T (&slot)[Z + 1][C], int side, std::int32_t c) {
    if (links_.put[side] < 0) return;
    CPUFREE_UNROLL
    for (int z = 0; z < Z; z += kPack) {
      T values[kPack];
      CPUFREE_UNROLL
      for (int k = 0; k < kPack; ++k) {
        values[k] = slot[z + k + kFrom][0];
        CPUFREE_UNROLL
        for (int j = 1; j < C; ++j)
          if (c == j) values[k] = slot[z + k + kFrom][j];
      }
      put(side, place_.warp() * Z + z, values);
    }
  }

  // My part of the halo, out of the mailboxes to where the tile reads it.
  CPUFREE_KERNEL_FN void take() {
    const std::int64_t mine = place_.warp() * Room::kWidth + place_.column();
    const std::int32_t r = port().warp_lane() % 16;
    const int beside = port().warp_lane() / 16;
    if (r < Z && links_.get[4 + beside] >= 0)
      place_.edge(beside)[r] = *from(links_.get[4 + beside] + place_.warp() * Z + r);
    for (int side = 0; side < 2; ++side) {
      if (links_.get[side] < 0) continue;
      T values[C];
      load_pack(from(links_.get[side] + mine), values);
      store_pack(place_.row(side == 0 ? -1 : Z, place_.warp()), values);
    }
    for (int side = 2; side < 4; ++side) {
      if (links_.get[side] < 0 || place_.warp() != (side == 2 ? 0 : place_.height() - 1)) continue;
      const T* const rows = from(links_.get[side] + place_.column());
      const int y = side == 2 ? -1 : place_.height();
      CPUFREE_UNROLL
      for (int z = 0; z < Z; ++z) {
        T values[C];
        load_pack(rows + z * Room::kWidth, values);
        store_pack(place_.row(z, y), values);
      }
    }
    port().warp_sync();
  }
  CPUFREE_KERNEL_FN const T* from(std::int64_t at) const { return port().in_memory(mailbox(at)); }

  Place place_;
  const Links& links_;
  const Mailboxes<T>& mailboxes_;
  Epoch epoch_ = 0;
};

}  // namespace cpufree
