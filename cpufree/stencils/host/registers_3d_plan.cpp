// How a grid of three dimensions falls to tiles in registers.
#include <algorithm>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/machine.hpp"
#include "cpufree/stencils/host/divisions.hpp"
#include "cpufree/stencils/host/warp_plan.hpp"

namespace cpufree {

namespace {

// Tile3dRoom, whose numbers are compiled in.
std::int64_t room_of(const Tile3dShape& shape, int warps, std::size_t value_bytes, bool source) {
  const std::int64_t rows = (shape.planes + 2) * (warps + 2) + (source ? shape.planes * warps : 0);
  const std::int64_t columns = 2 + 2 * shape.columns;
  const std::int64_t values = rows * shape.most_width() + columns * warps * shape.planes;
  return values * static_cast<std::int64_t>(value_bytes);
}

// Cycles of an iteration beside the exchange: a plane of a warp takes 9 instructions a point where
// four lie side by side; a warp has its own way to go. A value of a face is stored and read.
double tile3d_cycles(const Tile3dShape& shape, int warps, std::int64_t face_values) {
  const double of_warp = shape.planes * (9.0 * shape.columns + 12.0) + 150.0;
  const double issue = of_warp * warps / kSchedulers;
  return std::max(issue, 2.5 * of_warp) + 0.1 * static_cast<double>(face_values);
}

// Mailboxes as the kernel uses them, in place of those that the tiling has for points side by side:
// size(axis) packets for a halo across it. `least`: where threads read that await
// nothing.
template <class F>
void lay_out_mailboxes(Tiling& tiling, F&& size, std::int64_t least) {
  const auto axis_of = [](const TileShape& s, const TileEdge& halo) {
    for (int a = 0; a < 2; ++a)
      if (halo.hi[a] <= s.lo[a] || halo.lo[a] >= s.hi[a]) return a;
    return 2;
  };
  tiling.mailbox = least;
  std::vector<std::vector<std::int64_t>> of_flag(tiling.tiles.size());
  for (std::size_t pe = 0; pe < tiling.tiles.size(); ++pe) {
    of_flag[pe].resize(at(tiling.flags));
    std::int64_t next = 0;
    for (Tile& tile : tiling.tiles[pe])
      for (TileEdge& edge : tile.receives) {
        of_flag[pe][at(edge.flag)] = edge.mailbox = next;
        next += size(axis_of(tile.shape, edge));
      }
    tiling.mailbox = std::max(tiling.mailbox, next);
  }
  for (auto& of_pe : tiling.tiles)
    for (Tile& tile : of_pe)
      for (TileEdge& edge : tile.sends) edge.mailbox = of_flag[at(edge.pe)][at(edge.flag)];
}

void lay_out_mailboxes(Tile3dLayout& layout, std::size_t value_bytes) {
  Tiling& tiling = layout.layout.tiling;
  const int warps = layout.warps;
  const Tile3dPacking packing = packing_of(layout.shape, value_bytes);
  const auto size = [&](int axis) { return packing.mailbox(axis, warps); };
  lay_out_mailboxes(tiling, size, std::max({size(0), size(1), size(2)}));
}

// The division and the shape of fewest cycles: what follows from them is not laid out yet.
std::optional<Tile3dLayout> best_registers_3d(const Grid& grid, const StencilSpec& spec, int blocks,
                                              std::size_t value_bytes, bool source,
                                              const WarpKernels& kernels) {
  if (grid.dims != 3 || spec.halo == 0) return {};
  std::optional<Tile3dLayout> best;
  double least = 0.0;
  each_division(grid, spec.pes, blocks, [&](const Division& division) {
    TileExtent extent[3];
    for (int a = 0; a < 3; ++a) extent[a] = extent_of(grid, division, a);
    const auto warps = static_cast<int>(extent[1].most);
    const std::int64_t faces =
        2 * (extent[0].most * extent[1].most + extent[0].most * extent[2].most +
             extent[1].most * extent[2].most);
    for (const Tile3dShape& shape : kernels.tiles3d) {
      if (spec.rows > 0 && spec.rows != shape.planes) continue;
      if (warps > kernels.warps || !shape.holds(extent[0].least, 1, extent[2].least, 1) ||
          !shape.holds(extent[0].most, warps, extent[2].most, warps) ||
          room_of(shape, warps, value_bytes, source) >
              static_cast<std::int64_t>(kernels.fast_bytes))
        continue;
      const double here = tile3d_cycles(shape, warps, faces);
      if (best && here >= least) continue;
      least = here;
      best.emplace();
      best->layout.plan.division = division;
      best->shape = shape;
      best->warps = warps;
    }
  });
  if (best) best->seconds = least / spec.machine.gpu_clock + spec.machine.stencil_tile_exchange;
  return best;
}

}  // namespace

bool fits_registers_3d(const Grid& grid, int pes, int blocks, std::size_t value_bytes,
                       bool source) {
  constexpr std::size_t kRoom = 225 << 10;  // of a block: 227 KB without what kernels have besides
  constexpr int kWarps = 16;
  StencilSpec spec;
  spec.pes = pes;
  if (grid.updated() == 0) return false;
  const std::span<const Tile3dShape> shapes =
      value_bytes == 4 ? std::span<const Tile3dShape>(kTiles3dOfFloat) : kTiles3dOfDouble;
  const auto best =
      best_registers_3d(grid, spec, blocks, value_bytes, source, {{}, kWarps, kRoom, shapes});
  return best && best->layout.plan.division.pes_in_all() == pes;
}

std::optional<Tile3dLayout> lay_out_registers_3d(const Grid& grid, const StencilSpec& spec,
                                                 const StencilRun& run, int blocks,
                                                 std::size_t value_bytes, bool source,
                                                 const WarpKernels& kernels) {
  auto best = best_registers_3d(grid, spec, blocks, value_bytes, source, kernels);
  if (!best) return {};
  StencilPlan& plan = best->layout.plan;
  best->layout.tiling = make_tiling(grid, plan.division, 1);
  best->layout.packets = true;
  lay_out_mailboxes(*best, value_bytes);
  plan.in_fast_memory = true;
  plan.fast_bytes = room_of(best->shape, best->warps, value_bytes, source);
  plan.sweep = "registers_3d";
  plan.columns = best->shape.columns;
  plan.rows = best->shape.planes;
  plan.check_every = check_period(run, best->seconds, 1);
  describe_tiling(spec, best->layout);
  plan.halo = plan.halo_points == 0 ? "none" : "packets";
  return best;
}

}  // namespace cpufree
