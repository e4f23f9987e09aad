#include "cpufree/stencils/host/specialized_plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/stencils/time_tile_shape.hpp"

namespace cpufree {

namespace {

using Parts = std::vector<TimeTilePart>;

int layers_for(const StencilSpec& spec, const WarpKernels& kernels) {
  int layers = 1;
  for (const int k : kernels.layers)
    if (k <= (spec.layers > 0 ? spec.layers : kUsualLayers)) layers = k;
  return layers;
}

// What cuts planes for blocks, as if there were no others.
class Cutter {
 public:
  Cutter(const Grid& grid, const StencilRun& run, int layers, std::size_t value_bytes, bool source,
         const WarpKernels& kernels)
      : grid_(grid),
        run_(run),
        layers_(layers),
        value_bytes_(value_bytes),
        source_(source),
        kernels_(kernels) {}

  // `planes` planes from `begin` on, for at most `blocks` blocks.
  Parts cut_planes(std::int64_t begin, std::int64_t planes, int blocks) const {
    Grid slab = grid_;
    slab.n[0] = planes + 2;
    slab.periodic[0] = false;
    StencilSpec spec;
    spec.layers = layers_;
    const auto found =
        lay_out_time_tiles(slab, spec, run_, blocks, value_bytes_, source_, kernels_);
    require(found.has_value(), "specialized_blocks: " + std::to_string(planes) +
                                   " planes of this grid cannot " + "be cut for passes of " +
                                   std::to_string(layers_) + " iterations; give fewer halo_steps");
    Parts parts = found->pes[0].parts;
    for (TimeTilePart& part : parts) {
      part.lo[0] += static_cast<std::int32_t>(begin);
      part.hi[0] += static_cast<std::int32_t>(begin);
    }
    return parts;
  }

 private:
  const Grid& grid_;
  const StencilRun& run_;
  int layers_;
  std::size_t value_bytes_;
  bool source_;
  const WarpKernels& kernels_;
};

// The parts of a PE: those of the boundary, and the others.
struct PeParts {
  Parts boundary, inner;
};

// As many parts as other PEs have. What is added is empty.
void fill_up(Parts& parts, std::size_t count) {
  TimeTilePart empty;
  for (int a = 0; a < 3; ++a) empty.lo[a] = empty.hi[a] = 1;
  parts.resize(std::max(parts.size(), count), empty);
}

using Box = std::array<std::pair<std::int64_t, std::int64_t>, 3>;

bool empty(const TimeTilePart& part) { return part.lo[0] >= part.hi[0]; }

// The points of a part in the grid's numbers.
Box box_of(const TimeTilePart& part, const TileShape& pe) {
  Box box;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::int64_t first = pe.origin[a] + pe.lo[a];
    box[a] = {first + part.lo[a], first + part.hi[a]};
  }
  return box;
}

// Points of `theirs` that lie within `layers` of `mine`, across periodic boundaries too.
std::int64_t points_near(const Grid& grid, const Box& mine, const Box& theirs, int layers,
                         bool same) {
  std::int64_t points = 0;
  for (int code = 0; code < 27; ++code) {
    const int wraps[3] = {code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1};
    if (same && code == 13) continue;  // itself, without going around
    std::int64_t here = 1;
    for (std::size_t a = 0; a < 3; ++a) {
      const int axis = static_cast<int>(a);
      if (wraps[a] != 0 && !(grid.periodic[a] && grid.active(axis))) here = 0;
      const std::int64_t shift = wraps[a] * grid.n[a];
      const std::int64_t around = grid.active(axis) ? layers : 0;
      here *=
          std::max<std::int64_t>(0, std::min(mine[a].second + around, theirs[a].second + shift) -
                                        std::max(mine[a].first - around, theirs[a].first + shift));
    }
    points += here;
  }
  return points;
}

Tile tile_of(const TimeTilePart& part, const TileShape& pe) {
  Tile tile;
  TileShape& s = tile.shape = pe;
  for (int a = 0; a < 3; ++a) {
    s.lo[a] = pe.lo[a] + part.lo[a];
    s.hi[a] = pe.lo[a] + part.hi[a];
    s.out_lo[a] = s.lo[a] == pe.lo[a] ? pe.out_lo[a] : s.lo[a];
    s.out_hi[a] = s.hi[a] == pe.hi[a] ? pe.out_hi[a] : s.hi[a];
  }
  return tile;
}

// Every two parts of which one reads points of the other exchange flags. Receives of a part are
// numbered as they come; its sends are the other ends.
void connect(const Grid& grid, const TimeTileLayout& time_tiles, int layers, Tiling& tiling) {
  struct Place {
    int pe, block;
    Box box;
  };
  std::vector<Place> places;
  for (std::size_t pe = 0; pe < time_tiles.pes.size(); ++pe)
    for (std::size_t b = 0; b < time_tiles.pes[pe].parts.size(); ++b) {
      const TimeTilePart& part = time_tiles.pes[pe].parts[b];
      if (!empty(part))
        places.push_back(
            {static_cast<int>(pe), static_cast<int>(b), box_of(part, time_tiles.pes[pe].shape)});
    }
  std::vector<int> flags(time_tiles.pes.size(), 0);
  for (const Place& mine : places)
    for (const Place& theirs : places) {
      TileEdge edge;
      edge.points = static_cast<std::int32_t>(
          points_near(grid, mine.box, theirs.box, layers, &mine == &theirs));
      if (edge.points == 0) continue;
      edge.flag = flags[at(mine.pe)]++;
      edge.pe = theirs.pe;
      edge.block = theirs.block;
      tiling.tiles[at(mine.pe)][at(mine.block)].receives.push_back(edge);
      edge.pe = mine.pe;
      edge.block = mine.block;
      tiling.tiles[at(theirs.pe)][at(theirs.block)].sends.push_back(edge);
    }
  tiling.flags = *std::ranges::max_element(flags);
}

void check_specialized(const Grid& grid, const StencilSpec& spec) {
  require(spec.pes > 1,
          "specialized_blocks divide what other PEs need from the rest: ask for 2 PEs or more");
  require(grid.updated(0) / spec.pes >= 3,
          "specialized_blocks need 3 planes or more of axis 0 on every PE, but there are " +
              std::to_string(grid.updated(0)) + " for " + std::to_string(spec.pes));
}

}  // namespace

int boundary_share(int blocks, std::int64_t planes, int layers) {
  return static_cast<int>(std::max<std::int64_t>(1, blocks * std::int64_t{layers} / planes));
}

TimeTileLayout lay_out_specialized(const Grid& grid, const StencilSpec& spec, const StencilRun& run,
                                   int blocks, std::size_t value_bytes, bool source,
                                   const WarpKernels& kernels) {
  check_specialized(grid, spec);
  TimeTileLayout time_tiles;
  StencilPlan& plan = time_tiles.layout.plan;
  Division slabs;
  slabs.pes[0] = spec.pes;
  const std::int64_t planes = grid.updated(0) / spec.pes;  // of a PE, at least
  plan.layers = layers_for(spec, kernels);
  require(planes > 2 * plan.layers, "specialized_blocks: passes of " + std::to_string(plan.layers) +
                                        " iterations leave no planes between those that other PEs "
                                        "need; give fewer halo_steps");
  const int share =
      spec.boundary_blocks > 0 ? spec.boundary_blocks : boundary_share(blocks, planes, plan.layers);
  require(2 * share < blocks, "boundary_blocks must leave blocks for the rest: of " +
                                  std::to_string(blocks) + ", 2 x " + std::to_string(share) +
                                  " are too many");
  const Tiling pes = make_tiling(grid, slabs, plan.layers);
  time_tiles.box = box_of_pes(pes, grid.dims, plan.layers, value_bytes);
  const Cutter cutter(grid, run, plan.layers, value_bytes, source, kernels);
  std::vector<PeParts> parts;
  std::size_t most_boundary = 0, most_inner = 0;
  for (const auto& of_pe : pes.tiles) {
    const TileShape& s = of_pe[0].shape;
    const std::int64_t here = s.hi[0] - s.lo[0];
    PeParts& mine = parts.emplace_back();
    for (const std::int64_t begin : {std::int64_t{0}, here - plan.layers})
      for (const TimeTilePart& part : cutter.cut_planes(begin, plan.layers, share))
        mine.boundary.push_back(part);
    mine.inner = cutter.cut_planes(plan.layers, here - 2 * plan.layers, blocks - 2 * share);
    most_boundary = std::max(most_boundary, mine.boundary.size());
    most_inner = std::max(most_inner, mine.inner.size());
  }
  Tiling& tiling = time_tiles.layout.tiling;
  tiling.layers = plan.layers;
  for (std::size_t pe = 0; pe < parts.size(); ++pe) {
    const TileShape& s = pes.tiles[pe][0].shape;
    Parts all = parts[pe].boundary;
    fill_up(all, most_boundary);
    fill_up(parts[pe].inner, most_inner);
    all.insert(all.end(), parts[pe].inner.begin(), parts[pe].inner.end());
    std::vector<Tile>& tiles = tiling.tiles.emplace_back();
    for (const TimeTilePart& part : all) tiles.push_back(tile_of(part, s));
    time_tiles.pes.push_back({s, all, {}});
    find_ghosts(pes, pe, time_tiles);
  }
  connect(grid, time_tiles, plan.layers, tiling);
  plan.division = slabs;
  plan.division.blocks[0] = static_cast<int>(most_boundary + most_inner);
  tiling.division = plan.division;
  plan.sweep = "specialized_blocks";
  plan.boundary_blocks = static_cast<int>(most_boundary);
  if (grid.dims == 3) plan.fast_bytes = plane_bytes(kernels.warps, plan.layers);
  plan.check_every = check_period(run, 1e-6, plan.layers);
  describe_tiling(spec, time_tiles.layout);
  plan.halo = plan.halo_points == 0 ? "none" : "values";
  return time_tiles;
}

}  // namespace cpufree
