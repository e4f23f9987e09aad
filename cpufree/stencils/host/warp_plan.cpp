#include "cpufree/stencils/host/warp_plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/machine.hpp"
#include "cpufree/stencils/host/divisions.hpp"
#include "cpufree/stencils/time_tile_shape.hpp"

namespace cpufree {

namespace {

constexpr int kMostChunks = 64;

struct Pass {
  Division division;
  int layers = 1;
  int chunks = 1;
  double seconds = 0.0;  // of an iteration
};

double step_instructions(int layers, std::size_t value_bytes) {
  return (value_bytes == 4 ? 26.5 : 33.0) * layers + 14.0;
}

// Tiles begin on lines of memory, the nearest ones, where they are wide enough that only tiles
// which exchange are within reach of one another still.
std::int32_t alignment(const Grid& grid, const Division& division, int layers) {
  const std::int64_t width = extent_of(grid, division, 2).least;
  for (const std::int32_t align : {32, 4})
    if (width - align >= layers) return align;
  return 1;
}

std::int32_t nearest(std::int32_t i, std::int32_t align) { return floor_to(i + align / 2, align); }

// Columns of the widest of a PE's parts.
std::int64_t widest(const Grid& grid, const Division& division, int layers) {
  const std::int64_t n = ceil_div(grid.updated(2), division.pes[2]);
  const std::int32_t align = alignment(grid, division, layers);
  const std::int32_t parts = division.blocks[2];
  std::int64_t most = 0, lo = 0;
  for (std::int32_t k = 1; k <= parts; ++k) {
    const auto cut_at = static_cast<std::int32_t>(n * k / parts);
    const std::int64_t hi = k == parts ? n : nearest(cut_at, align);
    most = std::max(most, hi - std::exchange(lo, hi));
  }
  return most;
}

// Seconds of a pass that moves `bytes` between multiprocessors and the cache, and `moved` of them
// from memory where the cache does not hold them, while it computes.
double overlapped(const Machine& machine, double compute, double bytes, double moved) {
  const bool stays = moved < machine.gpu_cache_bytes;
  const double move = moved / (stays ? machine.gpu_cache_rate : machine.gpu_memory_rate);
  const double cache = bytes / machine.gpu_cache_rate;
  const double most = std::max({compute, move, cache});
  return most + 0.2 * (compute + move + cache - most) + machine.stencil_pass_exchange;
}

// In three dimensions: window after window, plane after plane.
Pass predict_planes(const Machine& machine, const Grid& grid, const Division& division, int layers,
                    std::size_t value_bytes, bool source, int warps) {
  // Cycles: some 100 instructions of 18 warps, 175 for two iterations, and a barrier that all wait
  // at.
  const double plane = layers == 1 ? 900.0 : 1400.0;
  const auto columns = static_cast<std::int64_t>(32 * 16 / value_bytes);
  const std::int64_t depth = extent_of(grid, division, 0).most;
  const std::int64_t height = extent_of(grid, division, 1).most;
  const std::int64_t rows = warps * kPlaneRows;
  const std::int64_t windows =
      ceil_div(height, rows) * ceil_div(widest(grid, division, layers), columns);
  const auto planes = static_cast<double>(windows * (depth + 2 * layers + kRingPlanes / 4));
  const double points = static_cast<double>(depth * height * extent_of(grid, division, 2).most) *
                        division.blocks_in_all();
  const double bytes = points * static_cast<double>(value_bytes) * (source ? 3.0 : 2.0);
  const double cache = planes * static_cast<double>(2 * (rows + layers)) * (32 + 2) * 16.0 *
                       division.blocks_in_all();
  const double compute = planes * plane / machine.gpu_clock;
  return {division, layers, 1, overlapped(machine, compute, cache, bytes) / layers};
}

// In two dimensions: all warps compute, each its own strip, while values move.
Pass predict_rows(const Machine& machine, const Grid& grid, const Division& division, int layers,
                  std::size_t value_bytes, bool source, int warps) {
  const int columns = 16 / static_cast<int>(value_bytes);
  std::int64_t tile[3];
  for (int a = 0; a < 3; ++a) tile[a] = extent_of(grid, division, a).most;
  const std::int64_t width = widest(grid, division, layers);  // tiles begin on lines of memory
  const std::int64_t strips = ceil_div(width + columns - 1, time_tile_width(columns, layers));
  const double instructions = step_instructions(layers, value_bytes);
  Pass best{division, layers, 1, 0.0};
  double least = 0.0;
  for (int chunks = 1; chunks <= std::min<std::int64_t>(tile[0], kMostChunks); ++chunks) {
    const std::int64_t rounds = ceil_div(strips * chunks, warps);
    const std::int64_t steps = rounds * (ceil_div(tile[0], chunks) + 2 * layers + 2);
    const double here = static_cast<double>(steps);
    if (chunks == 1 || here < least) least = here, best.chunks = chunks;
  }
  const double compute = least * instructions * warps / kSchedulers / machine.gpu_clock;
  const double points = static_cast<double>(tile[0] * tile[1] * tile[2]) * division.blocks_in_all();
  const double bytes = points * static_cast<double>(value_bytes);
  // What multiprocessors read of the cache more than once: around strips, chunks and tiles.
  const auto with_halo = [](double extent, double halo) { return (extent + halo) / extent; };
  const double again =
      with_halo(static_cast<double>(tile[2]), 2.0 * static_cast<double>(strips) * columns) *
      with_halo(static_cast<double>(tile[0]) / best.chunks, 2.0 * layers);
  const double moved = bytes * (source ? 3.0 : 2.0);
  best.seconds = overlapped(machine, compute, bytes * (again + 1.0), moved) / layers;
  return best;
}

void minus(std::int32_t (&numbers)[3], const std::int32_t (&by)[3]) {
  for (int a = 0; a < 3; ++a) numbers[a] -= by[a];
}

std::vector<TimeTilePart> parts_of(const TileShape& pe, const std::vector<Tile>& tiles,
                                   std::int32_t align, int chunks) {
  std::vector<TimeTilePart> parts;
  for (const Tile& tile : tiles) {
    TimeTilePart& part = parts.emplace_back();
    part.chunks = chunks;
    for (int a = 0; a < 3; ++a) {
      const std::int64_t to_pe = tile.shape.origin[a] - pe.origin[a] - pe.lo[a];
      part.lo[a] = static_cast<std::int32_t>(tile.shape.lo[a] + to_pe);
      part.hi[a] = static_cast<std::int32_t>(tile.shape.hi[a] + to_pe);
    }
    part.lo[2] = nearest(part.lo[2], align);
    if (part.hi[2] < pe.hi[2] - pe.lo[2]) part.hi[2] = nearest(part.hi[2], align);
  }
  return parts;
}

}  // namespace

TimeTileBox box_of_pes(const Tiling& tiling, int dims, int layers, std::size_t value_bytes) {
  std::int64_t extent[3] = {};
  for (const auto& of_pe : tiling.tiles)
    for (int a = 0; a < 3; ++a) {
      const TileShape& s = of_pe[0].shape;
      extent[a] = std::max<std::int64_t>(extent[a], s.hi[a] - s.lo[a]);
    }
  const int columns = 16 / static_cast<int>(value_bytes);
  const std::int64_t beside = (layers + columns - 1) / columns * columns + columns;
  const std::int64_t before = ceil_div(beside, 32) * 32;  // the first column lies on a line
  TimeTileBox box;
  box.halo[0] = layers;
  box.halo[1] = dims == 3 ? layers : 0;
  box.halo[2] = layers;
  box.row = ceil_div(before + extent[2] + beside, 32) * 32;
  box.plane = box.row * (extent[1] + 2 * box.halo[1]);
  box.first = box.halo[0] * box.plane + box.halo[1] * box.row + before;
  box.values = (extent[0] + 2 * box.halo[0]) * box.plane + 32;
  return box;
}

namespace {

// The copies of a PE's points.
std::vector<GhostCopy> ghosts_of(const Tiling& pes, std::size_t pe, const TimeTileBox& box) {
  std::vector<GhostCopy> ghosts;
  const Tile& mine = pes.tiles[pe][0];
  for (const TileEdge& edge : mine.sends) {
    const Tile& theirs = pes.tiles[at(edge.pe)][0];
    TileEdge halo = *std::ranges::find(theirs.receives, edge.flag, &TileEdge::flag);
    GhostCopy ghost;
    ghost.pe = edge.pe;
    std::ranges::copy(edge.lo, ghost.lo);
    std::ranges::copy(edge.hi, ghost.hi);
    minus(ghost.lo, mine.shape.lo);
    minus(ghost.hi, mine.shape.lo);
    minus(halo.lo, theirs.shape.lo);
    ghost.shift = box.place(halo.lo) - box.place(ghost.lo);
    ghosts.push_back(ghost);
  }
  return ghosts;
}

// What of a copy is of the points of a part; empty along an axis: nothing.
GhostCopy clip(GhostCopy ghost, const TimeTilePart& part) {
  for (int a = 0; a < 3; ++a) {
    ghost.lo[a] = std::max(ghost.lo[a], part.lo[a]);
    ghost.hi[a] = std::min(ghost.hi[a], part.hi[a]);
  }
  return ghost;
}

}  // namespace

void find_ghosts(const Tiling& pes, std::size_t pe, TimeTileLayout& time_tiles) {
  const std::vector<GhostCopy> all = ghosts_of(pes, pe, time_tiles.box);
  std::vector<GhostCopy>& ghosts = time_tiles.pes[pe].ghosts;
  for (TimeTilePart& part : time_tiles.pes[pe].parts) {
    part.first_ghost = static_cast<std::int32_t>(ghosts.size());
    for (const GhostCopy& of_pe : all) {
      const GhostCopy mine = clip(of_pe, part);
      bool some = true;
      for (int a = 0; a < 3; ++a) some = some && mine.lo[a] < mine.hi[a];
      if (some) ghosts.push_back(mine);
    }
    part.ghosts = static_cast<std::int32_t>(ghosts.size()) - part.first_ghost;
  }
}

std::optional<TimeTileLayout> lay_out_time_tiles(const Grid& grid, const StencilSpec& spec,
                                                 const StencilRun& run, int blocks,
                                                 std::size_t value_bytes, bool source,
                                                 const WarpKernels& kernels) {
  std::optional<Pass> best;
  int asked = 0;  // the most that there is a kernel for, of what the spec asks for
  for (const int layers : kernels.layers)
    if (layers <= spec.layers) asked = layers;
  each_division(grid, spec.pes, blocks, [&](const Division& division) {
    for (const int layers : kernels.layers) {
      if (spec.layers > 0 ? layers != asked : layers > kUsualLayers) continue;
      if (layers > most_layers(grid, division)) continue;
      const auto time_of = grid.dims == 3 ? predict_planes : predict_rows;
      const Pass here =
          time_of(spec.machine, grid, division, layers, value_bytes, source, kernels.warps);
      if (!best || here.seconds < best->seconds) best = here;
    }
  });
  if (!best) return {};
  TimeTileLayout time_tiles;
  StencilPlan& plan = time_tiles.layout.plan;
  plan.division = best->division;
  plan.layers = best->layers;
  plan.sweep = "time_tiles";
  if (grid.dims == 3) plan.fast_bytes = plane_bytes(kernels.warps, plan.layers);
  time_tiles.layout.tiling = make_tiling(grid, plan.division, plan.layers);
  Division whole = plan.division;
  for (int& cuts : whole.blocks) cuts = 1;
  const Tiling pes = make_tiling(grid, whole, plan.layers);
  time_tiles.box = box_of_pes(pes, grid.dims, plan.layers, value_bytes);
  const std::int32_t align = alignment(grid, plan.division, plan.layers);
  for (std::size_t pe = 0; pe < pes.tiles.size(); ++pe) {
    const TileShape& shape = pes.tiles[pe][0].shape;
    time_tiles.pes.push_back(
        {shape, parts_of(shape, time_tiles.layout.tiling.tiles[pe], align, best->chunks), {}});
    find_ghosts(pes, pe, time_tiles);
  }
  time_tiles.seconds = best->seconds;
  plan.check_every = check_period(run, best->seconds, plan.layers);
  describe_tiling(spec, time_tiles.layout);
  plan.halo = plan.halo_points == 0 ? "none" : "values";
  return time_tiles;
}

}  // namespace cpufree
