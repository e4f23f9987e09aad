// Where the tiles of registers_3d.hpp lie in shared memory, and with whom they exchange halos: what
// the exchange (tile3d_packets.hpp) and the sweep have in common.
#pragma once

#include "cpufree/device/warp_port.hpp"
#include "cpufree/stencils/args.hpp"
#include "cpufree/stencils/neighbours.hpp"
#include "cpufree/stencils/tile3d_shape.hpp"

namespace cpufree {

// Mailboxes of a tile's six sides: 0 and 1 across axis 0, 2 and 3 axis 1, 4 and 5 axis 2.
struct Tile3dLinks {
  std::int64_t get[6] = {-1, -1, -1, -1, -1, -1};  // in my memory; negative: none
  std::int64_t put[6] = {-1, -1, -1, -1, -1, -1};  // in theirs
  std::int32_t pe[6] = {};
};

CPUFREE_KERNEL_FN int side_of_tile3d(const TileShape& s, const TileEdge& halo) {
  for (int a = 0; a < 2; ++a) {
    if (halo.hi[a] <= s.lo[a]) return 2 * a;
    if (halo.lo[a] >= s.hi[a]) return 2 * a + 1;
  }
  return halo.hi[2] <= s.lo[2] ? 4 : 5;
}

template <class P, class T>
CPUFREE_KERNEL_FN Tile3dLinks tile3d_links_of(const P& port, const TileArgs<T>& tile) {
  Tile3dLinks links;
  for (std::int32_t e = 0; e < tile.edges; ++e) {  // sends and receives are in the same order
    const TileEdge& edge = tile.receives[e];
    if (!exchanges_with(port, edge.pe)) continue;
    const int side = side_of_tile3d(tile.shape, edge);
    links.get[side] = edge.mailbox;
    links.put[side] = tile.sends[e].mailbox;
    links.pe[side] = edge.pe;
  }
  return links;
}

// The block's tile, and what shared memory has of it: all that is the same in all iterations.
template <WarpPort P, class T, int C, int Z>
class Tile3dPlace {
 public:
  using Room = Tile3dRoom<T, C, Z>;

  CPUFREE_KERNEL_FN Tile3dPlace(P& port, const TileArgs<T>& tile) : port_(port), tile_(tile) {
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

}  // namespace cpufree
