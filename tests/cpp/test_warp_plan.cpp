// Which kernels of blocks of warps a grid gets, and how it falls to them.
#include <algorithm>
#include <map>

#include "cpufree/run/warp_plan.hpp"
#include "harness.hpp"
#include "stencil_rig.hpp"

using namespace stencil_rig;

namespace {

constexpr RegisterShape kShapes[] = {{1, 1}, {1, 2}, {1, 4}, {2, 4}, {4, 4}, {4, 8}, {4, 16}};
constexpr BrickShape kBricks[] = {{1, 4}, {4, 4}, {4, 8}, {4, 16}};
constexpr int kLayers2d[] = {1, 2, 4, 8};
constexpr int kLayers3d[] = {1};

WarpKernels kernels(int dims) {
  return {kShapes, dims == 2 ? std::span<const int>(kLayers2d) : std::span<const int>(kLayers3d),
          16, 227 << 10};
}

auto in_registers(const Grid& grid, const StencilSpec& spec = {}, const StencilRun& run = {}) {
  return lay_out_registers(grid, spec, run, 132, sizeof(float), false, kernels(grid.dims));
}
auto in_bricks(const Grid& grid, int pes, std::size_t fast_bytes = 227 << 10) {
  StencilSpec spec;
  spec.pes = pes;
  return lay_out_bricks(grid, spec, {}, 132, sizeof(float), false,
                        {{}, {}, 16, fast_bytes, kBricks});
}
auto in_memory(const Grid& grid, const StencilSpec& spec = {}) {
  return lay_out_streams(grid, spec, {}, 132, sizeof(float), false, kernels(grid.dims));
}

std::int64_t widest_part(const StreamLayout& streams) {
  std::int64_t most = 0;
  for (const auto& pe : streams.pes)
    for (const StreamPart& part : pe.parts)
      most = std::max<std::int64_t>(most, part.hi[2] - part.lo[2]);
  return most;
}

}  // namespace

TEST(small_grids_stay_in_registers_and_large_ones_in_memory) {
  CHECK(in_registers(grid2d(256, 256)).has_value());
  CHECK(!in_registers(grid2d(2048, 2048)).has_value());
  CHECK_EQ(in_memory(grid2d(2048, 2048))->layout.plan.layers, 4);
  CHECK_EQ(in_memory(grid2d(8192, 8192))->layout.plan.layers, 4);
}

TEST(tiles_do_not_take_another_strip_for_beginning_on_a_line_of_memory) {
  StencilSpec two;
  two.pes = 2;
  const auto streams = in_memory(grid2d(4096, 2048), two);
  CHECK_EQ(streams->layout.plan.layers, 4);
  const int cuts = streams->layout.plan.division.blocks[2];
  const auto strips = [](std::int64_t width) { return (width + 3 + 119) / 120; };
  CHECK_EQ(strips(widest_part(*streams)), strips((2048 + cuts - 1) / cuts));
}

TEST(registers_serve_large_grids_where_every_iteration_is_exchanged_or_looked_at) {
  StencilSpec every;
  every.layers = 1;
  CHECK(in_registers(grid2d(2048, 2048), every).has_value());
  StencilRun looked;
  looked.check_every = 1;
  CHECK(in_registers(grid2d(2048, 2048), {}, looked).has_value());
}

TEST(halo_steps_without_a_kernel_become_fewer) {
  StencilSpec spec;
  spec.layers = 3;
  CHECK_EQ(in_memory(grid2d(2048, 2048), spec)->layout.plan.layers, 2);
  spec.layers = 64;
  CHECK_EQ(in_memory(grid2d(2048, 2048), spec)->layout.plan.layers, 8);
  CHECK_EQ(in_memory(grid3d(64, 64, 64, 0), spec)->layout.plan.layers, 1);
}

TEST(boxes_stay_in_registers_where_the_gpus_have_enough_of_them) {
  const Grid box = grid3d(256, 256, 256);
  CHECK_EQ(in_bricks(box, 8)->shape.planes, 8);
  CHECK_EQ(in_bricks(box, 4)->shape.planes, 16);
  CHECK(!in_bricks(box, 2).has_value());
  CHECK_EQ(in_bricks(grid3d(128, 128, 128), 1)->layout.plan.blocks, 128);
  CHECK(!in_bricks(grid3d(512, 512, 512), 8).has_value());
  CHECK(!in_bricks(grid2d(64, 64), 1).has_value());
}

TEST(seconds_are_told_of_boxes_that_the_kernels_hold_and_of_no_others) {
  int held = 0, others = 0;
  for (const bool source : {false, true})
    for (const std::int64_t n : {20, 64, 100, 128, 200, 256, 300})
      for (const int pes : {1, 2, 3, 4, 8}) {
        const Grid grid = grid3d(n, n, n - 6);
        StencilSpec spec;
        spec.pes = pes;
        const auto bricks = lay_out_bricks(grid, spec, {}, 132, sizeof(float), source,
                                           {{}, {}, 16, 225 << 10, kBricksOfFloat});
        const double seconds = brick_seconds(grid, pes, 132, sizeof(float), source);
        CHECK_EQ(bricks ? bricks->seconds : 0.0, seconds);
        ++(bricks ? held : others);
      }
  CHECK(held > 10 && others > 10);
}

TEST(boxes_in_registers_are_predicted_to_beat_passes_over_memory) {
  for (const int pes : {4, 8}) {
    StencilSpec spec;
    spec.pes = pes;
    const Grid grid = grid3d(256, 256, 256);
    const auto in_boxes = in_memory(grid, spec);
    CHECK(brick_seconds(grid, pes, 132, 4, false) < in_boxes->seconds);
  }
  CHECK_EQ(brick_seconds(grid2d(64, 64), 1, 132, 4, false), 0.0);
  CHECK_EQ(brick_seconds(grid3d(2, 9, 9), 1, 132, 4, false), 0.0);
}

TEST(boxes_are_not_for_registers_where_shared_memory_has_no_room_for_their_rows) {
  CHECK(!in_bricks(grid3d(128, 128, 128), 1, 48 << 10).has_value());
}

TEST(mailboxes_of_bricks_do_not_overlap_and_both_ends_know_them) {
  for (const unsigned periodic : {0U, 7U}) {
    const auto bricks = in_bricks(grid3d(60, 50, 70, periodic), 2);
    const Tiling& tiling = bricks->layout.tiling;
    std::map<std::pair<int, int>, std::int64_t> place;  // of a PE's flag
    for (std::size_t pe = 0; pe < tiling.tiles.size(); ++pe) {
      std::vector<std::int64_t> begins;
      for (const Tile& tile : tiling.tiles[pe])
        for (const TileEdge& edge : tile.receives) {
          place[{static_cast<int>(pe), edge.flag}] = edge.mailbox;
          begins.push_back(edge.mailbox);
          CHECK_EQ(edge.mailbox % 32, 0);
        }
      std::ranges::sort(begins);
      begins.push_back(tiling.mailbox);
      const std::int64_t least = bricks->shape.mailbox(2, bricks->warps);
      for (std::size_t k = 1; k < begins.size(); ++k) CHECK(begins[k] - begins[k - 1] >= least);
    }
    for (const auto& of_pe : tiling.tiles)
      for (const Tile& tile : of_pe)
        for (const TileEdge& edge : tile.sends)
          CHECK_EQ(edge.mailbox, (place[{edge.pe, edge.flag}]));
  }
}

TEST(boxes_fall_to_whole_windows) {
  for (const int n : {256, 512}) {
    const auto streams = in_memory(grid3d(n, n, n, 0));
    const StencilPlan& plan = streams->layout.plan;
    CHECK_EQ(plan.blocks, 128);
    CHECK_EQ(widest_part(*streams) % 128, 0);
    CHECK(plan.fast_bytes > 0 && plan.fast_bytes <= 227 << 10);
  }
}
