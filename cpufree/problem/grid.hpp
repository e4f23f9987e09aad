// Grids of points, and how they are divided into tiles: boxes of points, one for each block of each
// PE. Plain data.
//
// Axes are numbered 0 (slowest), 1, 2 (contiguous). A grid of two dimensions has one point along
// axis 1. Along an axis that is not periodic, the first and the last point keep their values
// (Dirichlet); only those between are updated, and only they are divided.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpufree/problem/tile_shape.hpp"

namespace cpufree {

struct Grid {
  int dims = 2;                   // 2 or 3
  std::int64_t n[3] = {1, 1, 1};  // points, with those that keep their values
  bool periodic[3] = {false, false, false};

  bool active(int axis) const { return dims == 3 || axis != 1; }
  // The points that are updated.
  std::int64_t first(int axis) const { return active(axis) && !periodic[axis] ? 1 : 0; }
  std::int64_t end(int axis) const { return n[axis] - first(axis); }
  std::int64_t updated(int axis) const {
    return end(axis) > first(axis) ? end(axis) - first(axis) : 0;
  }
  std::int64_t updated() const { return updated(0) * updated(1) * updated(2); }
  std::int64_t points() const { return n[0] * n[1] * n[2]; }
};

// Throws InvalidInput for a grid that cannot be: dims, sizes below 1, more points along an axis
// than 32 bits count, or in all than 64 bits do.
void check(const Grid& grid);

// Into how many parts each axis is cut, for PEs and again for the blocks of each.
struct Division {
  int pes[3] = {1, 1, 1};
  int blocks[3] = {1, 1, 1};

  int parts(int axis) const { return pes[axis] * blocks[axis]; }
  int pes_in_all() const { return pes[0] * pes[1] * pes[2]; }
  int blocks_in_all() const { return blocks[0] * blocks[1] * blocks[2]; }
};

// What a point on a face that is exchanged costs along each axis, in points computed. Faces across
// the contiguous axis are dear where threads copy rows.
struct FaceCost {
  double axis[3] = {1.0, 1.0, 1.0};
};

// Cuts the grid for at most `pes` PEs of at most `blocks` blocks: for as many PEs as there can be,
// then for as many blocks (give or take 1/16), with the cheapest faces. Needs points to update.
Division divide(const Grid& grid, int pes, int blocks, const FaceCost& cost);

// The most layers that tiles can exchange: no tile may need points of its neighbour's neighbour.
std::int64_t most_layers(const Grid& grid, const Division& division);

struct Tile {
  TileShape shape;
  std::vector<TileEdge> sends, receives;
};

struct Tiling {
  Division division;
  int layers = 1;
  std::vector<std::vector<Tile>> tiles;  // of each PE, of each block
  std::int64_t mailbox = 0;              // values of one parity, on every PE
  int flags = 0;                         // on every PE
};

// Lays out the tiles with halos of `layers` points and the exchanges among them. An exchange fills
// all of a tile's halo in one go: with one layer from the neighbours across its faces, with more
// from those across its edges and corners too, and with the points in it that keep
// their values. Receives of one direction answer sends of the
// opposite one, so that two tiles either send to each other or not at all. `thickness`: planes of
// axis 0 that are computed side by side.
Tiling make_tiling(const Grid& grid, const Division& division, int layers, int thickness = 1);

// "2 x 1 x 4"
std::string text_of(const int (&parts)[3], int dims);

}  // namespace cpufree
