// Studies of the solver kernels (device/study.hpp) under random schedules and weak memory.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness.hpp"
#include "kernel_rig.hpp"
#include "studies.hpp"

using namespace testing_rig;
using namespace testing_matrices;
using cpu_fibers::Fault;

namespace {

using studies::alike;
using studies::whole;

constexpr int kSchedules = 60;
constexpr Style kStyles[] = {Style::cpu, Style::gpu, Style::gpu_blocks};

SolveParams params_for(std::int64_t iterations) {
  SolveParams p;
  p.rtol = 0.0;
  p.maxiter = iterations;
  p.replace_every = 3;
  p.roundoff = 1e-16;
  p.history_capacity = iterations + 2;
  return p;
}

int blocks_of(Style style, int pes) { return style == Style::gpu_blocks && pes < 3 ? 3 : 2; }

// f.operator()<Algorithm>(rig) for all methods on 1 to 4 PEs, however halos travel.
template <class F>
void for_all(std::int64_t iterations, F&& f) {
  const auto a = grid2d(5, 3);
  for (const Style style : kStyles)
    for (const int pes : {1, 2, 3, 4}) {
      Rig rig(a, wave(a.n()), pes, blocks_of(style, pes), 5, style);
      rig.params = params_for(iterations);
      f.template operator()<ConjugateGradient>(rig);
      f.template operator()<PredictRecompute>(rig);
      f.template operator()<PipelinedCg>(rig);
    }
}

}  // namespace

TEST(split_is_of_the_same_solve_and_adds_up_in_every_block) {
  for_all(5, []<template <class, class> class Algorithm>(Rig& rig) {
    CHECK((rig.run<Algorithm, Identity<double>>(1)));
    const auto expected = rig.x();
    for (int seed = 1; seed <= harness::schedules(kSchedules / 4); ++seed) {
      CHECK((rig.run<Algorithm, Identity<double>, Study::split>(static_cast<std::uint64_t>(seed))));
      CHECK(alike(rig.x(), expected));
      const double steps = 1e-9 * static_cast<double>(rig.machine().steps());  // one clock for all
      for (const Split& split : rig.splits) {
        CHECK(whole(split) > 0.0 && whole(split) <= steps * (1.0 + 1e-12));
        CHECK(std::ranges::all_of(split.seconds, [](double s) { return s >= 0.0; }));
        CHECK(split.seconds[static_cast<int>(Phase::reduction_wait)] > 0.0);
      }
    }
  });
}

TEST(without_computing_the_protocol_is_that_of_the_solve_under_every_schedule) {
  for_all(7, []<template <class, class> class Algorithm>(Rig& rig) {
    CHECK((rig.run<Algorithm, Identity<double>>(1)));
    const Outcome normal = rig.outcome;
    CHECK_EQ(normal.iterations, 7);
    for (int seed = 1; seed <= harness::schedules(kSchedules); ++seed) {
      CHECK((rig.run<Algorithm, Identity<double>, Study::no_compute>(
          static_cast<std::uint64_t>(seed))));
      CHECK_EQ(rig.outcome.iterations, 7);
      CHECK_EQ(rig.outcome.reason, Reason::diverged_its);
      CHECK_EQ(rig.outcome.exchanges, normal.exchanges);
      CHECK_EQ(rig.outcome.reductions, normal.reductions);
    }
  });
}

TEST(without_other_pes_iterations_are_as_many_as_asked_for) {
  for (const std::int64_t iterations : {1, 7, 60})  // 15 rows: long after any method has converged
    for_all(iterations, [&]<template <class, class> class Algorithm>(Rig& rig) {
      CHECK((rig.run<Algorithm, Identity<double>, Study::no_comm>(3)));
      CHECK_EQ(rig.outcome.iterations, iterations);
      CHECK_EQ(rig.outcome.reason, Reason::diverged_its);
    });
}

TEST(without_other_pes_one_pe_does_the_same) {
  const auto a = grid2d(5, 3);
  for (const Style style : kStyles) {
    Rig rig(a, wave(a.n()), 1, 3, 5, style);
    rig.params = params_for(5);
    const auto same = [&]<template <class, class> class Algorithm>() {
      CHECK((rig.run<Algorithm, Identity<double>>(1)));
      const auto expected = rig.x();
      for (int seed = 1; seed <= harness::schedules(kSchedules); ++seed) {
        CHECK((rig.run<Algorithm, Identity<double>, Study::no_comm>(
            static_cast<std::uint64_t>(seed))));
        CHECK(alike(rig.x(), expected));
      }
    };
    same.operator()<ConjugateGradient>();
    same.operator()<PredictRecompute>();
    same.operator()<PipelinedCg>();
  }
}

TEST(without_other_pes_nobody_waits_for_a_pe_that_died) {
  const auto a = grid2d(5, 4);
  for (const Style style : kStyles) {
    Rig rig(a, wave(a.n()), 2, 1, 5, style);
    rig.params = params_for(6);
    const Fault dead{Fault::Kind::kill_block, 1, 0, 3};
    rig.run<PredictRecompute, Identity<double>, Study::no_comm>(2, dead);
    CHECK_EQ(rig.outcome.iterations, 6);  // of PE 0
    CHECK(!(rig.run<PredictRecompute, Identity<double>, Study::no_compute>(2, dead)));
  }
}

TEST(without_computing_the_signals_that_are_waited_for_are_those_of_the_solve) {
  const auto a = grid2d(5, 4);
  for (const Style style : kStyles) {
    Rig rig(a, wave(a.n()), 2, 2, 5, style);
    rig.params = params_for(6);
    int given_up = 0;
    for (int at = 0; at < 40; ++at) {
      const Fault drop{Fault::Kind::drop_signal, 1, 0, at};
      const bool normal = rig.run<PredictRecompute, Identity<double>>(7, drop);
      CHECK_EQ((rig.run<PredictRecompute, Identity<double>, Study::no_compute>(7, drop)), normal);
      given_up += normal ? 0 : 1;
    }
    CHECK(given_up > 10);
  }
}
