// Stencils of the engine nvshmem as a whole, without a GPU: processes, memory of NVSHMEM, the plan,
// and the kernels that run on GPUs, here on fibers of the host (host_gpu).
#include "harness.hpp"
#include "process_team.hpp"
#include "stencil_parts.hpp"

using namespace stencil_rig;

namespace {

constexpr const char* kLibrary = CPUFREE_TEST_REMOTE;
constexpr int kSmallGpu = 4;  // of the stand-in: one multiprocessor, little memory on chip

void require_that(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

template <class T>
Case<T> case_of(const Grid& grid, Sweep sweep, bool source = false) {
  Case<T> c(grid, 6, source);
  c.spec.engine = Engine::nvshmem;
  c.spec.remote_library = kLibrary;
  c.spec.sweep = sweep;
  return c;
}

// All processes must have the bits of the reference, and those of one process with as many GPUs.
template <class T>
void expect_reference(const Case<T>& given, int pes, const std::string& sweep) {
  const auto said = run_processes(pes, [&](const std::shared_ptr<Team>& team) {
    Case<T> c = given;
    c.spec.gpus = {team->rank()};
    const auto part = run_part(c, team);
    require_that(part.result.plan.sweep == sweep, "another sweep: " + part.result.plan.sweep);
    require_that(part.result.plan.engine == std::string("nvshmem"), "another engine");
    const auto iterations = part.result.outcome.iterations;
    require_that(same_part(c.grid, part, c.expected(iterations)), "other bits");
    if (team->rank() != 0) return;
    c.spec.engine = Engine::cuda_p2p;
    c.spec.gpus = {};
    c.spec.pes = pes;
    const auto one = c.go();
    require_that(same_bits(c.out, part.values), "other bits than in one process");
    require_that(one.outcome.iterations == iterations, "other iterations than in one process");
    require_that(one.plan.tile_points == part.result.plan.tile_points, "another division");
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

}  // namespace

TEST(tiles_give_the_bits_of_one_process) {
  expect_reference(case_of<float>(grid3d(8, 7, 30, 1), Sweep::automatic), 2, "registers_3d");
}

TEST(tiles_that_exchange_packets_give_the_bits_of_one_process) {
  auto c = case_of<float>(grid3d(8, 7, 30, 1), Sweep::registers_3d);
  c.spec.halo = 1;
  expect_reference(c, 2, "registers_3d");
}

TEST(values_in_memory_give_the_bits_of_one_process) {
  auto c = case_of<float>(grid2d(12, 40, false, true), Sweep::time_tiles, true);
  c.spec.blocks = 1;  // blocks of 16 warps, each of whose threads is a fiber
  c.spec.layers = 2;
  c.run.iterations = 4;
  expect_reference(c, 2, "time_tiles");
}

TEST(fronts_in_shared_memory_give_the_bits_of_one_process) {
  auto c = case_of<double>(grid2d(20, 30, true, true), Sweep::wavefront);
  c.spec.layers = 3;
  expect_reference(c, 2, "wavefront");
}

TEST(tolerance_stops_processes_where_it_stops_one) {
  auto c = case_of<double>(grid2d(8, 40), Sweep::time_tiles);
  c.run.iterations = 1000;
  c.run.tolerance = 2e-2;
  c.run.check_every = 4;
  expect_reference(c, 2, "time_tiles");
}

TEST(processes_whose_gpus_differ_find_the_same_plan) {
  for (const bool first : {false, true}) {
    const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
      // Three tiles fit the multiprocessors of the larger GPU, and two both.
      auto c = case_of<double>(grid2d(12, 60), Sweep::automatic);
      c.spec.gpus = {(team->rank() == 0) == first ? kSmallGpu : 0};
      c.run.limits.wait_limit = 300.0;
      const auto part = run_part(c, team);
      require_that(part.result.plan.blocks == 1, "not the least number of blocks");
      require_that(same_part(c.grid, part, c.expected(6)), "other bits");
    });
    for (const std::string& words : said) CHECK_EQ(words, std::string());
  }
}

TEST(processes_whose_gpus_have_unlike_room_on_chip_find_the_same_plan) {
  for (const bool first : {false, true}) {
    const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
      auto c = case_of<double>(grid2d(90, 60), Sweep::wavefront);
      c.spec.blocks = 1;
      c.spec.layers = 2;
      c.spec.gpus = {(team->rank() == 0) == first ? kSmallGpu : 0};
      c.run.limits.wait_limit = 300.0;
      const auto part = run_part(c, team);
      require_that(!part.result.plan.in_fast_memory, "on chip, where it is too small for some");
      require_that(same_part(c.grid, part, c.expected(6)), "other bits");
    });
    for (const std::string& words : said) CHECK_EQ(words, std::string());
  }
}

TEST(runs_follow_one_another_in_memory_that_is_used_again) {
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    for (const std::int64_t width : {70, 40, 90}) {
      auto c = case_of<float>(grid2d(14, width, true, true), Sweep::automatic);
      c.spec.gpus = {team->rank()};
      require_that(same_part(c.grid, run_part(c, team), c.expected(6)), "other bits");
    }
  });
  for (const std::string& words : said) CHECK_EQ(words, std::string());
}

TEST(specialized_blocks_are_refused_across_processes) {
  const auto said = run_processes(2, [&](const std::shared_ptr<Team>& team) {
    auto c = case_of<float>(grid2d(40, 150), Sweep::specialized_blocks);
    c.spec.gpus = {team->rank()};
    run_part(c, team);
  });
  for (const std::string& words : said)
    CHECK(words.find("specialized_blocks are for the engine cuda_p2p alone") != std::string::npos);
}
