#include "cpufree/stencils/host/stencil_plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

constexpr int kMostLayers = 64;
constexpr double kMostPlanes = 64.0;           // of a front
constexpr double kSecondsBetweenLooks = 5e-3;  // at the host, where nothing else needs a check

// The largest tile, as the model sees it.
struct TileSize {
  double extent[3] = {1.0, 1.0, 1.0};
  bool exchanged[3] = {false, false, false};

  // Points of the tile and of `layers` layers around it.
  double points(int layers = 0) const {
    double product = 1.0;
    for (int a = 0; a < 3; ++a) product *= extent[a] + (exchanged[a] ? 2.0 * layers : 0.0);
    return product;
  }
  double plane() const { return extent[1] * extent[2]; }
  bool alone() const { return !exchanged[0] && !exchanged[1] && !exchanged[2]; }
};

TileSize size_of(const Grid& grid, const Division& division) {
  TileSize size;
  for (int a = 0; a < 3; ++a) {
    size.extent[a] = std::ceil(static_cast<double>(grid.updated(a)) / division.parts(a));
    size.exchanged[a] = grid.active(a) && (grid.periodic[a] || division.parts(a) > 1);
  }
  return size;
}

// Seconds of an iteration, were there an exchange every `layers` of them.
double predict(const TileSize& size, int layers, int thickness, double bytes, bool source,
               const StencilCosts& costs) {
  const double arrays = source ? 2.0 : 1.0;
  double seconds = 0.0;  // of the pass
  for (int j = 1; j <= layers; ++j) seconds += size.points(layers - j) * costs.point;
  const double face = *std::ranges::min_element(costs.face.axis);
  if (!size.alone())
    seconds += costs.exchange + (size.points(layers) - size.points()) * face * costs.point;
  if (arrays * size.points() * bytes > costs.near_bytes) {
    const double window = 2.0 * layers * (thickness + 1.0) * size.plane() * arrays * bytes;
    const double moves = window <= costs.near_bytes ? 1.0 : layers;
    seconds += moves * (arrays + 1.0) * size.points() * bytes * costs.byte;
  }
  return seconds / layers;
}

int choose_layers(const TileSize& size, std::int64_t most, int thickness, double bytes, bool source,
                  const StencilCosts& costs) {
  int best = 1;
  double least = predict(size, 1, thickness, bytes, source, costs);
  for (const int layers : {2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    if (layers > most) break;
    const double here = predict(size, layers, thickness, bytes, source, costs);
    if (here < 0.98 * least) least = here, best = layers;
  }
  return best;
}

// Lays the tiles out, and returns whether all of them fit in memory of the blocks' own.
bool fits_on_chip(const Grid& grid, StencilLayout& layout, std::size_t value_bytes,
                  const StencilCosts& costs) {
  StencilPlan& plan = layout.plan;
  layout.tiling = make_tiling(grid, plan.division, plan.layers, plan.thickness);
  std::int64_t values = 0;
  for (const auto& of_pe : layout.tiling.tiles)
    for (const Tile& tile : of_pe) values = std::max(values, tile.shape.values());
  const std::size_t bytes = at(values) * value_bytes;
  plan.in_fast_memory = bytes <= costs.fast_bytes;
  plan.fast_bytes = plan.in_fast_memory ? static_cast<std::int64_t>(bytes) : 0;
  return plan.in_fast_memory;
}

// The tiles, on chip if need be with thinner fronts, which take less room, or with fewer layers:
// better than in memory with more of both.
void make_tiles(const Grid& grid, const StencilSpec& spec, StencilLayout& layout,
                std::size_t value_bytes, const StencilCosts& costs) {
  StencilPlan& plan = layout.plan;
  const int layers = plan.layers;
  const int thickness = plan.thickness;
  if (fits_on_chip(grid, layout, value_bytes, costs) || costs.fast_bytes == 0) return;
  for (; plan.layers > 0; plan.layers = spec.layers == 0 ? plan.layers - 1 : 0)
    for (plan.thickness = thickness; plan.thickness > 0;
         plan.thickness = spec.thickness == 0 ? plan.thickness / 2 : 0)
      if (fits_on_chip(grid, layout, value_bytes, costs)) return;
  plan.layers = layers;
  plan.thickness = thickness;
  fits_on_chip(grid, layout, value_bytes, costs);
}

}  // namespace

std::int64_t check_period(const StencilRun& run, double seconds, int layers) {
  if (run.check_every > 0) return run.check_every;
  const double period = std::clamp(kSecondsBetweenLooks / seconds, 1.0, 1e6);
  const auto exchanges = static_cast<std::int64_t>(std::ceil(period / layers));
  return exchanges * layers;
}

std::int64_t describe_tiling(const StencilSpec& spec, StencilLayout& layout) {
  StencilPlan& plan = layout.plan;
  const Tiling& tiling = layout.tiling;
  std::int64_t most_of_a_tile = 0;
  for (std::size_t pe = 0; pe < tiling.tiles.size(); ++pe)
    for (const Tile& tile : tiling.tiles[pe]) {
      const TileShape& s = tile.shape;
      std::int64_t owned = 1;
      for (int a = 0; a < 3; ++a) owned *= s.hi[a] - s.lo[a];
      plan.tile_points = std::max(plan.tile_points, owned);
      std::int64_t received = 0;
      for (const TileEdge& edge : tile.receives) {
        received += edge.points;
        if (at(edge.pe) != pe) plan.pe_halo_points += edge.points;
      }
      plan.halo_points += received;
      most_of_a_tile = std::max(most_of_a_tile, received);
    }
  plan.engine = engine_name(spec.engine);
  plan.pes = plan.division.pes_in_all();
  plan.blocks = plan.division.blocks_in_all();
  return most_of_a_tile;
}

StencilLayout lay_out_stencil(const Grid& grid, const StencilSpec& spec, const StencilRun& run,
                              int blocks, std::size_t value_bytes, bool source,
                              const StencilCosts& costs) {
  StencilLayout layout;
  StencilPlan& plan = layout.plan;
  plan.division = divide(grid, spec.pes, blocks, costs.face);
  const TileSize size = size_of(grid, plan.division);
  const std::int64_t most = std::min<std::int64_t>(most_layers(grid, plan.division), kMostLayers);
  const auto bytes = static_cast<double>(value_bytes);
  plan.thickness = spec.thickness;
  if (plan.thickness == 0)
    plan.thickness = static_cast<int>(
        std::clamp(std::ceil(costs.front_points / size.plane()), 1.0, kMostPlanes));
  plan.layers = spec.layers > 0 ? static_cast<int>(std::min<std::int64_t>(spec.layers, most))
                                : choose_layers(size, most, plan.thickness, bytes, source, costs);
  make_tiles(grid, spec, layout, value_bytes, costs);
  plan.check_every = check_period(
      run, predict(size, plan.layers, plan.thickness, bytes, source, costs), plan.layers);
  const std::int64_t most_of_a_tile = describe_tiling(spec, layout);
  layout.packets = spec.halo >= 0 ? spec.halo == 1 : most_of_a_tile <= costs.most_packets;
  plan.halo = plan.halo_points == 0 ? "none" : layout.packets ? "packets" : "values";
  return layout;
}

double largest_update(const std::vector<double>& updates, double largest) {
  for (const double update : updates)
    if (!(update <= largest) && !std::isnan(largest)) largest = update;
  return largest;
}

void check(const StencilSpec& spec) {
  check(PesSpec{spec.engine, spec.pes, spec.blocks, spec.gpus, spec.team});
  require(spec.halo >= -1 && spec.halo <= 1,
          "halo must be 1 (packets), 0 (values and flags) or -1 (automatic), not " +
              std::to_string(spec.halo));
  require(spec.layers >= 0 && spec.layers <= kMostLayers,
          "halo_steps must lie between 1 and " + std::to_string(kMostLayers) +
              ", or be 0 (automatic), not " + std::to_string(spec.layers));
  require(spec.thickness >= 0, "thickness must not be negative (0: automatic)");
  require(spec.rows >= 0, "rows must not be negative (0: automatic)");
  require(spec.boundary_blocks >= 0, "boundary_blocks must not be negative (0: automatic)");
  require(spec.sweep != Sweep::specialized_blocks || spec.engine == Engine::cuda_p2p,
          "specialized_blocks are for the engine cuda_p2p alone");
  require(spec.cores >= 0, "cores must not be negative (0: those of this process)");
}

void check(const StencilRun& run) {
  check(run.limits);
  require(run.iterations >= 0,
          "iterations must not be negative, but are " + std::to_string(run.iterations));
  require(run.check_every >= 0, "check_every must not be negative (0: automatic), but is " +
                                    std::to_string(run.check_every));
  require(!std::isnan(run.tolerance), "the tolerance must be a number");
}

void check_study(const StencilSpec& spec, const StencilRun& run, bool source) {
  if (spec.study == Study::none) return;
  if (spec.study == Study::trace) {
    if (on_gpus(spec.engine)) throw Unsupported("stencils are traced on CPU engines alone");
    return;
  }
  const std::string study = std::string("the study ") + study_name(spec.study);
  if (spec.study == Study::split || source)
    throw Unsupported(study + (source ? " is there for stencils without a source term alone"
                                      : " is there for solvers alone"));
  require(run.tolerance < 0.0,
          study + " has no values that a tolerance could end it by: give iterations alone");
}

namespace {
constexpr std::pair<const char*, Sweep> kSweeps[] = {
    {"auto", Sweep::automatic},
    {"wavefront", Sweep::wavefront},
    {"registers_3d", Sweep::registers_3d},
    {"time_tiles", Sweep::time_tiles},
    {"specialized_blocks", Sweep::specialized_blocks}};
}  // namespace

Sweep sweep_from_name(const std::string& name) {
  for (const auto& [text, value] : kSweeps)
    if (name == text) return value;
  throw InvalidInput("unknown sweep '" + name +
                     "'; choose one of: auto, wavefront, registers_3d, time_tiles, "
                     "specialized_blocks");
}

const char* reason_name(StencilReason reason) {
  switch (reason) {
    case StencilReason::all_done:
      return "CONVERGED_ITS";
    case StencilReason::converged:
      return "CONVERGED_ATOL";
    case StencilReason::not_converged:
      return "DIVERGED_ITS";
    case StencilReason::time_limit:
      return "TIME_LIMIT";
    case StencilReason::interrupted:
      return "INTERRUPTED";
    case StencilReason::not_finite:
      return "DIVERGED_NANORINF";
  }
  return "UNKNOWN";
}

}  // namespace cpufree
