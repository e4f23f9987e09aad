// One pass of a block over values in memory in three dimensions (time_tiles.hpp tells why it may):
// K iterations, one or two, planes through shared memory.
//
// The block goes along axis 0 over a window of its tile, kPlaneRows rows for each warp but those of
// the rim, 16 bytes of each for each lane. Planes of the window, with K rows and columns around it,
// lie in a ring of kRingPlanes slots in shared memory, filled by copies that threads need not wait
// for: most of the ring is on its way from memory while the planes before are computed. A thread
// keeps its values of the plane before and of this one in registers, takes those of the next one
// and of the rows around from the ring, and those of the columns around from the lanes next to it.
//
// Two warps have the rim (plane_halo.hpp): one copies the rows around, the other one 16 bytes on
// either side of the window, a row to a lane. Of two iterations they compute the first one for the
// rows and the columns next to the window, so that all points of the window can be stored. New
// values of the first iteration lie in registers and, for the sake of those around, in shared
// memory, in `between`: planes of two parities.
//
// What a pass stores, a block owns: all of these points are updated, so none has to keep its value.
// Of what the first of two iterations computes around them, some may.
//
// All warps take the same steps (plane_warp.hpp), whatever they do in them: as many barriers, and
// as many groups of copies, empty ones too.
//
// The ring. Step z computes plane z of the first iteration from planes z - 1 (registers), z and z +
// 1. Its barrier comes after every thread has waited for its own copies up to plane z + 1: behind
// it, these planes are there for all (read after write). And every thread has ended step z - 1,
// which is the last to read plane z - 1 from the ring: behind the barrier, plane z - 1 +
// kRingPlanes is copied to the same slot (write after read). Windows are separated by a barrier of
// their own, and all copies of a window are waited for in its steps.
//
// Between two iterations. Step z writes its plane to one parity of `between`, and computes plane z
// - 1 of the second iteration, for which it reads the other one: written in step z - 1, before the
// barrier (read after write). The parity that it writes was read last in step z - 1, as plane z -
// 2, before the barrier as well (write after read). The first two steps of a window compute a
// second iteration of nothing, which is not stored: they read what the window before has left,
// which a barrier separates from what is written now.
//
// Lanes beyond the tile's last column, and the second row of a warp of which the window has only
// the first, compute from whatever lies there: inside of a slot, which has room for all rows and
// columns of a full window and K around it. None of it is stored, or published; but the lanes
// beyond the last column publish, in places that are theirs, what none reads who needs it.
#pragma once

#include "cpufree/stencils/plane_halo.hpp"
#include "cpufree/stencils/plane_rows.hpp"

namespace cpufree {

template <int K, bool kSource, WarpPort P, class T>
class PlanePass {
 public:
  CPUFREE_KERNEL_FN PlanePass(P& port, const TimeTileArgs<T>& args, const TimeTilePart& part,
                              int copy)
      : port_(port), args_(args), part_(part), copy_(copy) {}

  // By all threads of the block together.
  CPUFREE_KERNEL_FN void run(bool measured, Change<P>& change) {
    constexpr int C = kStreamColumns<T>;
    const std::int32_t rows = (port_.warps() - rim_warps(3)) * kPlaneRows;
    for (std::int32_t y = part_.lo[1]; y < part_.hi[1]; y += rows)
      for (std::int32_t x = floor_to(part_.lo[2], C); x < part_.hi[2]; x += P::warp_width * C) {
        const std::int32_t left = part_.hi[1] - y;
        port_.sync_block();
        go({y, x, left < rows ? left : rows}, measured, change);
      }
  }

 private:
  CPUFREE_KERNEL_FN void go(const PlaneWindow& window, bool measured, Change<P>& change) {
    const std::int32_t warp = port_.warp(), rim = port_.warps() - rim_warps(3);
    if (warp == rim)
      PlaneHaloRows<K, kSource, P, T>(port_, args_, part_, copy_, window).run();
    else if (warp > rim)
      PlaneHaloSides<K, kSource, P, T>(port_, args_, part_, copy_, window).run();
    else if (warp * kPlaneRows >= window.height)
      PlaneIdler<K, kSource, P, T>(port_, args_, part_, copy_, window).run();
    else if (measured)
      PlaneRows<K, kSource, true, P, T>(port_, args_, part_, copy_, window, change).run();
    else
      PlaneRows<K, kSource, false, P, T>(port_, args_, part_, copy_, window, change).run();
  }

  P& port_;
  const TimeTileArgs<T>& args_;
  const TimeTilePart& part_;
  int copy_;
};

}  // namespace cpufree
