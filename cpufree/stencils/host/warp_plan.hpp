// How a grid is divided for kernels whose blocks are made of warps, and which of these kernels it
// is for: tiles in registers, or values that stay in memory.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cpufree/stencils/host/stencil_plan.hpp"
#include "cpufree/stencils/tile3d_shape.hpp"

namespace cpufree {

inline constexpr int kSchedulers = 4;   // of a multiprocessor
inline constexpr int kUsualLayers = 4;  // of a pass in two dimensions: no more are faster

// What kernels there are, and what a block has.
struct WarpKernels {
  std::span<const int> layers;  // of a pass over values in memory, increasing
  int warps = 16;               // of a block, at most
  std::size_t fast_bytes = 0;   // of shared memory
  std::span<const Tile3dShape> tiles3d = {};
};

// Three-dimensional tiles that stay in registers, and what their threads hold.
struct Tile3dLayout {
  StencilLayout layout;
  Tile3dShape shape;
  int warps = 1;
  double seconds = 0.0;  // of an iteration, as predicted
};

// Nothing where the tiles of the grid do not fit registers, or the spec asks for something else
// (registers_3d_plan.cpp).
std::optional<Tile3dLayout> lay_out_registers_3d(const Grid& grid, const StencilSpec& spec,
                                                 const StencilRun& run, int blocks,
                                                 std::size_t value_bytes, bool source,
                                                 const WarpKernels& kernels);

// The box of a PE in memory, the same layout on all of them, in values.
struct TimeTileBox {
  std::int64_t row = 0, plane = 0;
  std::int64_t first = 0;  // place of the first owned point
  std::int64_t values = 0;
  std::int32_t halo[3] = {};  // points stored before the first owned, and behind the last

  std::int64_t place(const std::int32_t (&i)[3]) const {
    return first + i[0] * plane + i[1] * row + i[2];
  }
};

struct TimeTileLayout {
  StencilLayout layout;
  TimeTileBox box;
  struct Pe {
    TileShape shape;
    std::vector<TimeTilePart> parts;
    std::vector<GhostCopy> ghosts;
  };
  std::vector<Pe> pes;
  double seconds = 0.0;  // of an iteration, as predicted
};

// Where each PE is one tile: the box of all PEs; and, of the parts of one, the copies that others
// hold of each one's points.
TimeTileBox box_of_pes(const Tiling& pes, int dims, int layers, std::size_t value_bytes);
void find_ghosts(const Tiling& pes, std::size_t pe, TimeTileLayout& time_tiles);

std::optional<TimeTileLayout> lay_out_time_tiles(const Grid& grid, const StencilSpec& spec,
                                                 const StencilRun& run, int blocks,
                                                 std::size_t value_bytes, bool source,
                                                 const WarpKernels& kernels);

// What of the kernel's arguments does not lie in memory of its own.
template <class T>
TimeTileArgs<T> time_tile_arguments(const Grid& grid, const TimeTileLayout& time_tiles,
                                    std::size_t pe) {
  constexpr std::int32_t kFar = 1 << 30;
  TimeTileArgs<T> args;
  const TileShape& s = time_tiles.pes[pe].shape;
  args.row = time_tiles.box.row;
  args.plane = time_tiles.box.plane;
  for (int a = 0; a < 3; ++a) {
    args.end[a] = s.hi[a] - s.lo[a];
    args.origin[a] = s.origin[a] + s.lo[a];
    const bool ring = grid.active(a) && !grid.periodic[a];
    args.keep_lo[a] = ring ? s.bound_lo[a] - s.lo[a] : -kFar;
    args.keep_hi[a] = ring ? s.bound_hi[a] - s.lo[a] : kFar;
  }
  return args;
}

// The points of the grid that the box of a PE has values of.
inline GridSpan span_of(const Grid& grid, const TimeTileLayout& time_tiles, std::size_t pe) {
  const TileShape& s = time_tiles.pes[pe].shape;
  GridSpan span;
  for (int a = 0; a < 3; ++a) {
    const std::int64_t first = s.origin[a] + s.lo[a], end = s.origin[a] + s.hi[a];
    const std::int64_t halo = time_tiles.box.halo[a];
    span.lo[a] = grid.periodic[a] ? first - halo : std::max<std::int64_t>(0, first - halo);
    span.hi[a] = grid.periodic[a] ? end + halo : std::min(grid.n[a], end + halo);
  }
  return span;
}

// The box of a PE, filled with the values of the grid; zeros where there are none.
template <class T>
void fill_box(const Grid& grid, const TimeTileLayout& time_tiles, std::size_t pe,
              const GridValues<T>& from, T* to) {
  const GridSpan span = span_of(grid, time_tiles, pe);
  const TileShape& s = time_tiles.pes[pe].shape;
  std::vector<T> memory;
  const GridView<const T> values = from.view(grid, span, memory);
  std::int64_t first[3];  // number in the grid of the first point of the PE
  for (int a = 0; a < 3; ++a) first[a] = s.origin[a] + s.lo[a];
  std::fill_n(to, time_tiles.box.values, T{});
  for (std::int64_t i0 = span.lo[0]; i0 < span.hi[0]; ++i0)
    for (std::int64_t i1 = span.lo[1]; i1 < span.hi[1]; ++i1) {
      T* const row = to + time_tiles.box.place({static_cast<std::int32_t>(i0 - first[0]),
                                                static_cast<std::int32_t>(i1 - first[1]), 0});
      for (std::int64_t i2 = span.lo[2]; i2 < span.hi[2]; ++i2)
        row[i2 - first[2]] = values(i0, i1, i2);
    }
}

}  // namespace cpufree
