// The stencil kernels for blocks of warps, thread by thread under random schedules: bit for bit
// what the reference computes.
#include "warp_stencil_rig.hpp"

using namespace warp_stencils;

TEST(passes_over_memory_in_two_dimensions_equal_the_reference) {
  Count count;
  harness::Sample sample(3);
  std::uint64_t seed = 0;
  for (unsigned periodic = 0; periodic < 4; ++periodic)
    for (const auto& [ny, nx] : {std::pair{3, 3}, {5, 9}, {19, 35}, {13, 131}, {40, 24}})
      for (const int pes : {1, 2}) {
        ++seed;
        if (!sample.next()) continue;
        const Grid grid = grid2d(ny, nx, (periodic & 1U) != 0, (periodic & 2U) != 0);
        const Setup setup{pes, 1 + static_cast<int>(seed % 3), seed % 2 == 0};
        count.add(in_memory<float, 2, 1>(grid, setup, seed), grid, setup, "K 1");
        count.add(in_memory<double, 2, 2>(grid, setup, seed), grid, setup, "K 2");
        count.add(in_memory<float, 2, 4>(grid, setup, seed), grid, setup, "K 4");
        count.add(in_memory<double, 2, 4>(grid, setup, seed), grid, setup, "K 4 double");
        count.add(in_memory<float, 2, 8>(grid, setup, seed), grid, setup, "K 8");
      }
  CHECK_EQ(count.wrong, 0);
  CHECK_EQ(count.right, harness::thorough ? 163 : 64);
}

TEST(passes_over_memory_in_three_dimensions_equal_the_reference) {
  Count count;
  harness::Sample sample(3);
  std::uint64_t seed = 0;
  for (unsigned periodic = 0; periodic < 8; ++periodic)
    for (const auto& [nz, ny, nx] : {std::tuple{3, 3, 3}, {5, 7, 9}, {4, 13, 131}, {31, 5, 6}}) {
      ++seed;
      if (!sample.next()) continue;
      const Grid grid = grid3d(nz, ny, nx, periodic);
      Setup setup{1 + static_cast<int>(seed % 2), 1 + static_cast<int>(seed % 3), seed % 2 == 0};
      setup.most = setup.expected = kIterations + static_cast<int>(seed % 2);
      count.add(in_memory<float, 3, 1>(grid, setup, seed), grid, setup, "K 1");
      count.add(in_memory<double, 3, 1>(grid, setup, seed), grid, setup, "K 1 double");
      count.add(in_memory<float, 3, 2>(grid, setup, seed), grid, setup, "K 2");
      count.add(in_memory<double, 3, 2>(grid, setup, seed), grid, setup, "K 2 double");
    }
  CHECK_EQ(count.wrong, 0);
  CHECK_EQ(count.right, harness::thorough ? 114 : 42);
}

// Several of them along rows and columns, the last ones with a part of their rows and columns.
TEST(windows_of_passes_in_three_dimensions_equal_the_reference) {
  Count count;
  harness::Sample sample(2);
  std::uint64_t seed = 0;
  for (const unsigned periodic : {0U, 7U})
    for (const auto& [nz, ny, nx] : {std::tuple{3, 9, 259}, {3, 10, 128}}) {
      ++seed;
      if (!sample.next()) continue;
      const Grid grid = grid3d(nz, ny, nx, periodic);
      Setup setup{1, 1, seed % 2 == 0};
      setup.most = setup.expected = 3;
      count.add(in_memory<float, 3, 1>(grid, setup, seed), grid, setup, "K 1");
      count.add(in_memory<float, 3, 2>(grid, setup, seed), grid, setup, "K 2");
      count.add(in_memory<double, 3, 2>(grid, setup, seed), grid, setup, "K 2 double");
    }
  CHECK_EQ(count.wrong, 0);
  CHECK_EQ(count.right, harness::thorough ? 12 : 9);
}

TEST(tolerance_stops_blocks_of_warps_where_it_stops_others) {
  Case<double> c(grid2d(9, 11), 10000);
  c.run.tolerance = 0.05;
  c.run.check_every = 2;
  const std::int64_t iterations = c.go().outcome.iterations;
  CHECK(iterations > 4 && iterations < 100);
  Count count;
  const Setup setup{1, 2, false, 0.05, 2, 10000, iterations};
  count.add(in_memory<double, 2, 2>(c.grid, setup, 3), c.grid, setup, "memory");
  Case<double> box(grid3d(9, 6, 8), 10000);
  box.run = c.run;
  const std::int64_t stop = box.go().outcome.iterations;
  const Setup in_box{1, 4, false, 0.05, 2, 10000, stop};
  count.add(in_memory<double, 3, 2>(box.grid, in_box, 3), box.grid, in_box, "memory");
  CHECK_EQ(count.wrong, 0);
  CHECK_EQ(count.right, 2);
}
