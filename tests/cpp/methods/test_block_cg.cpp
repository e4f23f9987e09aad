// Block CG on CPU threads: the mathematics, and what becomes of columns that depend on others, end
// early, or meet a matrix that is none for them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpufree/base/index.hpp"
#include "cpufree/reference/block_cg.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "solves.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

template <class T>
using Several = std::vector<std::vector<T>>;

template <class T>
struct Solved {
  Several<T> x;
  std::vector<SolveResult> results;
  const Outcome& outcome(std::size_t k) const { return results[k].outcome; }
};

SolveSpec block_spec(Preconditioner pc = Preconditioner::jacobi) {
  return solve_spec(Method::block_cg, pc);
}

template <class T>
Solved<T> solve(const Matrix<T>& a, const Several<T>& b, const SolveSpec& spec, int pes = 1,
                const Several<T>& x0 = {}) {
  SystemSpec where;
  where.pes = pes;
  where.blocks = 2;
  const auto system = make_system<T>(a.view(), random_partition(a.n(), pes, 2), {}, where);
  Solved<T> solved;
  solved.x.assign(b.size(), std::vector<T>(at(a.n())));
  ColumnViews<T> views;
  for (std::size_t k = 0; k < b.size(); ++k) {
    views.b.push_back({b[k].data(), b[k].size()});
    views.out.push_back({solved.x[k].data(), solved.x[k].size()});
    if (!x0.empty()) views.x0.push_back({x0[k].data(), x0[k].size()});
  }
  solved.results = system->solve_columns(views, spec, {});
  return solved;
}

// ||b - A x|| / ||b||.
template <class T>
double relative_residual(const Matrix<T>& a, const std::vector<T>& x, const std::vector<T>& b) {
  return residual_norm(a, x, b) / residual_norm(a, std::vector<T>(b.size()), b);
}

template <class T>
void check_all_converge(const Matrix<T>& a, double rtol) {
  for (const int columns : {2, 4, 8})
    for (const int pes : {1, 2, 3})
      for (const Preconditioner pc : {Preconditioner::none, Preconditioner::jacobi}) {
        SolveSpec spec = block_spec(pc);
        spec.rtol = rtol;
        const auto b = waves<T>(a.n(), columns);
        const auto solved = solve<T>(a, b, spec, pes);
        for (std::size_t k = 0; k < b.size(); ++k) {
          CHECK_EQ(solved.outcome(k).reason, Reason::converged_rtol);
          CHECK(relative_residual(a, solved.x[k], b[k]) <= 1.5 * rtol);
        }
      }
}

std::int64_t most_iterations(const Solved<double>& solved) {
  std::int64_t most = 0;
  for (const SolveResult& result : solved.results) most = std::max(most, result.outcome.iterations);
  return most;
}

}  // namespace

TEST(all_columns_converge_in_double_precision) { check_all_converge(grid2d(17, 13, 0.1), 1e-10); }
TEST(all_columns_converge_in_single_precision) {
  check_all_converge(grid2d<float>(17, 13, 0.1F), 1e-4);
}

TEST(iterates_are_those_of_the_reference) {
  const auto a = grid2d(23, 19, 0.01);
  const auto d = reference::diagonal(a.view());
  const auto b = waves<double>(a.n(), 4);
  for (const std::int64_t iterations : {1, 2, 5, 12}) {
    SolveSpec spec = block_spec();
    spec.rtol = 0.0;
    spec.maxiter = iterations;
    const auto solved = solve<double>(a, b, spec, 2);
    const auto expected = reference::block_cg(
        a.view(), b, 0.0, iterations, [&](const auto& r) { return reference::divide(r, d); });
    for (std::size_t k = 0; k < b.size(); ++k) {
      CHECK_EQ(solved.outcome(k).iterations, iterations);
      CHECK(std::abs(solved.outcome(k).residual - expected.residuals[k]) <=
            1e-8 * expected.residuals[k]);
      for (std::size_t i = 0; i < b[k].size(); ++i)
        CHECK(std::abs(solved.x[k][i] - expected.x[k][i]) <= 1e-9);
    }
  }
}

TEST(the_reference_of_one_column_is_cg) {
  const auto a = grid2d(15, 11, 0.01);
  const auto d = reference::diagonal(a.view());
  const auto apply = [&](const auto& r) { return reference::divide(r, d); };
  const auto b = waves<double>(a.n(), 1);
  const auto block = reference::block_cg(a.view(), b, 1e-10, 500, apply);
  const auto alone = reference::cg(a.view(), b[0], 1e-10, 500, apply);
  CHECK(std::abs(block.iterations - alone.iterations) <= 1);
  for (std::size_t i = 0; i < b[0].size(); ++i) CHECK(std::abs(block.x[0][i] - alone.x[i]) <= 1e-8);
}

TEST(a_block_takes_fewer_iterations_than_its_columns_alone) {
  const auto a = grid2d(40, 37);
  const auto b = waves<double>(a.n(), 8);
  const auto block = most_iterations(solve<double>(a, b, block_spec(), 2));
  const auto alone =
      most_iterations(solve<double>(a, b, solve_spec(Method::cg, Preconditioner::jacobi), 2));
  CHECK(10 * block <= 7 * alone);
}

TEST(equal_dependent_and_zero_columns_are_left_out_and_solved) {
  const auto a = grid2d(21, 18, 0.01);
  auto b = waves<double>(a.n(), 8);
  b[3] = b[1];
  std::ranges::fill(b[5], 0.0);
  for (std::size_t i = 0; i < b[6].size(); ++i) b[6][i] = 1e6 * b[0][i] - b[2][i];
  for (std::size_t i = 0; i < b[7].size(); ++i) b[7][i] = b[4][i] * (1.0 + 1e-12 * b[0][i]);
  for (const int pes : {1, 3}) {
    const auto solved = solve<double>(a, b, block_spec(), pes);
    int dependent = 0;
    for (std::size_t k = 0; k < b.size(); ++k) {
      dependent += solved.outcome(k).dependent;
      if (k == 5) {
        CHECK_EQ(solved.outcome(k).reason, Reason::converged_atol);
        CHECK_EQ(solved.outcome(k).iterations, 0);
        CHECK(solved.x[k] == std::vector<double>(b[k].size(), 0.0));
      } else {
        CHECK_EQ(solved.outcome(k).reason, Reason::converged_rtol);
        CHECK(relative_residual(a, solved.x[k], b[k]) <= 1.5e-10);
      }
    }
    CHECK_EQ(dependent, 3);
    CHECK_EQ(solved.outcome(5).dependent, 0);
  }
}

TEST(a_block_of_equal_columns_is_cg_of_one) {
  const auto a = grid2d(16, 14, 0.02);
  const Several<double> b(4, wave<double>(a.n()));
  const auto block = solve<double>(a, b, block_spec());
  const auto alone = solve<double>(a, {b[0], b[0]}, solve_spec(Method::cg, Preconditioner::jacobi));
  for (std::size_t k = 0; k < b.size(); ++k)
    CHECK(std::abs(block.outcome(k).iterations - alone.outcome(0).iterations) <= 1);
}

// Differences that show late: what was left out of the residuals comes back by a new start.
TEST(columns_that_differ_little_are_told_apart_where_it_matters) {
  const auto a = grid2d(21, 18, 0.01);
  auto b = waves<double>(a.n(), 2);
  for (std::size_t i = 0; i < b[1].size(); ++i) b[1][i] = b[0][i] + 1e-9 * b[1][i];
  SolveSpec spec = block_spec();
  spec.rtol = 1e-13;
  const auto solved = solve<double>(a, b, spec);
  for (std::size_t k = 0; k < 2; ++k) {
    CHECK_EQ(solved.outcome(k).reason, Reason::converged_rtol);
    CHECK(relative_residual(a, solved.x[k], b[k]) <= 1.5e-13);
  }
}

TEST(a_column_that_has_ended_keeps_its_bits_while_others_go_on) {
  const auto a = grid2d(25, 21, 0.01);
  auto b = waves<double>(a.n(), 4);
  Several<double> x0(4, std::vector<double>(b[0].size(), 0.0));
  std::ranges::fill(x0[2], 1.0);
  b[2] = reference::multiply(a.view(), x0[2]);
  const auto solved = solve<double>(a, b, block_spec(), 2, x0);
  CHECK_EQ(solved.outcome(2).reason, Reason::converged_rtol);
  CHECK_EQ(solved.outcome(2).iterations, 0);
  CHECK(solved.x[2] == x0[2]);
  for (const std::size_t k : {0U, 1U, 3U}) {
    CHECK_EQ(solved.outcome(k).reason, Reason::converged_rtol);
    CHECK(solved.outcome(k).iterations > 10);
    CHECK(relative_residual(a, solved.x[k], b[k]) <= 1.5e-10);
  }
}

TEST(columns_of_very_different_scale_converge_each_to_its_own_tolerance) {
  const auto a = grid2d(19, 17, 0.01);
  auto b = waves<double>(a.n(), 4);
  for (std::size_t k = 0; k < b.size(); ++k)
    for (double& value : b[k]) value *= std::pow(1e40, static_cast<double>(k) - 1.5);
  const auto solved = solve<double>(a, b, block_spec());
  for (std::size_t k = 0; k < b.size(); ++k) {
    CHECK_EQ(solved.outcome(k).reason, Reason::converged_rtol);
    CHECK(relative_residual(a, solved.x[k], b[k]) <= 1.5e-10);
  }
}

TEST(more_columns_than_the_matrix_has_rows_are_solved) {
  const auto a = grid2d(3, 2, 0.1);
  const auto b = waves<double>(a.n(), 8);
  const auto solved = solve<double>(a, b, block_spec());
  for (std::size_t k = 0; k < b.size(); ++k) {
    CHECK_EQ(solved.outcome(k).reason, Reason::converged_rtol);
    CHECK(relative_residual(a, solved.x[k], b[k]) <= 1.5e-10);
    CHECK(solved.outcome(k).iterations <= 3);
  }
}

TEST(an_indefinite_matrix_and_one_with_a_nan_are_named_in_all_columns) {
  auto a = grid2d(12, 9);
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k)
      if (a.col[at(k)] == i) a.val[at(k)] -= 3.0;
  const auto b = waves<double>(a.n(), 4);
  for (const auto& result : solve<double>(a, b, block_spec(Preconditioner::none)).results)
    CHECK_EQ(result.outcome.reason, Reason::diverged_indefinite_mat);
  a.val[7] = std::numeric_limits<double>::quiet_NaN();
  for (const auto& result : solve<double>(a, b, block_spec(Preconditioner::none)).results)
    CHECK_EQ(result.outcome.reason, Reason::diverged_nanorinf);
}

TEST(a_tolerance_below_rounding_errors_ends_as_stagnation) {
  const auto a = grid2d(20, 16);
  SolveSpec spec = block_spec();
  spec.rtol = 1e-18;
  spec.maxiter = 100000;
  const auto b = waves<double>(a.n(), 4);
  const auto solved = solve<double>(a, b, spec, 2);
  for (std::size_t k = 0; k < b.size(); ++k) {
    CHECK_EQ(solved.outcome(k).reason, Reason::stagnated);
    CHECK(relative_residual(a, solved.x[k], b[k]) <= 1e-13);
  }
}

TEST(one_right_hand_side_is_refused) {
  const auto a = grid2d(4, 3);
  const auto system = make_system<double>(a.view(), {}, {}, SystemSpec());
  std::string why;
  try {
    static_cast<void>(system->solve(wave<double>(a.n()), {}, block_spec(), {}));
  } catch (const Unsupported& error) {
    why = error.what();
  }
  CHECK(why.find("several right-hand sides together") != std::string::npos);
}
