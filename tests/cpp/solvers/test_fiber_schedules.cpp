// The solver kernels, as they are, under random schedules and weak memory; and what becomes of them
// when a signal is lost, repeated or late, or a block dies.
#include <algorithm>
#include <cmath>

#include "cpufree/reference/cg.hpp"
#include "harness.hpp"
#include "kernel_rig.hpp"

using namespace testing_rig;
using namespace testing_matrices;
using cpu_fibers::Fault;

namespace {

constexpr int kSchedules = 1000;

SolveParams few_iterations() {
  SolveParams p;
  p.rtol = 1e-14;
  p.maxiter = 5;
  p.replace_every = 3;
  p.chebyshev_degree = 3;
  p.lambda_bound = 2.0;
  p.roundoff = 1e-16;
  p.history_capacity = 8;
  return p;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  const auto d = reference::axpy(a, -1.0, b);
  return std::sqrt(reference::dot(d, d));
}

// Every schedule ends, and bitwise where the first one did.
template <template <class, class> class Algorithm, class M>
void check_schedules(int pes, int blocks, int schedules, Style style,
                     const FactorSpec& factors = {}) {
  const auto a = grid2d(4, 3);
  Rig rig(a, wave(a.n()), pes, blocks, 5, style);
  rig.params = few_iterations();
  if (factors.any()) rig.set_factors(factors);
  CHECK((rig.run<Algorithm, M>(1)));
  const auto expected = rig.x();
  CHECK_EQ(rig.outcome.iterations, 5);
  int wrong = 0;
  int stuck = 0;
  for (int seed = 2; seed <= harness::schedules(schedules); ++seed) {
    if (!rig.run<Algorithm, M>(static_cast<std::uint64_t>(seed))) ++stuck;
    if (rig.x() != expected) ++wrong;
  }
  CHECK_EQ(stuck, 0);
  CHECK_EQ(wrong, 0);
}

int blocks_of(Style style, int pes) {
  if (style == Style::gpu_blocks) return pes < 3 ? 3 : 1 + pes % 2;
  return 1 + pes % 2;
}

template <template <class, class> class Algorithm>
void check_all_sizes(Style style) {
  const int schedules = style == Style::gpu_blocks ? kSchedules / 2 : kSchedules;
  for (const int pes : {1, 2, 3, 4, 5})
    check_schedules<Algorithm, Jacobi<double>>(pes, blocks_of(style, pes), schedules, style);
}
void check_chebyshev(Style style) {
  check_schedules<ConjugateGradient, Chebyshev<double>>(3, 2, kSchedules / 5, style);
  check_schedules<PredictRecompute, Chebyshev<double>>(3, 2, kSchedules / 5, style);
  check_schedules<PipelinedCg, Chebyshev<double>>(3, 2, kSchedules / 5, style);
}

// Factors with blocks that wait for two others.
template <template <class, class> class Algorithm>
void check_factors(Style style) {
  for (const int level : {1, 2})
    check_schedules<Algorithm, Factored<double>>(2, 3, kSchedules / 5, style,
                                                 {Preconditioner::fsai, level});
}

// A rig on which every block has partners.
Rig faulty_rig(Style style = Style::cpu) {
  const auto a = grid2d(4, 4);
  Rig rig(a, wave(a.n()), 2, 2, 5, style);
  rig.params = few_iterations();
  return rig;
}

int waiting(const cpu_fibers::Machine& machine) {
  return static_cast<int>(std::ranges::count_if(
      machine.records(), [](const WaitRecord& r) { return r.state == BlockState::expired; }));
}

}  // namespace

TEST(cg_is_right_under_every_schedule) { check_all_sizes<ConjugateGradient>(Style::cpu); }
TEST(prcg_is_right_under_every_schedule) { check_all_sizes<PredictRecompute>(Style::cpu); }
TEST(pipecg_is_right_under_every_schedule) { check_all_sizes<PipelinedCg>(Style::cpu); }
TEST(minres_is_right_under_every_schedule) { check_all_sizes<MinimalResidual>(Style::cpu); }
TEST(bicgstab_is_right_under_every_schedule) { check_all_sizes<StabilizedBiCg>(Style::cpu); }
TEST(chebyshev_is_right_under_every_schedule) { check_chebyshev(Style::cpu); }
TEST(cg_with_packets_is_right_under_every_schedule) {
  check_all_sizes<ConjugateGradient>(Style::gpu);
}
TEST(prcg_with_packets_is_right_under_every_schedule) {
  check_all_sizes<PredictRecompute>(Style::gpu);
}
TEST(pipecg_with_packets_is_right_under_every_schedule) {
  check_all_sizes<PipelinedCg>(Style::gpu);
}
TEST(minres_with_packets_is_right_under_every_schedule) {
  check_all_sizes<MinimalResidual>(Style::gpu);
}
TEST(bicgstab_with_packets_is_right_under_every_schedule) {
  check_all_sizes<StabilizedBiCg>(Style::gpu);
}
TEST(chebyshev_with_packets_is_right_under_every_schedule) { check_chebyshev(Style::gpu); }
TEST(cg_with_halos_of_blocks_is_right_under_every_schedule) {
  check_all_sizes<ConjugateGradient>(Style::gpu_blocks);
}
TEST(prcg_with_halos_of_blocks_is_right_under_every_schedule) {
  check_all_sizes<PredictRecompute>(Style::gpu_blocks);
}
TEST(pipecg_with_halos_of_blocks_is_right_under_every_schedule) {
  check_all_sizes<PipelinedCg>(Style::gpu_blocks);
}
TEST(minres_with_halos_of_blocks_is_right_under_every_schedule) {
  check_all_sizes<MinimalResidual>(Style::gpu_blocks);
}
TEST(bicgstab_with_halos_of_blocks_is_right_under_every_schedule) {
  check_all_sizes<StabilizedBiCg>(Style::gpu_blocks);
}
TEST(chebyshev_with_halos_of_blocks_is_right_under_every_schedule) {
  check_chebyshev(Style::gpu_blocks);
}

TEST(factors_are_right_under_every_schedule) {
  check_factors<ConjugateGradient>(Style::cpu);
  check_factors<PredictRecompute>(Style::cpu);
  check_factors<PipelinedCg>(Style::cpu);
}
TEST(factors_with_packets_are_right_under_every_schedule) {
  check_factors<PredictRecompute>(Style::gpu);
  check_factors<PipelinedCg>(Style::gpu);
  check_factors<MinimalResidual>(Style::gpu);
}
TEST(factors_with_halos_of_blocks_are_right_under_every_schedule) {
  check_factors<ConjugateGradient>(Style::gpu_blocks);
  check_factors<PipelinedCg>(Style::gpu_blocks);
}
TEST(without_waits_for_partners_some_schedule_finds_other_factors) {
  const auto a = grid2d(4, 3);
  Rig rig(a, wave(a.n()), 1, 3, 5);
  rig.params = few_iterations();
  rig.set_factors({Preconditioner::fsai, 2, 0});
  CHECK((rig.run<PredictRecompute, Factored<double>>(1)));
  const auto expected = rig.x();
  rig.forget_factor_partners();
  int wrong = 0;
  for (std::uint64_t seed = 1; seed < 100; ++seed)
    if (!rig.run<PredictRecompute, Factored<double>>(seed) || rig.x() != expected) ++wrong;
  CHECK(wrong > 0);
}

TEST(restarts_at_the_level_of_rounding_are_right_under_every_schedule) {
  const auto a = grid2d(4, 3);
  Rig rig(a, wave(a.n()), 3, 1, 5);
  rig.params = few_iterations();
  rig.params.rtol = 0.0;
  rig.params.maxiter = 200;
  const auto check = [&](auto run) {
    CHECK(run(1));
    CHECK_EQ(rig.outcome.reason, Reason::stagnated);
    CHECK(rig.outcome.replacements > 0);
    const auto expected = rig.x();
    for (std::uint64_t seed = 2; seed < 100; ++seed) CHECK(run(seed) && rig.x() == expected);
  };
  check([&](std::uint64_t seed) { return rig.run<ConjugateGradient, Jacobi<double>>(seed); });
  check([&](std::uint64_t seed) { return rig.run<PredictRecompute, Jacobi<double>>(seed); });
  check([&](std::uint64_t seed) { return rig.run<MinimalResidual, Jacobi<double>>(seed); });
  check([&](std::uint64_t seed) { return rig.run<StabilizedBiCg, Jacobi<double>>(seed); });
  check([&](std::uint64_t seed) { return rig.run<PipelinedCg, Jacobi<double>>(seed); });
  CHECK(rig.outcome.handed_over_at > 0);
}

TEST(result_under_a_schedule_is_that_of_the_reference) {
  const auto a = irregular(40, 3);
  const auto b = wave(a.n());
  Rig rig(a, b, 4, 2, 9);
  rig.params = few_iterations();
  rig.params.rtol = 1e-10;
  rig.params.maxiter = 200;
  CHECK((rig.run<PredictRecompute, Jacobi<double>>(17)));
  const auto expected = reference::cg(a.view(), b, 1e-12, 200);
  CHECK(distance(rig.x(), expected.x) <= 1e-7 * std::sqrt(reference::dot(expected.x, expected.x)));
}

TEST(result_with_halos_of_blocks_is_that_of_the_reference) {
  const auto a = irregular(60, 3);
  const auto b = wave(a.n());
  const auto expected = reference::cg(a.view(), b, 1e-12, 200);
  for (const int pes : {1, 2, 5}) {
    Rig rig(a, b, pes, 3, 9, Style::gpu_blocks);
    rig.params = few_iterations();
    rig.params.rtol = 1e-10;
    rig.params.maxiter = 200;
    CHECK((rig.run<PipelinedCg, Jacobi<double>>(17)));
    CHECK(distance(rig.x(), expected.x) <=
          1e-7 * std::sqrt(reference::dot(expected.x, expected.x)));
  }
}

TEST(lost_signal_ends_in_a_diagnosis_that_names_its_sender) {
  int diagnosed = 0;
  for (std::int64_t at = 0; at < 12; ++at) {
    auto rig = faulty_rig();
    const bool ended =
        rig.run<PredictRecompute, Jacobi<double>>(3, {Fault::Kind::drop_signal, 1, 0, at});
    CHECK(!ended);
    const bool named = std::ranges::any_of(rig.machine().records(), [](const WaitRecord& r) {
      return r.state == BlockState::expired && r.from_pe == 1 && r.from_block == 0 &&
             !reached(r.seen, r.want);
    });
    CHECK(named);
    diagnosed += named ? 1 : 0;
  }
  CHECK_EQ(diagnosed, 12);
}

TEST(lost_packet_of_a_halo_names_its_sender) {
  int halos = 0;
  for (std::int64_t at = 0; at < 24; ++at) {
    auto rig = faulty_rig(Style::gpu);
    CHECK(!(rig.run<PredictRecompute, Jacobi<double>>(3, {Fault::Kind::drop_signal, 1, 0, at})));
    for (const WaitRecord& r : rig.machine().records())
      halos += r.channel == Channel::halo_arrival && r.from_pe == 1 && r.from_block == 0 ? 1 : 0;
  }
  CHECK(halos > 0);
}

TEST(lost_packet_of_another_block_names_its_sender) {
  auto rig = faulty_rig(Style::gpu_blocks);
  CHECK((rig.run<PredictRecompute, Jacobi<double>>(3)));
  const auto expected = rig.x();
  int of_neighbours = 0;
  for (std::int64_t at = 0; at < 24; ++at) {
    // Rows that only other PEs read go to the own PE, too: no PE misses those packets.
    if (rig.run<PredictRecompute, Jacobi<double>>(3, {Fault::Kind::drop_signal, 1, 0, at}))
      CHECK(rig.x() == expected);
    const WaitRecord& r = rig.machine().records()[3];  // of block 1 of the same PE
    if (r.channel == Channel::halo_arrival && r.from_pe == 1 && r.from_block == 0) ++of_neighbours;
  }
  CHECK(of_neighbours > 0);
}

TEST(repeated_signal_changes_nothing) {
  auto rig = faulty_rig();
  CHECK((rig.run<PipelinedCg, Jacobi<double>>(1)));
  const auto expected = rig.x();
  for (std::int64_t at = 0; at < 40; ++at) {
    CHECK((rig.run<PipelinedCg, Jacobi<double>>(static_cast<std::uint64_t>(at),
                                                {Fault::Kind::repeat_signal, 0, 1, at})));
    CHECK(rig.x() == expected);
  }
}

TEST(late_signal_changes_nothing) {
  auto rig = faulty_rig();
  CHECK((rig.run<ConjugateGradient, Jacobi<double>>(1)));
  const auto expected = rig.x();
  for (std::int64_t at = 0; at < 40; ++at) {
    CHECK((rig.run<ConjugateGradient, Jacobi<double>>(static_cast<std::uint64_t>(at),
                                                      {Fault::Kind::delay_signal, 1, 1, at})));
    CHECK(rig.x() == expected);
  }
}

TEST(dead_block_ends_everybody_elses_kernel) {
  for (const std::int64_t at : {0, 5, 50, 150}) {
    auto rig = faulty_rig();
    CHECK(!(rig.run<PredictRecompute, Jacobi<double>>(11, {Fault::Kind::kill_block, 1, 1, at})));
    CHECK_EQ(rig.machine().records()[3].state, BlockState::running);  // it never said goodbye
    CHECK_EQ(waiting(rig.machine()), 3);
  }
}

TEST(kernel_without_publish_is_caught_by_weak_memory) {
  // The check of the checker: without the release fence some schedule must read stale ghosts.
  const auto a = grid2d(6, 6);
  Rig rig(a, wave(a.n()), 3, 1, 5);
  rig.params = few_iterations();
  CHECK((rig.run<PredictRecompute, Jacobi<double>>(1)));
  const auto expected = rig.x();
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    static_cast<void>(
        rig.run<PredictRecompute, Jacobi<double>>(seed, {Fault::Kind::skip_publish, 0, 0, 0}));
    wrong += rig.x() != expected ? 1 : 0;
  }
  CHECK(wrong > 20);
}
