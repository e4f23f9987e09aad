// Ways to cut a grid for blocks of warps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpufree/problem/grid.hpp"

namespace cpufree {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Points of the tiles along an axis: the fewest, the most.
struct TileExtent {
  std::int64_t least, most;
};
inline TileExtent extent_of(const Grid& grid, const Division& division, int axis) {
  const std::int64_t n = grid.updated(axis), parts = division.parts(axis);
  return {n / parts, ceil_div(n, parts)};
}

// Calls f(division) for all ways to cut what each PE has for its blocks.
template <class F>
void each_division(const Grid& grid, int pes, int blocks, F&& f) {
  FaceCost face;
  face.axis[2] = 8.0;  // values far apart, of which each is a store of its own to another GPU
  Division division = divide(grid, pes, 1, face);
  std::int64_t most[3];
  for (int a = 0; a < 3; ++a)
    most[a] = std::min<std::int64_t>(grid.updated(a) / division.pes[a], blocks);
  for (int c0 = 1; c0 <= most[0]; ++c0)
    for (int c1 = 1; c1 <= most[1] && c0 * c1 <= blocks; ++c1)
      for (int c2 = 1; c2 <= most[2] && c0 * c1 * c2 <= blocks; ++c2) {
        const int cuts[3] = {c0, c1, c2};
        std::ranges::copy(cuts, division.blocks);
        f(division);
      }
}

}  // namespace cpufree
