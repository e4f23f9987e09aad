// Which kernels of blocks of warps a grid gets, and how it falls to them.
#include <algorithm>
#include <map>

#include "cpufree/stencils/host/warp_plan.hpp"
#include "harness.hpp"
#include "stencil_rig.hpp"

using namespace stencil_rig;

namespace {

constexpr Tile3dShape kTiles3d[] = {{1, 4}, {4, 4}, {4, 8}, {4, 16}};
constexpr int kLayers2d[] = {1, 2, 4, 8};
constexpr int kLayers3d[] = {1, 2};

WarpKernels kernels(int dims) {
  return {dims == 2 ? std::span<const int>(kLayers2d) : std::span<const int>(kLayers3d), 16,
          227 << 10};
}

auto in_registers_3d(const Grid& grid, int pes, std::size_t fast_bytes = 227 << 10, int halo = -1) {
  StencilSpec spec;
  spec.pes = pes;
  spec.halo = halo;
  return lay_out_registers_3d(grid, spec, {}, 132, sizeof(float), false,
                              {{}, 16, fast_bytes, kTiles3d});
}
auto in_memory(const Grid& grid, const StencilSpec& spec = {}) {
  return lay_out_time_tiles(grid, spec, {}, 132, sizeof(float), false, kernels(grid.dims));
}

std::int64_t widest_part(const TimeTileLayout& time_tiles) {
  std::int64_t most = 0;
  for (const auto& pe : time_tiles.pes)
    for (const TimeTilePart& part : pe.parts)
      most = std::max<std::int64_t>(most, part.hi[2] - part.lo[2]);
  return most;
}

}  // namespace

TEST(grids_of_two_dimensions_take_four_iterations_a_pass) {
  CHECK_EQ(in_memory(grid2d(2048, 2048))->layout.plan.layers, 4);
  CHECK_EQ(in_memory(grid2d(8192, 8192))->layout.plan.layers, 4);
}

TEST(tiles_do_not_take_another_strip_for_beginning_on_a_line_of_memory) {
  StencilSpec two;
  two.pes = 2;
  const auto time_tiles = in_memory(grid2d(4096, 2048), two);
  CHECK_EQ(time_tiles->layout.plan.layers, 4);
  const int cuts = time_tiles->layout.plan.division.blocks[2];
  const auto strips = [](std::int64_t width) { return (width + 3 + 119) / 120; };
  CHECK_EQ(strips(widest_part(*time_tiles)), strips((2048 + cuts - 1) / cuts));
}

TEST(halo_steps_without_a_kernel_become_fewer) {
  StencilSpec spec;
  spec.layers = 3;
  CHECK_EQ(in_memory(grid2d(2048, 2048), spec)->layout.plan.layers, 2);
  spec.layers = 64;
  CHECK_EQ(in_memory(grid2d(2048, 2048), spec)->layout.plan.layers, 8);
  CHECK_EQ(in_memory(grid3d(64, 64, 64, 0), spec)->layout.plan.layers, 2);
}

TEST(boxes_that_stay_in_memory_take_two_iterations_a_pass) {
  for (const std::int64_t n : {160, 256, 512})
    CHECK_EQ(in_memory(grid3d(n, n, n))->layout.plan.layers, 2);
  StencilSpec two;
  two.pes = 2;
  CHECK_EQ(in_memory(grid3d(1024, 512, 512), two)->layout.plan.layers, 2);
}

TEST(boxes_stay_in_registers_where_the_gpus_have_enough_of_them) {
  const Grid box = grid3d(256, 256, 256);
  CHECK_EQ(in_registers_3d(box, 8)->shape.planes, 8);
  CHECK_EQ(in_registers_3d(box, 4)->shape.planes, 16);
  CHECK(!in_registers_3d(box, 2).has_value());
  CHECK_EQ(in_registers_3d(grid3d(128, 128, 128), 1)->layout.plan.blocks, 128);
  CHECK(!in_registers_3d(grid3d(512, 512, 512), 8).has_value());
  CHECK(!in_registers_3d(grid2d(64, 64), 1).has_value());
}

TEST(boxes_fit_that_the_kernels_hold_and_no_others) {
  int held = 0, others = 0;
  for (const bool source : {false, true})
    for (const std::int64_t n : {20, 64, 100, 128, 200, 256, 300})
      for (const int pes : {1, 2, 3, 4, 8}) {
        const Grid grid = grid3d(n, n, n - 6);
        StencilSpec spec;
        spec.pes = pes;
        const auto layout = lay_out_registers_3d(grid, spec, {}, 132, sizeof(float), source,
                                                 {{}, 16, 225 << 10, kTiles3dOfFloat});
        CHECK_EQ(layout.has_value(), fits_registers_3d(grid, pes, 132, sizeof(float), source));
        ++(layout ? held : others);
      }
  CHECK(held > 10 && others > 10);
}

TEST(boxes_in_registers_are_predicted_to_beat_passes_over_memory) {
  for (const int pes : {4, 8}) {
    StencilSpec spec;
    spec.pes = pes;
    const Grid grid = grid3d(256, 256, 256);
    CHECK(in_registers_3d(grid, pes)->seconds < in_memory(grid, spec)->seconds);
  }
}

TEST(grids_of_two_dimensions_and_without_points_to_update_are_not_for_boxes) {
  CHECK(!fits_registers_3d(grid2d(64, 64), 1, 132, 4, false));
  CHECK(!fits_registers_3d(grid3d(2, 9, 9), 1, 132, 4, false));
}

TEST(more_iterations_share_a_pass_where_exchanges_of_the_machine_are_slow) {
  StencilSpec usual, slow;
  usual.pes = slow.pes = 8;
  usual.machine.stencil_pass_exchange = 0.0;
  slow.machine.stencil_pass_exchange = 1e-3;
  const Grid grid = grid2d(512, 512);
  CHECK(in_memory(grid, slow)->layout.plan.layers > in_memory(grid, usual)->layout.plan.layers);
}

TEST(boxes_are_not_for_registers_where_shared_memory_has_no_room_for_their_rows) {
  CHECK(!in_registers_3d(grid3d(128, 128, 128), 1, 48 << 10).has_value());
}

TEST(tiles_in_registers_exchange_packets) {
  const Grid box = grid3d(128, 128, 128);
  for (const int halo : {-1, 1}) {
    const auto layout = in_registers_3d(box, 1, 227 << 10, halo);
    CHECK(layout->layout.packets && layout->layout.plan.halo == "packets");
  }
  CHECK(!in_registers_3d(box, 1, 227 << 10, 0).has_value());  // values and flags are asked for
}

TEST(mailboxes_of_tiles_do_not_overlap_and_both_ends_know_them) {
  for (const unsigned periodic : {0U, 7U}) {
    const auto layout = in_registers_3d(grid3d(60, 50, 70, periodic), 2);
    const Tile3dPacking packing = packing_of(layout->shape, sizeof(float));
    const auto size = [&](const TileShape& s, const TileEdge& edge) {
      int axis = 0;
      while (axis < 2 && edge.hi[axis] > s.lo[axis] && edge.lo[axis] < s.hi[axis]) ++axis;
      return packing.mailbox(axis, layout->warps);
    };
    const Tiling& tiling = layout->layout.tiling;
    std::map<std::pair<int, int>, std::int64_t> place;  // of a PE's flag
    for (std::size_t pe = 0; pe < tiling.tiles.size(); ++pe) {
      std::map<std::int64_t, std::int64_t> ends;  // by beginning
      for (const Tile& tile : tiling.tiles[pe])
        for (const TileEdge& edge : tile.receives) {
          place[{static_cast<int>(pe), edge.flag}] = edge.mailbox;
          CHECK(ends.emplace(edge.mailbox, edge.mailbox + size(tile.shape, edge)).second);
          CHECK_EQ(edge.mailbox % 8, 0);
        }
      std::int64_t free = 0;
      for (const auto& [begin, end] : ends) {
        CHECK(begin >= free);
        free = end;
      }
      CHECK(free <= tiling.mailbox);
    }
    for (const auto& of_pe : tiling.tiles)
      for (const Tile& tile : of_pe)
        for (const TileEdge& edge : tile.sends)
          CHECK_EQ(edge.mailbox, (place[{edge.pe, edge.flag}]));
  }
}

// Threads that await nothing read packets all the same: some that are there.
TEST(there_is_room_for_a_halo_of_each_kind_where_packets_are_read_in_vain) {
  const auto layout = lay_out_registers_3d(grid3d(6, 6, 9), {}, {}, 1, sizeof(float), false,
                                           {{}, 16, 227 << 10, kTiles3d});
  CHECK_EQ(layout->layout.plan.halo_points, 0);
  const Tile3dPacking packing = packing_of(layout->shape, sizeof(float));
  for (int axis = 0; axis < 3; ++axis)
    CHECK(layout->layout.tiling.mailbox >= packing.mailbox(axis, layout->warps));
}

TEST(copies_of_points_are_made_by_the_blocks_that_have_them) {
  StencilSpec two;
  two.pes = 2;
  const auto time_tiles = in_memory(grid3d(514, 256, 258), two);
  CHECK_EQ(time_tiles->layout.plan.layers, 2);
  for (const auto& pe : time_tiles->pes) {
    std::int64_t points = 0;
    for (const TimeTilePart& part : pe.parts)
      for (std::int32_t g = 0; g < part.ghosts; ++g) {
        const GhostCopy& ghost = pe.ghosts[at(part.first_ghost + g)];
        std::int64_t here = 1;
        for (int a = 0; a < 3; ++a) {
          CHECK(ghost.lo[a] >= part.lo[a] && ghost.hi[a] <= part.hi[a]);
          here *= ghost.hi[a] - ghost.lo[a];
        }
        CHECK(here > 0);
        points += here;
      }
    CHECK_EQ(points, std::int64_t{2} * 254 * 256);  // two planes of what is updated
    CHECK(std::ranges::count(pe.parts, 0, &TimeTilePart::ghosts) > 50);
  }
}

TEST(boxes_fall_to_whole_windows) {
  for (const int n : {256, 512}) {
    const auto time_tiles = in_memory(grid3d(n, n, n, 0));
    const StencilPlan& plan = time_tiles->layout.plan;
    CHECK_EQ(plan.blocks, 128);
    CHECK_EQ(widest_part(*time_tiles) % 128, 0);
    CHECK(plan.fast_bytes > 0 && plan.fast_bytes <= 227 << 10);
  }
}
