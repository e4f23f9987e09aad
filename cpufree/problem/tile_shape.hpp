// A tile of a grid as kernels know it, and the ends of its exchanges (grid.hpp). Plain data, for
// host and kernels.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// A tile as its block stores it: the owned points with the halo around them. Numbers of points
// count from the first one stored.
struct TileShape {
  std::int32_t extent[3] = {};          // stored points
  std::int32_t lo[3] = {}, hi[3] = {};  // owned
  // What this tile may compute: its own points, and with more than one layer the halo's.
  std::int32_t bound_lo[3] = {}, bound_hi[3] = {};
  std::int32_t grid_lo[3] = {}, grid_hi[3] = {};  // stored points that are points of the grid
  std::int32_t out_lo[3] = {}, out_hi[3] = {};    // that this tile writes to the result
  std::int64_t origin[3] = {};      // number in the grid of the first stored point; may be negative
  std::int64_t plane = 0, row = 0;  // values from one point to the next along axes 0 and 1
  std::int64_t lead = 0;            // values before the first point, so that rows begin on lines
  // The planes of axis 0 lie in a ring of `planes`; each iteration moves all of them down by `skew`
  // (stencils/sweep.hpp).
  std::int32_t planes = 0, skew = 0;

  CPUFREE_FN std::int64_t values() const { return lead + plane * planes; }
  CPUFREE_FN std::int64_t source_values() const { return lead + plane * extent[0]; }
};

// One end of an exchange between two tiles: points that are sent, or halo points that are received.
struct TileEdge {
  std::int32_t lo[3] = {}, hi[3] = {};
  std::int32_t pe = 0, block = 0;  // the other end
  std::int32_t flag = 0;           // number of the flag in the receiver's memory
  std::int32_t first = 0;          // points of the edges before this one
  std::int32_t points = 0;
  std::int64_t mailbox = 0;  // first value in the receiver's memory, of the even epochs
};

}  // namespace cpufree
