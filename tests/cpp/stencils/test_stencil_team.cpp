// Stencils of several processes: each member of a team has one PE, and its own part of the grid.
// Here the members are threads, and the memory that they share is mapped by each for itself.
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "cpufree/base/error.hpp"
#include "harness.hpp"
#include "stencil_parts.hpp"
#include "thread_team.hpp"

using namespace stencil_rig;

namespace {

void rethrow(const std::vector<std::exception_ptr>& thrown) {
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

template <class T>
Case<T> case_of(const Grid& grid, std::int64_t iterations, bool source = false) {
  Case<T> c(grid, iterations, source);
  c.spec.engine = Engine::cpu_processes;
  c.spec.blocks = 2;
  c.run.limits.wait_limit = 300.0;
  return c;
}

// Every member must have the bits of the reference, rank 0 of all the grid; returns the parts.
template <class T>
std::vector<Part<T>> expect_reference(Case<T>& c, int pes, bool by_boxes = true) {
  std::vector<Part<T>> parts(static_cast<std::size_t>(pes));
  rethrow(run_team(pes, [&](const std::shared_ptr<Team>& team) {
    parts[at(team->rank())] = run_part(c, team, by_boxes);
  }));
  const auto expected = c.expected(parts[0].result.outcome.iterations);
  for (const Part<T>& part : parts) CHECK(same_part(c.grid, part, expected));
  CHECK_EQ(parts[0].box.points(), c.grid.points());
  return parts;
}

}  // namespace

TEST(processes_give_the_bits_of_the_reference_in_two_dimensions) {
  for (const bool y : {false, true})
    for (const bool x : {false, true})
      for (const int pes : {1, 2, 3, 5})
        for (const int layers : {1, 3}) {
          auto c = case_of<double>(grid2d(31, 17, y, x), 13, pes % 2 == 0);
          c.spec.layers = layers;
          expect_reference(c, pes);
        }
}

TEST(processes_give_the_bits_of_the_reference_in_three_dimensions) {
  for (const unsigned periodic : {0U, 3U, 7U})
    for (const int pes : {2, 4}) {
      auto c = case_of<float>(grid3d(11, 9, 13, periodic), 9, pes == 4);
      c.spec.layers = 2;
      expect_reference(c, pes);
    }
}

TEST(halos_travel_as_packets_between_processes_too) {
  auto c = case_of<double>(grid2d(20, 30, true, false), 12);
  c.spec.halo = 1;
  const auto parts = expect_reference(c, 3);
  CHECK_EQ(parts[0].result.plan.halo, std::string("packets"));
}

TEST(arrays_of_the_whole_grid_give_the_same) {
  auto c = case_of<double>(grid2d(30, 20, true, true), 11, true);
  expect_reference(c, 3, false);
}

TEST(a_grid_that_wraps_around_a_process_within_one_tile_is_put_together_from_pieces) {
  auto c = case_of<double>(grid2d(4, 5, true, true), 8);
  c.spec.blocks = 1;
  c.spec.layers = 4;
  expect_reference(c, 1);
}

TEST(members_read_what_they_store_and_no_more) {
  auto c = case_of<double>(grid2d(402, 300), 5);
  c.spec.layers = 1;
  for (const auto& part : expect_reference(c, 4)) CHECK(part.read <= 102 * 300);
}

TEST(members_keep_their_own_parts_where_nobody_wants_all) {
  auto c = case_of<double>(grid2d(40, 20, true, false), 7);
  c.run.gather = false;
  std::vector<int> owners(800, 0);
  std::mutex mutex;
  const auto expected = c.expected(7);
  rethrow(run_team(3, [&](const std::shared_ptr<Team>& team) {
    const auto part = run_part(c, team);
    CHECK(same_part(c.grid, part, expected));
    const std::lock_guard lock(mutex);
    part.box.each(c.grid, [&](std::size_t, std::size_t i) { ++owners[i]; });
  }));
  for (const int owner : owners) CHECK_EQ(owner, 1);
}

TEST(tolerance_stops_all_members_where_it_stops_one_process) {
  Case<double> one(grid2d(12, 14), 100000);
  one.run.tolerance = 1e-6;
  one.run.check_every = 7;
  const auto expected = one.go();
  auto c = case_of<double>(one.grid, 100000);
  c.run.tolerance = 1e-6;
  c.run.check_every = 7;
  for (const int pes : {2, 3})
    for (const auto& part : expect_reference(c, pes)) {
      CHECK(part.result.outcome.reason == StencilReason::converged);
      CHECK_EQ(part.result.outcome.iterations, expected.outcome.iterations);
      CHECK_EQ(part.result.outcome.checks, expected.outcome.checks);
      CHECK_EQ(part.result.update, expected.update);
    }
}

TEST(a_value_that_overflows_at_one_member_shows_in_the_update_of_all) {
  auto c = case_of<float>(grid2d(12, 6), 3);
  for (std::size_t i = 0; i < 12; ++i) c.start[i] = std::numeric_limits<float>::max();
  for (std::size_t i = 12; i < c.start.size(); ++i) c.start[i] = 0.0F;
  c.start[7] = -std::numeric_limits<float>::max();
  std::vector<double> updates(2);
  rethrow(run_team(2, [&](const std::shared_ptr<Team>& team) {
    updates[at(team->rank())] = run_part(c, team).result.update;
  }));
  for (const double update : updates) CHECK(!std::isfinite(update));
}

TEST(members_agree_on_the_least_number_of_blocks) {
  auto c = case_of<double>(grid2d(64, 64), 9);
  const auto expected = c.expected(9);
  rethrow(run_team(2, [&](const std::shared_ptr<Team>& team) {
    Case<double> mine = c;
    mine.spec.blocks = team->rank() == 0 ? 3 : 2;
    const auto part = run_part(mine, team);
    CHECK_EQ(part.result.plan.blocks, 2);
    CHECK(same_part(c.grid, part, expected));
  }));
}

TEST(more_processes_than_the_grid_has_rows_for_are_refused) {
  auto c = case_of<double>(grid2d(3, 4), 9);
  for (const std::exception_ptr& error :
       run_team(3, [&](const std::shared_ptr<Team>& team) { run_part(c, team); })) {
    CHECK(error != nullptr);
    if (error) CHECK_THROWS(InvalidInput, std::rethrow_exception(error));
  }
}

TEST(a_grid_without_points_to_update_is_that_of_rank_0) {
  auto c = case_of<double>(grid2d(2, 9), 5);
  rethrow(run_team(2, [&](const std::shared_ptr<Team>& team) {
    const auto part = run_part(c, team);
    CHECK_EQ(part.result.outcome.iterations, 5);
    CHECK_EQ(part.box.points(), team->rank() == 0 ? 18 : 0);
    if (team->rank() == 0) CHECK(same_bits(part.values, c.start));
  }));
}

TEST(a_member_that_cannot_read_its_values_ends_the_run_of_all) {
  auto c = case_of<double>(grid2d(40, 40), std::int64_t{1} << 40);
  std::atomic<int> ended{0};
  const auto thrown = run_team(3, [&](const std::shared_ptr<Team>& team) {
    StencilSpec spec = c.spec;
    spec.team = team;
    spec.pes = 3;
    StencilProblem<double> problem{c.grid, {}, {}, {}};
    problem.start = GridValues<double>::by_boxes([&](const GridSpan& box, double* to) {
      if (team->rank() == 1) throw std::runtime_error("rank 1 has lost its file");
      std::fill_n(to, box.points(), 1.0);
    });
    problem.room = [](const GridSpan&) -> double* { throw std::logic_error("never asked for"); };
    try {
      run_stencil<double>(problem, spec, c.run, {});
    } catch (const std::runtime_error&) {
      ++ended;
      throw;
    }
  });
  CHECK_EQ(ended.load(), 3);
}

TEST(specialized_blocks_are_refused_across_processes) {
  auto c = case_of<double>(grid2d(40, 40), 5);
  c.spec.sweep = Sweep::specialized_blocks;
  Meeting meeting(1);
  CHECK_THROWS(InvalidInput, run_part(c, std::make_shared<ThreadTeam>(meeting, 0)));
}
