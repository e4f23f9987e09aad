// Studies of the solver kernels (device/study.hpp) on the CPU engine.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "studies.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

using studies::alike;
using studies::whole;

constexpr Method kMethods[] = {Method::cg, Method::prcg, Method::pipecg};
constexpr Study kStudies[] = {Study::split, Study::no_compute, Study::no_comm};

SolveSpec spec_of(Method method, Study study, std::int64_t iterations) {
  SolveSpec s;
  s.method = method;
  s.preconditioner = Preconditioner::none;
  s.study = study;
  s.rtol = 0.0;
  s.maxiter = iterations;
  s.wait_limit = 300.0;
  return s;
}

template <class T = double>
std::unique_ptr<System<T>> system_of(const Matrix<T>& a, int pes, int blocks, int halo = -1) {
  SystemSpec spec;
  spec.pes = pes;
  spec.blocks = blocks;
  spec.halo = halo;
  return make_system<T>(a.view(), random_partition(a.n(), pes, 7), {}, spec);
}

}  // namespace

TEST(iterations_of_studies_are_as_many_as_asked_for) {
  for (const std::int32_t n : {1, 2, 7, 131}) {
    const auto a = irregular(n, 3);
    for (const int pes : {1, 2, 3, 4})
      for (const int halo : {0, 1}) {
        const auto system = system_of(a, pes, 1 + pes % 2, halo);
        for (const Method method : kMethods)
          for (const Study study : {Study::no_compute, Study::no_comm})
            for (const std::int64_t iterations : {1, 3, harness::shorter(120, 20)}) {
              const auto r = system->solve(wave(n), {}, spec_of(method, study, iterations), {});
              CHECK_EQ(r.outcome.iterations, iterations);
              CHECK_EQ(r.outcome.reason, Reason::diverged_its);
              CHECK(!r.split.has_value());
            }
      }
  }
}

TEST(without_computing_exchanges_and_reductions_are_those_of_the_solve) {
  const auto a = grid2d(61, 47);
  const int iterations = harness::shorter(70, 7);
  for (const int pes : {1, 2, 3, 4})
    for (const int halo : {0, 1}) {
      const auto system = system_of(a, pes, 1, halo);
      for (const Method method : kMethods) {
        const auto b = wave(a.n());
        const auto normal = system->solve(b, {}, spec_of(method, Study::none, iterations), {});
        const auto bare = system->solve(b, {}, spec_of(method, Study::no_compute, iterations), {});
        CHECK_EQ(normal.outcome.iterations, iterations);
        CHECK_EQ(bare.outcome.exchanges, normal.outcome.exchanges);
        CHECK_EQ(bare.outcome.reductions, normal.outcome.reductions);
      }
    }
}

TEST(without_other_pes_one_pe_does_the_same) {
  const auto a = grid2d(31, 17);
  for (const int blocks : {1, 3}) {
    const auto system = system_of(a, 1, blocks);
    for (const Method method : kMethods) {
      const auto normal = system->solve(wave(a.n()), {}, spec_of(method, Study::none, 40), {});
      const auto alone = system->solve(wave(a.n()), {}, spec_of(method, Study::no_comm, 40), {});
      CHECK_EQ(normal.outcome.iterations, 40);
      CHECK(alike(alone.x, normal.x));
      CHECK(alike(alone.history, normal.history));
      CHECK_EQ(alone.outcome.exchanges, normal.outcome.exchanges);
      CHECK_EQ(alone.outcome.reductions, normal.outcome.reductions);
    }
  }
}

TEST(without_other_pes_the_numbers_of_none_matter) {
  const auto a = grid2d(12, 10);
  auto b = wave(a.n());
  const auto part = random_partition(a.n(), 3, 7);
  for (std::size_t i = 0; i < b.size(); ++i)
    if (part[i] != 1) b[i] = 0.0;  // two PEs have nothing to solve
  const auto system = system_of(a, 3, 2);
  for (const Method method : kMethods) {
    const auto r = system->solve(b, {}, spec_of(method, Study::no_comm, 150), {});
    CHECK_EQ(r.outcome.iterations, 150);
  }
}

TEST(solves_after_studies_are_as_they_were) {
  const auto a = irregular(200, 5);
  for (const int halo : {0, 1}) {
    const auto system = system_of(a, 3, 2, halo);
    SolveSpec spec = spec_of(Method::prcg, Study::none, 500);
    spec.rtol = 1e-9;
    const auto before = system->solve(wave(a.n()), {}, spec, {});
    CHECK_EQ(before.outcome.reason, Reason::converged_rtol);
    for (const Study study : kStudies)
      system->solve(wave(a.n()), {}, spec_of(Method::pipecg, study, 20), {});
    CHECK(system->solve(wave(a.n()), {}, spec, {}).x == before.x);
  }
}

TEST(split_is_of_the_same_solve) {
  const auto a = irregular(150, 4);
  for (const int pes : {1, 2, 3, 4}) {
    const auto system = system_of(a, pes, 2);
    for (const Method method : kMethods) {
      SolveSpec spec = spec_of(method, Study::none, 300);
      spec.rtol = 1e-12;
      const auto normal = system->solve(wave(a.n()), {}, spec, {});
      spec.study = Study::split;
      const auto timed = system->solve(wave(a.n()), {}, spec, {});
      CHECK(alike(timed.x, normal.x));
      CHECK_EQ(timed.outcome.reason, Reason::converged_rtol);
      CHECK(timed.split.has_value() && !normal.split.has_value());
    }
  }
}

TEST(split_is_of_parts_of_the_time_of_the_kernel) {
  const auto a = grid2d(100, 100);
  for (const int pes : {1, 2})
    for (const Method method : kMethods) {
      const auto system = system_of(a, pes, 1);
      const auto r = system->solve(wave(a.n()), {}, spec_of(method, Study::split, 5), {});
      const Split split = r.split.value();
      CHECK(std::ranges::all_of(split.seconds, [](double s) { return s >= 0.0; }));
      CHECK(split.seconds[static_cast<int>(Phase::spmv)] > 0.0);
      CHECK(split.seconds[static_cast<int>(Phase::vector)] > 0.0);
      CHECK(whole(split) <= r.seconds);
    }
}

TEST(studies_that_are_not_there_are_refused) {
  const auto a = grid2d(6, 5);
  const auto single = grid2d<float>(6, 5);
  for (const Study study : kStudies) {
    auto spec = spec_of(Method::cg, study, 5);
    CHECK_THROWS(Unsupported, system_of(single, 1, 1)->solve(wave<float>(30), {}, spec, {}));
    spec.preconditioner = Preconditioner::jacobi;
    CHECK_THROWS(Unsupported, system_of(a, 1, 1)->solve(wave(30), {}, spec, {}));
  }
  for (const Study study : {Study::no_compute, Study::no_comm}) {
    auto spec = spec_of(Method::cg, study, 5);
    spec.rtol = 1e-3;
    CHECK_THROWS(InvalidInput, system_of(a, 1, 1)->solve(wave(30), {}, spec, {}));
  }
  CHECK_EQ(study_from_name("no-comm"), Study::no_comm);
  CHECK_EQ(std::string(study_name(Study::split)), std::string("split"));
  CHECK_THROWS(InvalidInput, study_from_name("no-halo"));
}
