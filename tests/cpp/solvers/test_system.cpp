// Systems: what the engines share, and how the variants of the layout agree.
#include "cpufree/solvers/host/system.hpp"

#include <cmath>

#include "cpufree/base/index.hpp"
#include "cpufree/plugins/gpu/engine_table.hpp"
#include "cpufree/solvers/host/scaling.hpp"
#include "cpufree/solvers/host/setup.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "solves.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

SystemSpec system_spec(int pes, int blocks) {
  SystemSpec spec;
  spec.pes = pes;
  spec.blocks = blocks;
  return spec;
}

}  // namespace

TEST(halos_as_packets_give_bitwise_what_stores_give) {
  const auto a = irregular(300, 6);
  const auto part = random_partition(a.n(), 3, 2);
  const auto b = wave(a.n());
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners) {
      SystemSpec spec = system_spec(3, 2);
      spec.halo = 0;
      const auto stores =
          make_system<double>(a.view(), part, {}, spec)->solve(b, {}, solve_spec(method, pc), {});
      spec.halo = 1;
      const auto packets =
          make_system<double>(a.view(), part, {}, spec)->solve(b, {}, solve_spec(method, pc), {});
      CHECK_EQ(packets.outcome.reason, Reason::converged_rtol);
      CHECK(packets.x == stores.x);
      CHECK_EQ(packets.outcome.iterations, stores.outcome.iterations);
    }
}

TEST(complex_entries_stored_once_solve_like_four) {
  const auto forms = with_phases(irregular(150, 6));
  std::vector<std::int32_t> part;
  for (const std::int32_t pe : random_partition(150, 3, 2)) part.insert(part.end(), 2, pe);
  const auto b = wave(300);
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners)
      for (const int halo : {0, 1}) {
        SystemSpec spec = system_spec(3, 3);
        spec.halo = halo;
        const auto solve = solve_spec(method, pc);
        const auto plain = make_system<double>(forms.real.view(), part, {}, spec);
        const auto four = plain->solve(b, {}, solve, {});
        spec.pairs = true;
        const auto system = make_system<double>(forms.pairs.view(), part, {}, spec);
        const auto once = system->solve(b, {}, solve, {});
        CHECK_EQ(once.outcome.reason, Reason::converged_rtol);
        CHECK(std::abs(once.outcome.iterations - four.outcome.iterations) <= 1);
        for (std::size_t i = 0; i < b.size(); ++i) CHECK_NEAR(once.x[i], four.x[i], 1e-6);
        CHECK(!system->refuses_columns().empty());
      }
  SystemSpec spec = system_spec(1, 1);
  spec.pairs = true;
  spec.factors.kind = Preconditioner::fsai;
  CHECK_THROWS(InvalidInput, make_system<double>(forms.pairs.view(), {}, {}, spec));
}

TEST(halos_as_packets_carry_single_precision_exactly) {
  const auto a = grid2d<float>(20, 15, 0.5);
  const auto part = random_partition(a.n(), 2, 4);
  const auto b = wave<float>(a.n());
  SystemSpec spec = system_spec(2, 2);
  SolveSpec solve = solve_spec(Method::prcg, Preconditioner::jacobi);
  solve.rtol = 1e-5;
  const auto stores = make_system<float>(a.view(), part, {}, spec)->solve(b, {}, solve, {});
  spec.halo = 1;
  const auto packets = make_system<float>(a.view(), part, {}, spec)->solve(b, {}, solve, {});
  CHECK_EQ(packets.outcome.reason, Reason::converged_rtol);
  CHECK(packets.x == stores.x);
}

TEST(one_system_with_packets_solves_again_and_again) {
  const auto a = irregular(200, 3);
  SystemSpec spec = system_spec(4, 1);
  spec.halo = 1;
  const auto system = make_system<double>(a.view(), random_partition(a.n(), 4, 1), {}, spec);
  const auto first =
      system->solve(wave(a.n()), {}, solve_spec(Method::cg, Preconditioner::jacobi), {});
  for (const Method method : kMethods)
    CHECK_EQ(system->solve(wave(a.n()), {}, solve_spec(method, Preconditioner::chebyshev), {})
                 .outcome.reason,
             Reason::converged_rtol);
  const auto last =
      system->solve(wave(a.n()), {}, solve_spec(Method::cg, Preconditioner::jacobi), {});
  CHECK(first.x == last.x);
}

TEST(an_update_gives_the_bits_of_a_new_system) {
  const auto a = irregular(300, 6);
  auto other = a;
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k)
      other.val[at(k)] *= 1.0 + 0.1 * ((i + a.col[at(k)]) % 5);
  const auto b = wave(a.n());
  const auto solve = solve_spec(Method::cg, Preconditioner::chebyshev);
  for (const int pes : {1, 3}) {
    const auto part = random_partition(a.n(), pes, 2);
    const auto updated = make_system<double>(a.view(), part, {}, system_spec(pes, 2));
    const auto fresh = make_system<double>(other.view(), part, {}, system_spec(pes, 2));
    CHECK(updated->update(other.view()));
    CHECK(updated->solve(b, {}, solve, {}).x == fresh->solve(b, {}, solve, {}).x);
  }
}

TEST(an_update_with_another_pattern_is_refused_and_the_system_says_that_it_is_lost) {
  const auto a = grid2d(12, 12, 0.5);
  auto moved = a;
  moved.col[at(a.row_ptr[70])] += 1;
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 2));
  CHECK_THROWS(InvalidInput, system->update(grid2d(12, 11, 0.5).view()));
  CHECK(system->usable());
  CHECK_THROWS(InvalidInput, system->update(moved.view()));
  CHECK(!system->usable());
  CHECK_THROWS(EngineError, system->solve(wave(a.n()), {}, SolveSpec{}, {}));
}

TEST(plan_says_how_ghosts_travel) {
  const auto a = grid2d(8, 8);
  SystemSpec spec = system_spec(2, 1);
  CHECK_EQ(make_system<double>(a.view(), {}, {}, spec)->plan().halo, std::string("stores"));
  spec.halo = 1;
  CHECK_EQ(make_system<double>(a.view(), {}, {}, spec)->plan().halo, std::string("packets"));
  spec.pes = 1;
  CHECK_EQ(make_system<double>(a.view(), {}, {}, spec)->plan().halo, std::string("none"));
}

TEST(vectors_on_a_gpu_are_refused_by_the_cpu_engine) {
  const auto a = grid2d(3, 3);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(1, 1));
  const auto b = wave(9);
  std::vector<double> x(9);
  CHECK_THROWS(Unsupported, system->solve(VectorView<const double>{b.data(), 9, 0}, {},
                                          VectorView<double>{x.data(), 9}, SolveSpec{}, {}));
}

TEST(gpus_that_are_not_there_are_refused_with_a_reason) {
  const auto a = grid2d(3, 3);
  SystemSpec spec = system_spec(1, 0);
  spec.engine = Engine::cuda_p2p;
  spec.gpus = {static_cast<int>(gpu_engine().list_gpus().size()) + 100};
  CHECK_THROWS(Unsupported, make_system<double>(a.view(), {}, {}, spec));
}

TEST(a_note_says_why_there_are_no_gpus_and_is_silent_where_there_are) {
  CHECK_EQ(gpu_engine().gpu_note().empty(), !gpu_engine().list_gpus().empty());
}

TEST(gpus_for_the_cpu_engine_are_rejected) {
  SystemSpec spec = system_spec(1, 1);
  spec.gpus = {0};
  CHECK_THROWS(InvalidInput, check(spec));
}

TEST(gpus_must_be_as_many_as_pes) {
  SystemSpec spec = system_spec(2, 1);
  spec.engine = Engine::cuda_p2p;
  spec.gpus = {0};
  CHECK_THROWS(InvalidInput, check(spec));
}

TEST(tuning_out_of_range_is_rejected) {
  SystemSpec spec = system_spec(1, 1);
  spec.threads = 100;
  CHECK_THROWS(InvalidInput, check(spec));
  spec = system_spec(1, 1);
  spec.halo = 2;
  CHECK_THROWS(InvalidInput, check(spec));
  spec = system_spec(1, 1);
  spec.residency = 3;
  CHECK_THROWS(InvalidInput, check(spec));
}

TEST(edge_cut_and_halo_volume_of_two_halves_of_a_grid) {
  const auto a = grid2d(6, 4);
  std::vector<std::int32_t> part(24);
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = i % 6 < 3 ? 0 : 1;
  const auto report =
      report_of(shares_of(plan_of(a.view(), part, {}, 2), AllHere(2)), system_spec(2, 1), 1, false);
  CHECK_EQ(report.edge_cut, 4);
  CHECK_EQ(report.halo_values, 8);
  CHECK_NEAR(report.imbalance, 1.0, 1e-12);
}

TEST(ghosts_travel_as_packets_where_few_rows_read_each) {
  const auto grid = grid2d(9, 8);  // every ghost is read once
  Entries full;
  for (std::int32_t i = 0; i < 20; ++i)  // every ghost is read ten times
    for (std::int32_t j = 0; j < 20; ++j) full[{i, j}] = i == j ? 20.0 : -0.5;
  const auto dense = from_entries<double>(20, full);
  SystemSpec spec = system_spec(2, 1);
  const Shares of_grid = shares_of(plan_of(grid.view(), {}, {}, 2), AllHere(2));
  const Shares of_dense = shares_of(plan_of(dense.view(), {}, {}, 2), AllHere(2));
  CHECK(use_packets(spec, of_grid, 100));
  CHECK(!use_packets(spec, of_grid, 8));  // too many
  CHECK(!use_packets(spec, of_dense, 100));
  spec.halo = 1;
  CHECK(use_packets(spec, of_dense, 100));
}

TEST(vectors_needed_are_those_that_the_methods_use) {
  CHECK_EQ(wanted_by(solve_spec(Method::prcg, Preconditioner::none), 8).vectors, 4);
  CHECK_EQ(wanted_by(solve_spec(Method::prcg, Preconditioner::jacobi), 8).vectors, 5);
  CHECK_EQ(wanted_by(solve_spec(Method::pipecg, Preconditioner::jacobi), 8).vectors, 8);
  CHECK_EQ(wanted_by(solve_spec(Method::pipecg, Preconditioner::chebyshev), 8).vectors, 12);
}

TEST(scale_is_a_power_of_two_and_one_where_none_is_needed) {
  CHECK_EQ(scale_from(1e-3), 1.0);
  CHECK_EQ(scale_from(0.0), 1.0);
  CHECK_EQ(scale_from(std::numeric_limits<double>::infinity()), 1.0);
  const double scale = scale_from(1e200);
  CHECK(scale * 1e200 >= 1.0 && scale * 1e200 < 2.0);
  CHECK_EQ(std::exp2(std::round(std::log2(scale))), scale);
}

TEST(exception_of_the_host_ends_a_single_block_too) {
  struct Stop {};
  const auto a = grid2d(400, 400);
  auto spec = spec_of(Method::prcg, Preconditioner::none, 1e-15);
  spec.maxiter = 1'000'000'000;
  const auto system = system_of(a, 1, 1);
  CHECK_THROWS(Stop, system->solve(wave(a.n()), {}, spec,
                                   [](std::int64_t, double) -> bool { throw Stop{}; }));
}

TEST(time_limit_ends_a_solve_that_would_go_on) {
  const auto a = grid2d(400, 400, 1e-9);  // thousands of iterations
  auto spec = spec_of(Method::prcg, Preconditioner::none, 1e-12);
  spec.maxiter = 1'000'000'000;
  spec.time_limit = 0.05;
  const auto r = system_of(a, 2, 1)->solve(wave(a.n()), {}, spec, {});
  CHECK_EQ(r.outcome.reason, Reason::time_limit);
}

TEST(host_that_asks_for_a_stop_gets_the_best_x) {
  const auto a = grid2d(300, 300);
  const auto b = wave(a.n());
  auto spec = spec_of(Method::prcg, Preconditioner::none, 1e-13);
  spec.maxiter = 1'000'000'000;
  const auto r = system_of(a, 2, 1)->solve(b, {}, spec, [](std::int64_t, double) { return false; });
  CHECK(r.outcome.reason == Reason::interrupted || r.outcome.reason == Reason::converged_rtol);
  CHECK(r.outcome.iterations > 0);
  CHECK_NEAR(r.outcome.true_residual, true_residual(a, b, r.x), 1e-8 * norm(b));
}

TEST(exception_of_the_host_ends_the_kernels_and_passes) {
  struct Stop {};
  const std::int32_t side = harness::shorter(300, 80);
  const auto a = grid2d(side, side);
  auto spec = spec_of(Method::prcg, Preconditioner::none, 0.0);
  spec.maxiter = 1'000'000'000;
  const auto system = system_of(a, 2, 1);
  CHECK_THROWS(Stop, system->solve(wave(a.n()), {}, spec,
                                   [](std::int64_t, double) -> bool { throw Stop{}; }));
  spec.rtol = 0.1;  // the next solve ends as it should
  CHECK_EQ(system->solve(wave(a.n()), {}, spec, {}).outcome.reason, Reason::converged_rtol);
}

TEST(wrong_lengths_and_options_are_rejected) {
  const auto a = grid2d(4, 4);
  const auto system = system_of(a, 1, 1);
  const auto spec = spec_of(Method::cg, Preconditioner::jacobi);
  CHECK_THROWS(InvalidInput, system->solve(std::vector<double>(15, 1.0), {}, spec, {}));
  CHECK_THROWS(InvalidInput, system->solve(wave(16), std::vector<double>(3), spec, {}));
  auto bad = spec;
  bad.rtol = -1.0;
  CHECK_THROWS(InvalidInput, system->solve(wave(16), {}, bad, {}));
  bad = spec;
  bad.wait_limit = 0.0;
  CHECK_THROWS(InvalidInput, system->solve(wave(16), {}, bad, {}));
  CHECK_THROWS(InvalidInput, method_from_name("gmres"));
  CHECK_THROWS(InvalidInput, make_system<double>(a.view(), {}, {}, {Engine::cpu_threads, 0, 1}));
}
