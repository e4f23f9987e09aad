// Several right-hand sides together on CPU threads: what each column gets, whatever the others do.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "solves.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

SystemSpec system_spec(int pes, int blocks) {
  SystemSpec spec;
  spec.pes = pes;
  spec.blocks = blocks;
  return spec;
}

template <class T>
using Several = std::vector<std::vector<T>>;

template <class T>
struct Solved {
  Several<T> x;
  std::vector<SolveResult> results;
};

template <class T>
Solved<T> solve_together(System<T>& system, const Several<T>& b, const SolveSpec& spec,
                         const Several<T>& x0 = {}, const Progress& progress = {}) {
  Solved<T> solved;
  solved.x.assign(b.size(), std::vector<T>(at(system.rows())));
  ColumnViews<T> views;
  for (std::size_t k = 0; k < b.size(); ++k) {
    views.b.push_back({b[k].data(), b[k].size()});
    views.out.push_back({solved.x[k].data(), solved.x[k].size()});
    if (!x0.empty()) views.x0.push_back({x0[k].data(), x0[k].size()});
  }
  solved.results = system.solve_columns(views, spec, progress);
  return solved;
}

template <class T>
double norm(const std::vector<T>& v) {
  double sum = 0.0;
  for (const T value : v) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

// Whether column k has ended as a solve of b by itself does, to the last bit.
template <class T>
bool is_as_alone(System<T>& system, const Solved<T>& solved, std::size_t k, const std::vector<T>& b,
                 const SolveSpec& spec, const std::vector<T>& x0 = {}) {
  const auto alone = system.solve(b, x0, spec, {});
  const Outcome &mine = solved.results[k].outcome, &other = alone.outcome;
  return solved.x[k] == alone.x && mine.reason == other.reason &&
         mine.iterations == other.iterations && mine.residual == other.residual &&
         mine.true_residual == other.true_residual && mine.bnorm == other.bnorm &&
         solved.results[k].history == alone.history;
}

template <class T>
void check_columns_of(const Matrix<T>& a, double rtol) {
  for (const int columns : {2, 4, 8})
    for (const int pes : {1, 2, 3})
      for (const Preconditioner pc : {Preconditioner::none, Preconditioner::jacobi}) {
        if (pes == harness::shorter(0, 3)) continue;
        const auto part = random_partition(a.n(), pes, 2);
        const auto system = make_system<T>(a.view(), part, {}, system_spec(pes, 2));
        SolveSpec spec = solve_spec(Method::cg, pc);
        spec.rtol = rtol;
        const auto b = waves<T>(a.n(), columns);
        const auto solved = solve_together<T>(*system, b, spec);
        for (std::size_t k = 0; k < b.size(); ++k) {
          CHECK_EQ(solved.results[k].outcome.reason, Reason::converged_rtol);
          CHECK(residual_norm(a, solved.x[k], b[k]) <= 1.5 * rtol * norm(b[k]));
          CHECK(is_as_alone(*system, solved, k, b[k], spec));
        }
      }
}

}  // namespace

TEST(each_column_converges_with_the_bits_of_cg_by_itself_in_double_precision) {
  check_columns_of<double>(irregular(300, 6), 1e-9);
}
TEST(each_column_converges_with_the_bits_of_cg_by_itself_in_single_precision) {
  check_columns_of<float>(grid2d<float>(20, 15, 0.5), 1e-4);
}

TEST(columns_of_very_different_scale_and_difficulty_end_each_by_itself) {
  const auto a = grid2d(24, 20, 0.01);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 2));
  const SolveSpec spec = solve_spec(Method::cg, Preconditioner::jacobi);
  auto b = waves<double>(a.n(), 4);
  for (double& value : b[0]) value *= 1e200;
  for (double& value : b[1]) value *= 1e-200;
  std::ranges::fill(b[2], 0.0);
  b[3].assign(b[3].size(), 1.0);
  const auto solved = solve_together<double>(*system, b, spec);
  for (std::size_t k = 0; k < 4; ++k) CHECK(is_as_alone(*system, solved, k, b[k], spec));
  CHECK_EQ(solved.results[2].outcome.reason, Reason::converged_atol);
  CHECK_EQ(solved.results[2].outcome.iterations, 0);
  CHECK(solved.x[2] == b[2]);
  CHECK(solved.results[0].outcome.iterations != solved.results[3].outcome.iterations);
}

TEST(a_nan_in_one_column_spoils_no_other) {
  const auto a = irregular(200, 3);
  const auto system =
      make_system<double>(a.view(), random_partition(a.n(), 3, 1), {}, system_spec(3, 1));
  const SolveSpec spec = solve_spec(Method::cg, Preconditioner::jacobi);
  auto b = waves<double>(a.n(), 4);
  b[1][17] = kNaN;
  const auto solved = solve_together<double>(*system, b, spec);
  CHECK_EQ(solved.results[1].outcome.reason, Reason::diverged_nanorinf);
  for (const std::size_t k : {0, 2, 3}) CHECK(is_as_alone(*system, solved, k, b[k], spec));
  const auto again = solve_together<double>(*system, waves<double>(a.n(), 4), spec);
  CHECK_EQ(again.results[1].outcome.reason, Reason::converged_rtol);
}

TEST(a_guess_whose_residual_overflows_is_dropped_in_its_column) {
  const auto a = grid2d(10, 10, 0.5);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 1));
  const SolveSpec spec = solve_spec(Method::cg, Preconditioner::none);
  auto b = waves<double>(a.n(), 2);
  Several<double> x0(2, std::vector<double>(b[0].size(), 1.0));
  x0[1].assign(x0[1].size(), 1e300);  // b - A x is finite, its square is not
  const auto solved = solve_together<double>(*system, b, spec, x0);
  CHECK_EQ(solved.results[1].outcome.reason, Reason::converged_rtol);
  CHECK(is_as_alone(*system, solved, 0, b[0], spec, x0[0]));
  CHECK(is_as_alone(*system, solved, 1, b[1], spec, x0[1]));
}

TEST(every_column_tells_of_an_indefinite_matrix) {
  auto a = grid2d(12, 12);
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k)
      if (a.col[at(k)] == i) a.val[at(k)] -= 3.0;
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 1));
  const SolveSpec spec = solve_spec(Method::cg, Preconditioner::jacobi);
  const auto b = waves<double>(a.n(), 4);
  const auto solved = solve_together<double>(*system, b, spec);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK_EQ(solved.results[k].outcome.reason, Reason::diverged_indefinite_mat);
    CHECK(is_as_alone(*system, solved, k, b[k], spec));
  }
}

TEST(guesses_are_of_each_column) {
  const auto a = grid2d(15, 11, 0.2);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(3, 1));
  const SolveSpec spec = solve_spec(Method::cg, Preconditioner::jacobi);
  const auto b = waves<double>(a.n(), 4);
  auto x0 = waves<double>(a.n(), 4);
  x0[2] = system->solve(b[2], {}, spec, {}).x;  // met at once
  const auto solved = solve_together<double>(*system, b, spec, x0);
  for (std::size_t k = 0; k < 4; ++k) CHECK(is_as_alone(*system, solved, k, b[k], spec, x0[k]));
  CHECK_EQ(solved.results[2].outcome.iterations, 0);
}

TEST(columns_stop_at_the_limits_of_iterations_and_of_rounding) {
  const auto a = irregular(150, 4);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 2));
  SolveSpec spec = solve_spec(Method::cg, Preconditioner::jacobi);
  const auto b = waves<double>(a.n(), 4);
  for (const std::int64_t most : {0, 1, 7, 2000}) {
    spec.rtol = 0.0;
    spec.maxiter = most;
    const auto solved = solve_together<double>(*system, b, spec);
    for (std::size_t k = 0; k < 4; ++k) {
      CHECK_EQ(solved.results[k].outcome.reason,
               most == 2000 ? Reason::stagnated : Reason::diverged_its);
      CHECK(is_as_alone(*system, solved, k, b[k], spec));
    }
  }
}

TEST(an_interrupt_ends_all_columns_that_run) {
  const auto a = grid2d(400, 400);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 1));
  SolveSpec spec = solve_spec(Method::cg, Preconditioner::none);
  spec.rtol = 0.0;
  spec.maxiter = 1'000'000;
  spec.time_limit = 60.0;
  auto b = waves<double>(a.n(), 4);
  std::ranges::fill(b[1], 0.0);
  double told = 0.0;
  const auto solved = solve_together<double>(*system, b, spec, {}, [&](std::int64_t, double norm) {
    told = norm;
    return norm == 0.0;  // nothing has been reported yet
  });
  CHECK_EQ(solved.results[1].outcome.reason, Reason::converged_atol);
  for (const std::size_t k : {0, 2, 3}) {
    CHECK_EQ(solved.results[k].outcome.reason, Reason::interrupted);
    CHECK(residual_norm(a, solved.x[k], b[k]) <= 1.01 * solved.results[k].outcome.true_residual);
  }
  CHECK(told > 0.0 && told <= 1e3 * norm(b[0]));
}

TEST(a_time_limit_ends_all_columns_that_run) {
  const auto a = grid2d(300, 300);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(1, 2));
  SolveSpec spec = solve_spec(Method::cg, Preconditioner::jacobi);
  spec.rtol = 0.0;
  spec.maxiter = 1'000'000;
  spec.time_limit = 0.05;
  const auto solved = solve_together<double>(*system, waves<double>(a.n(), 2), spec);
  for (const SolveResult& result : solved.results)
    CHECK_EQ(result.outcome.reason, Reason::time_limit);
}

TEST(a_system_solves_two_eight_and_one_columns_in_turn) {
  const auto a = irregular(120, 5);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 1));
  const SolveSpec spec = solve_spec(Method::cg, Preconditioner::jacobi);
  const auto b = waves<double>(a.n(), 8);
  const auto eight = solve_together<double>(*system, b, spec);
  const auto two = solve_together<double>(*system, {b[6], b[3]}, spec);
  CHECK(two.x[0] == eight.x[6] && two.x[1] == eight.x[3]);
  CHECK(system->solve(b[3], {}, spec, {}).x == eight.x[3]);
}

TEST(what_cannot_be_solved_together_is_refused) {
  const auto a = grid2d(8, 8);
  const auto system = make_system<double>(a.view(), {}, {}, system_spec(2, 1));
  const auto b = waves<double>(a.n(), 4);
  const auto with = [&](Method method, Preconditioner pc) {
    return solve_together<double>(*system, b, solve_spec(method, pc));
  };
  CHECK_THROWS(Unsupported, with(Method::prcg, Preconditioner::jacobi));
  CHECK_THROWS(Unsupported, with(Method::cg, Preconditioner::chebyshev));
  CHECK_THROWS(InvalidInput,
               solve_together<double>(*system, {b[0], b[1], b[2]},
                                      solve_spec(Method::cg, Preconditioner::jacobi)));
  CHECK_EQ(system->refuses_columns(), std::string());
}
