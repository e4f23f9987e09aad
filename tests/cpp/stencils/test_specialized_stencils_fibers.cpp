// Specialized blocks: who has which points, and that values are the reference's under random
// schedules.
#include "warp_stencil_rig.hpp"

using namespace warp_stencils;

namespace {

constexpr int kLayers2d[] = {1, 2, 4, 8};
constexpr int kLayers3d[] = {1};

TimeTileLayout lay_out(const Grid& grid, StencilSpec spec, int blocks = 132) {
  spec.engine = Engine::cuda_p2p;
  const auto layers =
      grid.dims == 2 ? std::span<const int>(kLayers2d) : std::span<const int>(kLayers3d);
  return lay_out_specialized(grid, spec, {}, blocks, sizeof(float), false, {layers, 16, 0});
}

StencilSpec spec_of(int pes, int layers = 0, int boundary = 0) {
  StencilSpec spec;
  spec.pes = pes;
  spec.layers = layers;
  spec.boundary_blocks = boundary;
  return spec;
}

// Whether the blocks' parts have every point of the PE once, those of the boundary the outer
// planes.
bool covers(const TimeTileLayout& time_tiles, std::size_t pe) {
  const TileShape& s = time_tiles.pes[pe].shape;
  const StencilPlan& plan = time_tiles.layout.plan;
  std::int32_t n[3];
  for (int a = 0; a < 3; ++a) n[a] = s.hi[a] - s.lo[a];
  std::vector<int> times(at(std::int64_t{n[0]} * n[1] * n[2]), 0);
  bool right = true;
  for (std::size_t b = 0; b < time_tiles.pes[pe].parts.size(); ++b) {
    const TimeTilePart& part = time_tiles.pes[pe].parts[b];
    for (std::int32_t i0 = part.lo[0]; i0 < part.hi[0]; ++i0) {
      const bool outer = i0 < plan.layers || i0 >= n[0] - plan.layers;
      right = right && outer == (static_cast<int>(b) < plan.boundary_blocks);
      for (std::int32_t i1 = part.lo[1]; i1 < part.hi[1]; ++i1)
        for (std::int32_t i2 = part.lo[2]; i2 < part.hi[2]; ++i2)
          ++times[at((std::int64_t{i0} * n[1] + i1) * n[2] + i2)];
    }
  }
  return right && std::ranges::all_of(times, [](int t) { return t == 1; });
}

}  // namespace

TEST(boundary_blocks_have_the_planes_that_others_need_and_the_rest_is_shared) {
  for (const int pes : {2, 3})
    for (const auto& [grid, layers] : {std::pair{grid2d(300, 257), 4},
                                       {grid2d(301, 90, true, true), 1},
                                       {grid3d(50, 40, 130), 1},
                                       {grid3d(33, 20, 45, 7U), 1}})
      for (const int boundary : {0, 1, 5}) {
        const TimeTileLayout time_tiles = lay_out(grid, spec_of(pes, layers, boundary));
        CHECK_EQ(time_tiles.layout.plan.layers, layers);
        for (std::size_t pe = 0; pe < time_tiles.pes.size(); ++pe) CHECK(covers(time_tiles, pe));
      }
}

TEST(boundary_gets_its_share_of_the_blocks) {
  CHECK_EQ(boundary_share(132, 2048, 1), 1);
  CHECK_EQ(boundary_share(132, 128, 4), 4);
  CHECK_EQ(boundary_share(132, 16, 1), 8);
  const TimeTileLayout time_tiles = lay_out(grid3d(34, 256, 256), spec_of(2));  // 16 planes each
  CHECK_EQ(time_tiles.layout.plan.boundary_blocks, 16);
}

TEST(grids_and_options_that_blocks_cannot_be_specialized_for_are_refused) {
  CHECK_THROWS(InvalidInput, lay_out(grid2d(100, 100), spec_of(1)));         // no neighbours
  CHECK_THROWS(InvalidInput, lay_out(grid2d(6, 100), spec_of(2)));           // too few planes
  CHECK_THROWS(InvalidInput, lay_out(grid2d(20, 100), spec_of(2, 8)));       // too many layers
  CHECK_THROWS(InvalidInput, lay_out(grid2d(100, 100), spec_of(2, 1, 66)));  // none for the rest
}

TEST(specialized_blocks_equal_the_reference) {
  Count count;
  std::uint64_t seed = 1;
  for (unsigned periodic = 0; periodic < 4; periodic += harness::thorough ? 1 : 3) {
    const int pes = periodic % 2 == 0 ? 2 : 3;
    const Grid flat = grid2d(41, 35, (periodic & 1U) != 0, (periodic & 2U) != 0);
    const Grid box = grid3d(19, 11, 13, periodic * 2 + 1);
    Setup setup;
    setup.pes = pes;
    setup.blocks = 5 + static_cast<int>(periodic % 2);
    setup.specialized = true;
    setup.boundary_blocks = static_cast<int>(periodic % 3);
    setup.source = periodic % 2 == 1;
    count.add(in_memory<float, 2, 1>(flat, setup, ++seed), flat, setup, "K 1");
    count.add(in_memory<double, 2, 2>(flat, setup, ++seed), flat, setup, "K 2");
    count.add(in_memory<float, 2, 4>(flat, setup, ++seed), flat, setup, "K 4");
    count.add(in_memory<double, 3, 1>(box, setup, ++seed), box, setup, "3D");
  }
  CHECK_EQ(count.wrong, 0);
  CHECK_EQ(count.right, harness::thorough ? 16 : 8);
}
