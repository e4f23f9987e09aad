// Solves with multigrid as preconditioner, on CPU threads.
#include <cmath>

#include "cpufree/base/index.hpp"
#include "cpufree/distributed/slab_plan.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "slabs.hpp"
#include "solves.hpp"
#include "thread_team.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

SystemSpec system_spec(int pes, int blocks) {
  SystemSpec spec;
  spec.pes = pes;
  spec.blocks = blocks;
  spec.factors.kind = Preconditioner::amg;
  return spec;
}

SolveSpec solve_spec(double rtol = 1e-10) {
  auto spec = testing_solves::solve_spec(Method::cg, Preconditioner::amg);
  spec.rtol = rtol;
  return spec;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  const auto d = reference::axpy(a, -1.0, b);
  return std::sqrt(reference::dot(d, d));
}

template <class T>
double residual(const Matrix<T>& a, const std::vector<T>& b, const std::vector<T>& x) {
  const std::vector<double> bb(b.begin(), b.end());
  const auto ax = reference::multiply(a.view(), {x.begin(), x.end()});
  return distance(bb, ax) / std::sqrt(reference::dot(bb, bb));
}

std::vector<std::int32_t> slabs(std::int32_t rows, int pes) {
  std::vector<std::int32_t> owner(at(rows));
  for (std::int32_t i = 0; i < rows; ++i)
    owner[at(i)] = static_cast<std::int32_t>(std::int64_t{i} * pes / rows);
  return owner;
}

}  // namespace

TEST(solves_on_any_number_of_pes_and_blocks) {
  for (const auto& a : {irregular(700, 6), grid2d(47, 39, 0.01)}) {
    const auto b = wave(a.n());
    for (const int pes : {1, 2, 3, 4, 8}) {
      if (pes > harness::shorter(8, 3)) continue;
      for (const auto& part : {slabs(a.n(), pes), random_partition(a.n(), pes, 2)}) {
        const auto system = make_system<double>(a.view(), part, {}, system_spec(pes, 1 + pes % 3));
        const auto found = system->solve(b, {}, solve_spec(), {});
        CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
        CHECK(residual(a, b, found.x) < 2e-10);
      }
    }
  }
}

TEST(iterations_hardly_depend_on_pes_and_blocks) {
  const auto a = grid2d(90, 80);
  const auto b = wave(a.n());
  const auto iterations = [&](int pes, int blocks) {
    const auto part = slabs(a.n(), pes);
    return make_system<double>(a.view(), part, {}, system_spec(pes, blocks))
        ->solve(b, {}, solve_spec(1e-8), {})
        .outcome.iterations;
  };
  const auto one = iterations(1, 1);
  CHECK(one <= 13);
  CHECK_EQ(iterations(1, 3), one);
  for (const int pes : {2, 3, 4, 8}) CHECK(std::abs(iterations(pes, 2) - one) <= 1);
}

TEST(solves_reach_the_rounding_level_of_double_precision) {
  const auto a = grid2d(60, 60);
  const auto b = wave(a.n());
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 2));
  const auto found = system->solve(b, {}, solve_spec(1e-13), {});
  CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
  CHECK(residual(a, b, found.x) < 2e-13);
  CHECK(found.outcome.iterations < 25);
}

TEST(solves_repeat_bit_for_bit) {
  const auto a = grid2d(50, 41);
  const auto b = wave(a.n());
  const auto part = random_partition(a.n(), 3, 5);
  const auto one = make_system<double>(a.view(), part, {}, system_spec(3, 2));
  const auto two = make_system<double>(a.view(), part, {}, system_spec(3, 2));
  const auto first = one->solve(b, {}, solve_spec(), {});
  CHECK(first.x == one->solve(b, {}, solve_spec(), {}).x);
  CHECK(first.x == two->solve(b, {}, solve_spec(), {}).x);
}

TEST(single_precision_solves) {
  const auto a = grid2d<float>(50, 45, 0.1);
  const auto b = wave<float>(a.n());
  const auto found =
      make_system<float>(a.view(), {}, {}, system_spec(2, 2))->solve(b, {}, solve_spec(1e-5), {});
  CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
  CHECK(residual(a, b, found.x) < 2e-5);
}

TEST(a_guess_is_where_the_solve_begins) {
  const auto a = grid2d(40, 40);
  const auto b = wave(a.n());
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 1));
  const auto cold = system->solve(b, {}, solve_spec(), {});
  const auto warm = system->solve(b, cold.x, solve_spec(1e-8), {});
  CHECK_EQ(warm.outcome.iterations, 0);
}

TEST(units_of_the_matrix_and_of_b_do_not_matter) {
  const auto a = grid2d(40, 40);
  const auto b = wave(a.n());
  const auto solve = [&](double of_a, double of_b) {
    auto scaled = a;
    auto right = b;
    for (double& v : scaled.val) v *= of_a;
    for (double& v : right) v *= of_b;
    const auto found = make_system<double>(scaled.view(), {}, {}, system_spec(1, 2))
                           ->solve(right, {}, solve_spec(1e-8), {});
    CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
    return found.outcome.iterations;
  };
  const auto plain = solve(1.0, 1.0);
  for (const double of_a : {1e-290, 1e-30, 1e30, 1e290})
    CHECK(std::abs(solve(of_a, 1.0) - plain) <= 1);
  CHECK(std::abs(solve(1.0, 1e-200) - plain) <= 1);
  CHECK(std::abs(solve(1e100, 1e200) - plain) <= 1);
}

TEST(small_and_disconnected_systems_are_solved) {
  std::vector<Matrix<double>> systems;
  for (const std::int32_t n : {1, 2, 3, 7}) systems.push_back(grid2d(n, 1));
  Entries diagonal;
  for (std::int32_t i = 0; i < 50; ++i) diagonal[{i, i}] = 1.0 + i;
  systems.push_back(from_entries<double>(50, diagonal));
  Entries parts;  // ten chains
  for (std::int32_t i = 0; i < 600; ++i) {
    parts[{i, i}] = 2.1;
    if (i % 60 + 1 < 60) parts[{i, i + 1}] = parts[{i + 1, i}] = -1.0;
  }
  systems.push_back(from_entries<double>(600, parts));
  for (const auto& a : systems)
    for (const int pes : {1, 3, 5}) {
      const auto b = wave(a.n());
      const auto part = random_partition(a.n(), pes, 1);
      const auto found = make_system<double>(a.view(), part, {}, system_spec(pes, 2))
                             ->solve(b, {}, solve_spec(), {});
      CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
      CHECK(residual(a, b, found.x) < 2e-10);
    }
}

TEST(penalty_and_identity_rows_cost_no_iterations) {
  const auto a = grid2d(60, 50);
  const auto plain = make_system<double>(a.view(), {}, {}, system_spec(2, 2))
                         ->solve(wave(a.n()), {}, solve_spec(1e-8), {})
                         .outcome.iterations;
  for (const double penalty : {1e10, 1e20, 1e30}) {
    auto fixed = a;
    auto b = wave(a.n());
    for (std::int32_t i = 0; i < a.n(); i += 50) {
      b[at(i)] = 0.0;
      for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
        if (a.col[k] == i) fixed.val[k] = penalty;
    }
    const auto found = make_system<double>(fixed.view(), {}, {}, system_spec(2, 2))
                           ->solve(b, {}, solve_spec(1e-8), {});
    CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
    CHECK(found.outcome.iterations <= plain + 1);
  }
}

TEST(pes_without_rows_take_part) {
  const auto a = grid2d(30, 30);
  const auto b = wave(a.n());
  std::vector<std::int32_t> part(at(a.n()), 2);
  for (std::size_t i = 0; i < 400; ++i) part[i] = 0;
  const auto found =
      make_system<double>(a.view(), part, {}, system_spec(4, 1))->solve(b, {}, solve_spec(), {});
  CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
}

TEST(an_indefinite_matrix_ends_with_its_name) {
  const auto a = grid2d(30, 30, -3.0);
  const auto found = make_system<double>(a.view(), {}, {}, system_spec(2, 2))
                         ->solve(wave(a.n()), {}, solve_spec(), {});
  CHECK(found.outcome.reason == Reason::diverged_indefinite_mat ||
        found.outcome.reason == Reason::diverged_indefinite_pc);
}

TEST(a_not_a_number_in_b_ends_with_its_name) {
  const auto a = grid2d(30, 30);
  auto b = wave(a.n());
  b[17] = std::nan("");
  const auto found =
      make_system<double>(a.view(), {}, {}, system_spec(2, 2))->solve(b, {}, solve_spec(), {});
  CHECK_EQ(found.outcome.reason, Reason::diverged_nanorinf);
}

TEST(other_methods_are_refused_with_the_reason) {
  const auto a = grid2d(10, 10);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(1, 1));
  for (const Method method : {Method::prcg, Method::pipecg})
    CHECK_THROWS(InvalidInput,
                 system->solve(wave(a.n()), {},
                               testing_solves::solve_spec(method, Preconditioner::amg), {}));
}

TEST(a_system_without_a_hierarchy_refuses_to_solve_with_one) {
  const auto a = grid2d(10, 10);
  const auto system = make_system<double>(a.view(), {}, {}, SystemSpec());
  CHECK_THROWS(InvalidInput, system->solve(wave(a.n()), {}, solve_spec(), {}));
}

TEST(other_preconditioners_solve_beside_a_hierarchy) {
  const auto a = grid2d(20, 20);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 2));
  const auto found = system->solve(
      wave(a.n()), {}, testing_solves::solve_spec(Method::prcg, Preconditioner::jacobi), {});
  CHECK_EQ(found.outcome.reason, Reason::converged_rtol);
}

TEST(processes_give_bitwise_what_one_process_gives) {
  const auto a = grid2d(70, 50);
  const auto b = wave(a.n());
  const auto expected =
      make_system<double>(a.view(), {}, {}, system_spec(3, 2))->solve(b, {}, solve_spec(), {});
  for (const auto& thrown : run_team(3, [&](const std::shared_ptr<Team>& team) {
         auto spec = system_spec(3, 2);
         spec.engine = Engine::cpu_processes;
         spec.team = team;
         const auto system = make_system<double>(a.view(), {}, {}, spec);
         const auto found = system->solve(b, {}, solve_spec(), {});
         CHECK_EQ(found.outcome.iterations, expected.outcome.iterations);
         CHECK(found.history == expected.history);
         if (team->rank() == 0) CHECK(found.x == expected.x);
         CHECK(system->plan().levels.size() > 1 && system->plan().levels[1].bytes > 0.0);
       }))
    if (thrown) std::rethrow_exception(thrown);
}

TEST(processes_with_rows_of_their_own_are_refused_with_the_reason) {
  const auto a = grid2d(12, 12);
  int refused = 0;
  for (const auto& thrown : run_team(2, [&](const std::shared_ptr<Team>& team) {
         auto spec = system_spec(2, 1);
         spec.engine = Engine::cpu_processes;
         spec.team = team;
         const auto rows = rows_of(a, 72 * team->rank(), 72 * (team->rank() + 1));
         make_system(plan_slab(rows.slab(), *team, {1e-12}), spec);
       }))
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Unsupported& error) {
      const std::string why = error.what();
      refused += why.find("where each has its own rows, choose another") != why.npos ? 1 : 0;
    }
  CHECK_EQ(refused, 2);
}

TEST(several_nodes_are_refused_with_the_reason) {
  const auto a = grid2d(12, 12);
  auto nodes = system_spec(4, 1);
  nodes.node_size = 2;
  CHECK_THROWS(Unsupported, make_system<double>(a.view(), {}, {}, nodes));
}

TEST(small_levels_are_those_of_all_pes_together) {
  const auto a = grid2d(120, 110);
  const auto levels = [&](int pes) {
    const auto system = make_system<double>(a.view(), slabs(a.n(), pes), {}, system_spec(pes, 1));
    return system->plan().levels;
  };
  const auto of_one = levels(1), of_eight = levels(8);
  CHECK_EQ(of_one.size(), of_eight.size());
  CHECK(of_eight.back().inverted);
}
