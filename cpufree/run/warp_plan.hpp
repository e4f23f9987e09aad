// How a grid is divided for kernels whose blocks are made of warps, and which of these kernels it
// is for: tiles in registers, or values that stay in memory.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cpufree/run/stencil_plan.hpp"
#include "cpufree/stencils/brick_shape.hpp"
#include "cpufree/stencils/register_shape.hpp"

namespace cpufree {

// What kernels there are, and what a block has.
struct WarpKernels {
  std::span<const RegisterShape> shapes;
  std::span<const int> layers;  // of a pass over values in memory, increasing
  int warps = 16;               // of a block, at most
  std::size_t fast_bytes = 0;   // of shared memory
  std::span<const BrickShape> bricks = {};
};

// Tiles that stay in registers, and what their threads hold.
template <class Shape>
struct ShapedLayout {
  StencilLayout layout;
  Shape shape;
  int warps = 1;
};
using RegisterLayout = ShapedLayout<RegisterShape>;
using BrickLayout = ShapedLayout<BrickShape>;

// Nothing where the tiles of the grid do not fit registers, or the spec asks for something else.
std::optional<RegisterLayout> lay_out_registers(const Grid& grid, const StencilSpec& spec,
                                                const StencilRun& run, int blocks,
                                                std::size_t value_bytes, bool source,
                                                const WarpKernels& kernels);

// The same in three dimensions (brick_plan.cpp).
std::optional<BrickLayout> lay_out_bricks(const Grid& grid, const StencilSpec& spec,
                                          const StencilRun& run, int blocks,
                                          std::size_t value_bytes, bool source,
                                          const WarpKernels& kernels);

// The box of a PE in memory, the same layout on all of them, in values.
struct StreamBox {
  std::int64_t row = 0, plane = 0;
  std::int64_t first = 0;  // place of the first owned point
  std::int64_t values = 0;
  std::int32_t halo[3] = {};  // points stored before the first owned, and behind the last

  std::int64_t place(const std::int32_t (&i)[3]) const {
    return first + i[0] * plane + i[1] * row + i[2];
  }
};

struct StreamLayout {
  StencilLayout layout;
  StreamBox box;
  struct Pe {
    TileShape shape;
    std::vector<StreamPart> parts;
    std::vector<GhostCopy> ghosts;
  };
  std::vector<Pe> pes;
};

// What the halos of a box take, where each PE is one tile: the box of all PEs, and the copies that
// others hold of the points of one.
StreamBox box_of_pes(const Tiling& pes, int dims, int layers, std::size_t value_bytes);
std::vector<GhostCopy> ghosts_of(const Tiling& pes, std::size_t pe, const StreamBox& box);

std::optional<StreamLayout> lay_out_streams(const Grid& grid, const StencilSpec& spec,
                                            const StencilRun& run, int blocks,
                                            std::size_t value_bytes, bool source,
                                            const WarpKernels& kernels);

// What of the kernel's arguments does not lie in memory of its own.
template <class T>
StreamArgs<T> stream_arguments(const Grid& grid, const StreamLayout& streams, std::size_t pe) {
  constexpr std::int32_t kFar = 1 << 30;
  StreamArgs<T> args;
  const TileShape& s = streams.pes[pe].shape;
  args.row = streams.box.row;
  args.plane = streams.box.plane;
  for (int a = 0; a < 3; ++a) {
    args.end[a] = s.hi[a] - s.lo[a];
    args.origin[a] = s.origin[a] + s.lo[a];
    const bool ring = grid.active(a) && !grid.periodic[a];
    args.keep_lo[a] = ring ? s.bound_lo[a] - s.lo[a] : -kFar;
    args.keep_hi[a] = ring ? s.bound_hi[a] - s.lo[a] : kFar;
  }
  args.ghost_count = static_cast<std::int32_t>(streams.pes[pe].ghosts.size());
  return args;
}

// The box of a PE, filled with the values of the grid; zeros where there are none.
template <class T>
void fill_box(const Grid& grid, const StreamLayout& streams, std::size_t pe,
              std::span<const T> from, T* to) {
  const TileShape& s = streams.pes[pe].shape;
  const StreamBox& box = streams.box;
  // Number in the grid of point i of the PE; negative: none.
  const auto number = [&](int a, std::int64_t i) -> std::int64_t {
    const std::int64_t n = grid.n[a], g = s.origin[a] + s.lo[a] + i;
    return grid.periodic[a] ? (g % n + n) % n : g < n ? g : -1;
  };
  std::int32_t end[3];
  for (int a = 0; a < 3; ++a) end[a] = s.hi[a] - s.lo[a] + box.halo[a];
  for (std::int64_t k = 0; k < box.values; ++k) to[k] = T{};
  for (std::int32_t i0 = -box.halo[0]; i0 < end[0]; ++i0)
    for (std::int32_t i1 = -box.halo[1]; i1 < end[1]; ++i1) {
      const std::int64_t g0 = number(0, i0), g1 = number(1, i1);
      if (g0 < 0 || g1 < 0) continue;
      const T* const row = from.data() + (g0 * grid.n[1] + g1) * grid.n[2];
      T* const out = to + box.place({i0, i1, 0});
      for (std::int32_t i2 = -box.halo[2]; i2 < end[2]; ++i2)
        if (const std::int64_t g2 = number(2, i2); g2 >= 0) out[i2] = row[g2];
    }
}

}  // namespace cpufree
