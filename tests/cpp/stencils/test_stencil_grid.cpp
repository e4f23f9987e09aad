// How grids are divided, and what tiles exchange.
#include <algorithm>
#include <set>

#include "cpufree/base/error.hpp"
#include "cpufree/stencils/host/stencil_plan.hpp"
#include "harness.hpp"
#include "stencil_rig.hpp"

using namespace stencil_rig;

namespace {

std::int64_t number(const Grid& g, const std::int64_t (&at)[3]) {
  std::int64_t n[3];
  for (int a = 0; a < 3; ++a) n[a] = (at[a] % g.n[a] + g.n[a]) % g.n[a];
  return (n[0] * g.n[1] + n[1]) * g.n[2] + n[2];
}

// The numbers in the grid of a box of a tile's points.
std::vector<std::int64_t> points_of(const Grid& g, const TileShape& s, const std::int32_t (&lo)[3],
                                    const std::int32_t (&hi)[3]) {
  std::vector<std::int64_t> points;
  for (std::int32_t i = lo[0]; i < hi[0]; ++i)
    for (std::int32_t j = lo[1]; j < hi[1]; ++j)
      for (std::int32_t k = lo[2]; k < hi[2]; ++k)
        points.push_back(number(g, {s.origin[0] + i, s.origin[1] + j, s.origin[2] + k}));
  return points;
}

std::vector<Grid> grids() {
  return {grid2d(17, 23), grid2d(9, 12, true, false), grid2d(8, 8, true, true), grid3d(7, 8, 9),
          grid3d(6, 7, 8, 7)};
}

template <class F>
void each_tile(const Tiling& tiling, F&& f) {
  for (const auto& of_pe : tiling.tiles)
    for (const Tile& tile : of_pe) f(tile);
}

const FaceCost kEven{};

}  // namespace

TEST(tiles_own_every_updated_point_once) {
  for (const Grid& g : grids())
    for (const auto& [pes, blocks] : {std::pair{1, 1}, {2, 3}, {5, 1}, {3, 4}}) {
      std::vector<int> owners(static_cast<std::size_t>(g.points()), 0);
      const Tiling tiling = make_tiling(g, divide(g, pes, blocks, kEven), 1);
      each_tile(tiling, [&](const Tile& t) {
        for (const auto p : points_of(g, t.shape, t.shape.lo, t.shape.hi))
          ++owners[static_cast<std::size_t>(p)];
      });
      CHECK(std::ranges::all_of(owners, [](int count) { return count <= 1; }));
      CHECK_EQ(std::ranges::count(owners, 1), g.updated());
    }
}

TEST(a_send_carries_the_points_that_its_receiver_expects) {
  for (const Grid& g : grids())
    for (const int layers : {1, 2}) {
      const Tiling tiling = make_tiling(g, divide(g, 2, 2, kEven), layers);
      int edges = 0;
      for (int pe = 0; pe < 2; ++pe)
        for (const Tile& t : tiling.tiles[static_cast<std::size_t>(pe)])
          for (const TileEdge& send : t.sends) {
            const auto& to =
                tiling
                    .tiles[static_cast<std::size_t>(send.pe)][static_cast<std::size_t>(send.block)];
            const auto found = std::ranges::find(to.receives, send.flag, &TileEdge::flag);
            CHECK(found != to.receives.end());
            CHECK_EQ(found->mailbox, send.mailbox);
            CHECK_EQ(found->pe, pe);
            CHECK(points_of(g, t.shape, send.lo, send.hi) ==
                  points_of(g, to.shape, found->lo, found->hi));
            ++edges;
          }
      CHECK(edges > 0);
    }
}

TEST(receives_fill_the_halo_that_is_computed_from) {
  for (const Grid& g : grids()) {
    const Tiling tiling = make_tiling(g, divide(g, 2, 3, kEven), 2);
    each_tile(tiling, [&](const Tile& t) {
      std::int64_t received = 0;
      for (const TileEdge& edge : t.receives) received += edge.points;
      std::int64_t stored = 1, kept = 1;
      for (int a = 0; a < 3; ++a) {
        stored *= t.shape.grid_hi[a] - t.shape.grid_lo[a];
        kept *= t.shape.out_hi[a] - t.shape.out_lo[a];
      }
      CHECK_EQ(received, stored - kept);
    });
  }
}

TEST(mailboxes_of_a_pe_do_not_overlap) {
  const Grid g = grid3d(9, 9, 9, 5);
  const Tiling tiling = make_tiling(g, divide(g, 3, 4, kEven), 2);
  for (const auto& of_pe : tiling.tiles) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    std::set<int> flags;
    std::size_t edges = 0;
    for (const Tile& t : of_pe)
      for (const TileEdge& edge : t.receives) {
        taken.emplace_back(edge.mailbox, edge.mailbox + edge.points);
        flags.insert(edge.flag);
        ++edges;
      }
    std::ranges::sort(taken);
    for (std::size_t k = 1; k < taken.size(); ++k) CHECK(taken[k - 1].second <= taken[k].first);
    CHECK(taken.back().second <= tiling.mailbox);
    CHECK_EQ(flags.size(), edges);
  }
}

TEST(division_uses_all_pes_where_there_are_rows_and_fewer_where_not) {
  CHECK_EQ(divide(grid2d(100, 100), 7, 1, kEven).pes_in_all(), 7);
  CHECK_EQ(divide(grid2d(3, 5), 8, 1, kEven).pes_in_all(), 3);
  CHECK_EQ(divide(grid2d(4, 4), 8, 3, kEven).pes_in_all(), 4);
  CHECK_EQ(divide(grid2d(4, 4), 8, 3, kEven).blocks_in_all(), 1);
}

TEST(division_takes_squares_where_faces_cost_and_slabs_where_columns_do) {
  const Division square = divide(grid2d(2050, 2050), 1, 132, kEven);
  CHECK_EQ(square.blocks[0] * square.blocks[2], 132);
  CHECK_EQ(std::min(square.blocks[0], square.blocks[2]), 11);
  FaceCost columns;
  columns.axis[2] = 8.0;
  CHECK_EQ(divide(grid2d(1000, 1000), 1, 4, columns).blocks[0], 4);
  const Division cube = divide(grid3d(65, 65, 65), 27, 1, kEven);
  CHECK(cube.pes[0] == 3 && cube.pes[1] == 3 && cube.pes[2] == 3);
}

TEST(layers_are_bounded_by_the_thinnest_tile) {
  const Grid g = grid2d(22, 100);
  const Division d = divide(g, 4, 1, FaceCost{{1.0, 1.0, 1e9}});
  CHECK_EQ(most_layers(g, d), 5);
  CHECK_THROWS(InvalidInput, make_tiling(g, d, 6));
  CHECK_THROWS(InvalidInput, make_tiling(g, d, 0));
}

TEST(impossible_grids_are_refused) {
  CHECK_THROWS(InvalidInput, check(grid2d(0, 5)));
  CHECK_THROWS(InvalidInput, check(grid2d(5, std::int64_t{1} << 40)));
  CHECK_THROWS(InvalidInput, check(grid3d(1 << 30, 1 << 30, 1 << 30)));
  CHECK_THROWS(InvalidInput, check(Grid{4, {2, 2, 2}, {}}));
}

TEST(tiles_stay_on_chip_where_one_copy_of_them_fits) {
  StencilCosts costs;
  costs.fast_bytes = 224 << 10;
  costs.front_points = 8192.0;
  const StencilSpec spec{.pes = 4, .layers = 2};
  const auto plan = [&](std::int64_t ny, std::int64_t nx) {
    return lay_out_stencil(grid2d(ny, nx), spec, {}, 132, sizeof(float), false, costs).plan;
  };
  const StencilPlan fits = plan(4 * 2048, 2048);
  CHECK(fits.in_fast_memory);
  CHECK(fits.fast_bytes > 4 * fits.tile_points && fits.fast_bytes <= 224 << 10);
  CHECK(!plan(4 * 8192, 8192).in_fast_memory);
  const StencilSpec automatic{.pes = 4};  // fewer layers rather than none on chip
  CHECK(lay_out_stencil(grid3d(256, 256, 256), automatic, {}, 132, sizeof(float), false, costs)
            .plan.in_fast_memory);
  costs.fast_bytes = 0;
  CHECK(!plan(100, 100).in_fast_memory);
}

TEST(model_takes_more_layers_where_memory_or_the_neighbour_is_far) {
  StencilCosts costs;
  costs.point = 0.2e-9;
  costs.byte = 0.1e-9;
  costs.near_bytes = 1e6;
  const auto layers = [&](std::int64_t ny, std::int64_t nx, int pes) {
    const StencilSpec spec{.pes = pes};
    return lay_out_stencil(grid2d(ny, nx), spec, {}, 1, sizeof(float), false, costs).plan.layers;
  };
  CHECK_EQ(layers(100, 100, 1), 1);  // all of it is near
  CHECK(layers(4000, 4000, 1) > 2);
  costs.exchange = 1e-6;
  CHECK(layers(40, 40, 4) > 1);  // waiting is what takes time
}
