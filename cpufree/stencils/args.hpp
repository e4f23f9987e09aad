// What the host hands to the Jacobi kernel. Plain data.
#pragma once

#include <cstdint>

#include "cpufree/device/types.hpp"
#include "cpufree/problem/tile_shape.hpp"
#include "cpufree/trace/record.hpp"

namespace cpufree {

// Values of grid points in memory: all of the grid, or a box of it.
template <class T>
struct GridView {
  T* data = nullptr;
  std::int64_t origin[3] = {};  // number of the first point
  std::int64_t extent[3] = {};
  std::int64_t n[3] = {};  // of the grid: the period of axes that are periodic
  std::int64_t plane = 0, row = 0;

  CPUFREE_FN std::int64_t along(int axis, std::int64_t number) const {
    const std::int64_t i = number - origin[axis];
    return i < 0 ? i + n[axis] : i < extent[axis] ? i : i - n[axis];
  }
  CPUFREE_FN T& operator()(std::int64_t i0, std::int64_t i1, std::int64_t i2) const {
    return data[along(0, i0) * plane + along(1, i1) * row + along(2, i2)];
  }
};

// A block's tile: where its values lie, and with whom it exchanges them.
template <class T>
struct TileArgs {
  TileShape shape;
  const TileEdge* sends = nullptr;
  const TileEdge* receives = nullptr;
  std::int32_t edges = 0;  // of either kind
  T* values = nullptr;
  T* source = nullptr;  // null: none
};

// Mailboxes for halos, on every PE at the same place: two parities of `size` values.
template <class T>
struct Mailboxes {
  Packet* packets = nullptr;  // null: values and flags
  T* values = nullptr;
  Flag* flags = nullptr;  // one per edge that is received
  std::int64_t size = 0;
};

enum class StencilReason : std::int32_t {
  all_done = 0,
  converged,
  not_converged,
  time_limit,
  interrupted,
  not_finite
};

struct StencilOutcome {
  std::int64_t iterations = 0;
  std::int64_t exchanges = 0;
  std::int64_t checks = 0;
  StencilReason reason = StencilReason::all_done;
};

// Points that another PE (or this one, across a periodic boundary) holds a copy of.
struct GhostCopy {
  std::int32_t pe = 0;
  std::int32_t lo[3] = {}, hi[3] = {};  // in my PE's numbers
  std::int64_t shift = 0;               // from my place of a value to that of its copy
};

// The part of a PE's box that a block computes; into how many parts it cuts axis 0 so that all of
// its warps have some of it; and the copies of its points.
struct TimeTilePart {
  std::int32_t lo[3] = {}, hi[3] = {};
  std::int32_t chunks = 1;
  std::int32_t first_ghost = 0, ghosts = 0;
};

// For values that stay in memory (stencils/time_tiles.hpp): the box of a PE, twice. Points are
// numbered from the first that the PE owns.
template <class T>
struct TimeTileArgs {
  T* values[2] = {};          // symmetric; point (0, 0, 0)
  const T* source = nullptr;  // the same layout; null: none
  std::int64_t plane = 0, row = 0;
  std::int32_t end[3] = {};                       // of the points the PE owns
  std::int32_t keep_lo[3] = {}, keep_hi[3] = {};  // points outside keep their values
  std::int64_t origin[3] = {};                    // number in the grid of point (0, 0, 0)
  const TimeTilePart* parts = nullptr;            // of all blocks
  const GhostCopy* ghosts = nullptr;              // of all blocks
};

template <class T>
struct JacobiArgs {
  const TileArgs<T>* tiles = nullptr;  // of all blocks of the PE
  GridView<const T> start, source;     // source: null data for none
  GridView<T> out;
  std::int64_t iterations = 0;
  std::int64_t check_every = 1;  // iterations between two looks at the updates and at the host
  double tolerance = -1.0;       // stop where no point changes by more; negative: never
  std::int32_t layers = 1;       // iterations from one exchange to the next
  bool in_fast_memory = false;   // where the tiles' values are
  Mailboxes<T> mailboxes;
  TimeTileArgs<T> time_tile;  // of values that stay in memory; else empty
  Packet* slots = nullptr;    // of the all-reduce
  double* updates = nullptr;  // one per thread of the PE: its largest update when last measured
  StencilOutcome* outcome = nullptr;  // written by block 0 of PE 0
  const TraceRing* traces = nullptr;  // one per block; of a run that is traced
};

}  // namespace cpufree
