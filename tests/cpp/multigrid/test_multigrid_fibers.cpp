// cg with a multigrid cycle under random schedules and weak memory.
#include <algorithm>
#include <cmath>

#include "cpufree/multigrid/cycle.hpp"
#include "cpufree/reference/cg.hpp"
#include "harness.hpp"
#include "kernel_rig.hpp"

using namespace testing_rig;
using namespace testing_matrices;
using cpu_fibers::Fault;

namespace {

constexpr int kSchedules = 200;

// Of small systems in random parts.
constexpr multigrid::Options kTwo{.coarsest = 30, .least_ratio = 1.01, .most_complexity = 100.0};

SolveParams few_iterations() {
  SolveParams p;
  p.rtol = 1e-14;
  p.maxiter = 3;
  p.roundoff = 1e-16;
  p.history_capacity = 8;
  return p;
}

bool run(Rig& rig, std::uint64_t seed, const Fault& fault = {}) {
  return rig.run<ConjugateGradient, Multigrid<double>>(seed, fault);
}

// Every schedule ends, and bitwise where the first one did.
void check_schedules(const Matrix<double>& a, int pes, int blocks, std::size_t levels,
                     const multigrid::Options& options, std::size_t gathered = 0) {
  Rig rig(a, wave(a.n()), pes, blocks, 5);
  rig.params = few_iterations();
  CHECK_EQ(rig.set_multigrid(a, options), levels);
  CHECK_EQ(rig.cycle().gathered(), gathered);
  CHECK(run(rig, 1));
  const auto expected = rig.x();
  CHECK(rig.outcome.iterations > 0);
  int wrong = 0, stuck = 0;
  for (int seed = 2; seed <= harness::schedules(kSchedules); ++seed) {
    if (!run(rig, static_cast<std::uint64_t>(seed))) ++stuck;
    if (rig.x() != expected) ++wrong;
  }
  CHECK_EQ(stuck, 0);
  CHECK_EQ(wrong, 0);
}

}  // namespace

TEST(a_cycle_of_two_levels_is_right_under_every_schedule) {
  for (const int pes : {1, 2, 3, 4}) check_schedules(grid2d(6, 5), pes, 1 + pes % 2, 2, kTwo);
}

TEST(a_cycle_of_three_levels_is_right_under_every_schedule) {
  for (const int pes : {1, 2})
    check_schedules(grid2d(12, 8), pes, 3 - pes, 3,
                    {.coarsest = 12, .least_ratio = 1.1, .most_complexity = 10.0});
}

TEST(a_cycle_whose_last_level_smooths_is_right_under_every_schedule) {
  check_schedules(grid2d(6, 5), 3, 2, 1, {.least_ratio = 100.0});
  check_schedules(grid2d(12, 8), 2, 2, 4,
                  {.coarsest = 1, .least_ratio = 1.1, .most_complexity = 2.6});
}

TEST(a_cycle_that_gathers_a_level_is_right_under_every_schedule) {
  constexpr multigrid::Options last{
      .coarsest = 12, .least_ratio = 1.1, .most_complexity = 10.0, .gathered = 12};
  constexpr multigrid::Options two{
      .coarsest = 12, .least_ratio = 1.1, .most_complexity = 10.0, .gathered = 90};
  for (const int pes : {2, 3})
    for (const auto& options : {last, two})
      check_schedules(grid2d(12, 8), pes, 4 - pes, 3, options, options.gathered == 12 ? 2 : 1);
}

TEST(without_waiting_for_what_is_gathered_some_schedule_finds_another_answer) {
  const auto a = grid2d(6, 5);
  Rig rig(a, wave(a.n()), 2, 2, 5);
  rig.params = few_iterations();
  auto options = kTwo;
  options.gathered = 30;
  rig.set_multigrid(a, options);
  CHECK(run(rig, 1));
  const auto expected = rig.x();
  rig.cycle().forget_gathering();
  int wrong = 0;
  for (std::uint64_t seed = 1; seed < 50; ++seed)
    if (!run(rig, seed) || rig.x() != expected) ++wrong;
  CHECK(wrong > 0);
}

TEST(the_result_under_a_schedule_is_that_of_the_reference) {
  const auto a = grid2d(9, 8);
  const auto b = wave(a.n());
  const auto expected = reference::cg(a.view(), b, 1e-13, 300).x;
  Rig rig(a, b, 3, 2, 9);
  rig.params = few_iterations();
  rig.params.rtol = 1e-11;
  rig.params.maxiter = 60;
  rig.set_multigrid(a, {.coarsest = 20});
  CHECK(run(rig, 17));
  CHECK_EQ(rig.outcome.reason, Reason::converged_rtol);
  double most = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i)
    most = std::max(most, std::abs(rig.x()[i] - expected[i]));
  CHECK(most < 1e-8);
}

TEST(without_waits_some_schedule_finds_another_answer) {
  const auto a = grid2d(6, 5);
  Rig rig(a, wave(a.n()), 2, 2, 5);
  rig.params = few_iterations();
  rig.set_multigrid(a, kTwo);
  CHECK(run(rig, 1));
  const auto expected = rig.x();
  rig.cycle().forget_partners();
  int wrong = 0;
  for (std::uint64_t seed = 1; seed < 50; ++seed)
    if (!run(rig, seed) || rig.x() != expected) ++wrong;
  CHECK(wrong > 0);
}

TEST(a_lost_signal_ends_every_kernel) {
  const auto a = grid2d(6, 5);
  int ended = 0;
  for (std::int64_t at = 5; at < 60; at += 7) {
    Rig rig(a, wave(a.n()), 2, 2, 5);
    rig.params = few_iterations();
    rig.set_multigrid(a, kTwo);
    if (!run(rig, 3, {Fault::Kind::drop_signal, 1, 0, at})) ++ended;
  }
  CHECK(ended > 0);
}
