// Minimal residuals and stabilised biconjugate gradients on the CPU engine: systems that conjugate
// gradients cannot have, against the serial references and against mathematics.
#include <algorithm>
#include <cmath>
#include <random>

#include "cpufree/reference/bicgstab.hpp"
#include "cpufree/reference/minres.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "solves.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

const std::vector<std::pair<int, int>> kShapes = {{1, 1}, {1, 3}, {2, 1}, {3, 2}, {8, 4}};
constexpr Method kMinres = Method::minres, kBicgstab = Method::bicgstab;
constexpr Preconditioner kNone = Preconditioner::none, kJacobi = Preconditioner::jacobi;

template <class T>
Solution<T> solved(const Matrix<T>& a, const std::vector<T>& b, const SolveSpec& spec, int pes = 2,
                   int blocks = 2, const std::vector<T>& x0 = {}) {
  SystemSpec where{Engine::cpu_threads, pes, blocks};
  where.factors.kind = has_factors(spec.preconditioner) ? spec.preconditioner : kNone;
  return make_system<T>(a.view(), random_partition(a.n(), pes, 7), {}, where)
      ->solve(b, x0, spec, {});
}

// A saddle point problem: a Laplacian, and constraints without a diagonal.
Matrix<double> saddle(std::int32_t n, std::int32_t constraints) {
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) {
    e[{i, i}] = 2.0 + 0.1 * (i % 5);
    if (i > 0) e[{i, i - 1}] = e[{i - 1, i}] = -1.0;
  }
  for (std::int32_t c = 0; c < constraints; ++c)
    for (std::int32_t k = c; k < n; k += constraints) e[{n + c, k}] = e[{k, n + c}] = 1.0 + k % 3;
  return from_entries<double>(n + constraints, e);
}

// Convection and diffusion on a grid, upwind: not symmetric, with a symmetric pattern.
template <class T = double>
Matrix<T> convection(std::int32_t nx, std::int32_t ny, double speed) {
  Matrix<T> a = grid2d<T>(nx, ny);
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k) {
      if (a.col[k] == i - 1) a.val[k] -= static_cast<T>(speed);
      if (a.col[k] == i) a.val[k] += static_cast<T>(speed);
    }
  return a;
}

reference::Vec jacobi(const Matrix<double>& a, const reference::Vec& v) {
  reference::Vec d = reference::diagonal(a.view());
  for (double& entry : d) entry = entry == 0.0 ? 1.0 : std::abs(entry);
  return reference::divide(v, d);
}

}  // namespace

TEST(indefinite_systems_are_solved_on_every_shape_by_minres) {
  for (const auto& a : {grid2d(12, 11, -1.3), saddle(60, 7)}) {
    const auto b = wave(a.n());
    for (const auto& [pes, blocks] : kShapes)
      for (const Preconditioner pc : {kNone, kJacobi}) {
        const auto r = solved(a, b, spec_of(kMinres, pc), pes, blocks);
        CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
        CHECK(true_residual(a, b, r.x) <= 1.01e-9 * norm(b));
        CHECK_NEAR(r.outcome.true_residual, true_residual(a, b, r.x), 1e-12 * norm(b));
        CHECK_EQ(static_cast<std::int64_t>(r.history.size()), r.outcome.iterations + 1);
      }
  }
}

TEST(unsymmetric_systems_are_solved_on_every_shape_by_bicgstab) {
  const auto a = convection(12, 11, 3.0);
  const auto b = wave(a.n());
  for (const auto& [pes, blocks] : kShapes)
    for (const Preconditioner pc : {kNone, kJacobi}) {
      const auto r = solved(a, b, spec_of(kBicgstab, pc), pes, blocks);
      CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
      CHECK(true_residual(a, b, r.x) <= 1.01e-9 * norm(b));
      CHECK_NEAR(r.outcome.true_residual, true_residual(a, b, r.x), 1e-12 * norm(b));
      CHECK_EQ(static_cast<std::int64_t>(r.history.size()), r.outcome.iterations + 1);
    }
}

TEST(iterations_and_norms_are_those_of_the_references) {
  const auto check = [](const Matrix<double>& a, Method method, Preconditioner pc,
                        const reference::Solution& expected, const std::vector<double>& b) {
    const auto r = solved(a, b, spec_of(method, pc, 1e-8), 3, 2);
    CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
    CHECK(std::abs(r.outcome.iterations - expected.iterations) <= 1 + expected.iterations / 20);
    CHECK(norm(reference::axpy(r.x, -1.0, expected.x)) <= 1e-5 * norm(expected.x));
  };
  for (const Preconditioner pc : {kNone, kJacobi}) {
    const auto apply = [&](const Matrix<double>& a) {
      return [&a, pc](const reference::Vec& v) { return pc == kJacobi ? jacobi(a, v) : v; };
    };
    for (const auto& a : {grid2d(10, 9, -0.7), saddle(50, 5)}) {
      const auto b = wave(a.n());
      check(a, kMinres, pc, reference::minres(a.view(), b, 1e-8, 2000, apply(a)), b);
    }
    const auto a = convection(10, 9, 1.0);
    const auto b = wave(a.n());
    check(a, kBicgstab, pc, reference::bicgstab(a.view(), b, 1e-8, 2000, apply(a)), b);
  }
}

TEST(residual_of_minres_never_grows_and_is_that_of_x) {
  const auto a = grid2d(14, 13, -2.1);
  const auto b = wave(a.n());
  const auto all = solved(a, b, spec_of(kMinres, kNone));
  for (std::size_t k = 1; k < all.history.size(); ++k)
    CHECK(all.history[k] <= all.history[k - 1] * (1.0 + 1e-12));
  for (const std::int64_t maxiter : {0, 1, 2, 7, 30}) {
    auto spec = spec_of(kMinres, kNone);
    spec.maxiter = maxiter;
    const auto r = solved(a, b, spec);
    CHECK_EQ(r.outcome.reason, Reason::diverged_its);
    CHECK_EQ(r.outcome.iterations, maxiter);
    CHECK_NEAR(all.history[at(maxiter)], true_residual(a, b, r.x), 1e-11 * norm(b));
    CHECK_NEAR(r.outcome.residual, true_residual(a, b, r.x), 1e-11 * norm(b));
  }
}

TEST(residual_of_bicgstab_is_that_of_x) {
  const auto a = convection(14, 13, 2.0);
  const auto b = wave(a.n());
  for (const std::int64_t maxiter : {0, 1, 2, 9}) {
    auto spec = spec_of(kBicgstab, kJacobi);
    spec.maxiter = maxiter;
    const auto r = solved(a, b, spec);
    CHECK_EQ(r.outcome.iterations, maxiter);
    CHECK_NEAR(r.outcome.residual, true_residual(a, b, r.x), 1e-10 * norm(b));
  }
}

TEST(minres_takes_factors_which_are_positive_definite_by_themselves) {
  const auto a = grid2d(16, 15, 0.01);
  const auto b = wave(a.n());
  const auto plain = solved(a, b, spec_of(kMinres, kJacobi));
  const auto r = solved(a, b, spec_of(kMinres, Preconditioner::fsai), 2, 3);
  CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
  CHECK(true_residual(a, b, r.x) <= 1.01e-9 * norm(b));
  CHECK(r.outcome.iterations < plain.outcome.iterations);
}

TEST(single_precision_solves) {
  const auto a = grid2d<float>(12, 12, -0.9F);
  const auto b = wave<float>(a.n());
  const auto r = solved(a, b, spec_of(kMinres, kJacobi, 1e-4));
  CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
  CHECK(true_residual(a, b, r.x) <= 1.1e-4 * r.outcome.bnorm);
  const auto c = convection<float>(12, 12, 2.0);
  const auto s = solved(c, b, spec_of(kBicgstab, kJacobi, 1e-4));
  CHECK_EQ(s.outcome.reason, Reason::converged_rtol);
  CHECK(true_residual(c, b, s.x) <= 1.1e-4 * s.outcome.bnorm);
}

TEST(repeated_solves_are_bitwise_the_same_and_a_guess_is_used) {
  const auto a = grid2d(11, 10, -0.8);
  const auto c = convection(11, 10, 2.5);
  const auto b = wave(a.n());
  for (const Method method : {kMinres, kBicgstab}) {
    const auto& matrix = method == kMinres ? a : c;
    const auto first = solved(matrix, b, spec_of(method, kJacobi), 3, 2);
    for (int k = 0; k < 8; ++k)
      CHECK(std::ranges::equal(solved(matrix, b, spec_of(method, kJacobi), 3, 2).x, first.x));
    const auto warm = solved(matrix, b, spec_of(method, kJacobi), 3, 2, first.x);
    CHECK_EQ(warm.outcome.iterations, 0);
    CHECK(std::ranges::equal(warm.x, first.x));
  }
}

TEST(tolerance_zero_ends_at_rounding_errors) {
  const auto a = grid2d(15, 15, -0.8);
  const auto c = convection(15, 15, 2.5);
  const auto b = wave(a.n());
  for (const Method method : {kMinres, kBicgstab}) {
    const auto& matrix = method == kMinres ? a : c;
    const auto r = solved(matrix, b, spec_of(method, kJacobi, 0.0));
    CHECK_EQ(r.outcome.reason, Reason::stagnated);
    CHECK(true_residual(matrix, b, r.x) <= 1e-12 * norm(b));
  }
}

// Exchanges the two entries of b, so that r . A r = 0 at first.
TEST(a_first_direction_without_curvature_is_no_breakdown_of_minres) {
  const auto a = from_entries<double>(2, {{{0, 1}, 1.0}, {{1, 0}, 1.0}});
  const auto r = solved(a, {1.0, 0.0}, spec_of(kMinres, kNone), 1, 1);
  CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
  CHECK_NEAR(r.x[1], 1.0, 1e-14);
  CHECK_NEAR(r.x[0], 0.0, 1e-14);
}

TEST(a_right_hand_side_out_of_reach_is_a_breakdown_of_minres) {
  // Singular: b has a part that no A x has. x is still the best one.
  const auto a =
      from_entries<double>(4, {{{0, 0}, 1.0}, {{1, 1}, -2.0}, {{2, 2}, 3.0}, {{3, 3}, 0.0}});
  for (const Preconditioner pc : {kNone, kJacobi}) {
    const auto r = solved(a, {1.0, 2.0, 3.0, 4.0}, spec_of(kMinres, pc), 2, 1);
    CHECK_EQ(r.outcome.reason, Reason::diverged_breakdown);
    CHECK_NEAR(r.outcome.true_residual, 4.0, 1e-12);
    CHECK_NEAR(r.x[1], -1.0, 1e-12);
  }
  // A b = 0: there is nothing to be gained from the start.
  const auto none = solved(a, {0.0, 0.0, 0.0, 4.0}, spec_of(kMinres, kNone), 1, 1);
  CHECK_EQ(none.outcome.reason, Reason::diverged_breakdown);
  CHECK_EQ(none.outcome.iterations, 0);
  // In reach it is solved.
  const auto within = solved(a, {1.0, 2.0, 3.0, 0.0}, spec_of(kMinres, kNone), 1, 1);
  CHECK_EQ(within.outcome.reason, Reason::converged_rtol);
}

TEST(least_squares_of_a_large_singular_system_end_with_a_name) {
  // The Laplacian of a ring: constants are its null space, b has a part of them.
  Entries e;
  const std::int32_t n = 64;
  for (std::int32_t i = 0; i < n; ++i)
    e[{i, i}] = 2.0, e[{i, (i + 1) % n}] = e[{(i + 1) % n, i}] = -1.0;
  const auto a = from_entries<double>(n, e);
  auto b = wave(n);
  for (double& entry : b) entry += 1.0;
  const auto r = solved(a, b, spec_of(kMinres, kNone));
  CHECK_EQ(r.outcome.reason, Reason::diverged_breakdown);
  CHECK(r.outcome.iterations < 5000);
  double sum = 0.0;
  for (const double entry : b) sum += entry;
  CHECK_NEAR(r.outcome.true_residual, std::abs(sum) / std::sqrt(static_cast<double>(n)), 1e-8);
}

TEST(a_skew_symmetric_matrix_is_a_breakdown_of_bicgstab) {
  const auto a = from_entries<double>(2, {{{0, 1}, 1.0}, {{1, 0}, -1.0}});
  const auto r = solved(a, {1.0, 0.0}, spec_of(kBicgstab, kNone), 1, 1);
  CHECK_EQ(r.outcome.reason, Reason::diverged_breakdown);
  CHECK_EQ(r.outcome.iterations, 0);
  CHECK_NEAR(r.outcome.true_residual, 1.0, 1e-15);
}

TEST(bicgstab_goes_on_where_a_sum_vanishes_once) {
  // shadow . v = 0 at the start: the step along the residual helps on.
  const auto a = from_entries<double>(3, {{{0, 1}, 1.0},
                                          {{1, 0}, -1.0},
                                          {{1, 1}, 0.5},
                                          {{2, 2}, 1.0},
                                          {{0, 2}, 1.0},
                                          {{2, 0}, 0.0},
                                          {{1, 2}, 0.0},
                                          {{2, 1}, 0.0}});
  const auto r = solved(a, {1.0, 0.0, 0.0}, spec_of(kBicgstab, kNone), 1, 1);
  CHECK(r.outcome.reason == Reason::converged_rtol ||
        r.outcome.reason == Reason::diverged_breakdown);
  if (r.outcome.reason == Reason::converged_rtol)
    CHECK(true_residual(a, {1.0, 0.0, 0.0}, r.x) <= 1e-8);
}

TEST(nan_is_named_at_once) {
  auto a = grid2d(8, 8);
  a.val[13] = NAN;
  for (const Method method : {kMinres, kBicgstab})
    for (const Preconditioner pc : {kNone, kJacobi}) {
      const auto r = solved(a, wave(a.n()), spec_of(method, pc));
      CHECK_EQ(r.outcome.reason, Reason::diverged_nanorinf);
      CHECK(r.outcome.iterations <= 2);
    }
}

TEST(preconditioners_that_do_not_suit_are_refused) {
  const auto a = grid2d(5, 5);
  for (const auto& [method, pc] : {std::pair{kMinres, Preconditioner::chebyshev},
                                   {kMinres, Preconditioner::amg},
                                   {kBicgstab, Preconditioner::chebyshev},
                                   {kBicgstab, Preconditioner::fsai},
                                   {kBicgstab, Preconditioner::amg}})
    CHECK_THROWS(InvalidInput, solved(a, wave(25), spec_of(method, pc)));
}

// What is said to have converged has: random systems, symmetric and not, some of them singular.
TEST(random_systems_are_not_said_to_be_solved_when_they_are_not) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  int converged = 0, wrong = 0;
  const int count = harness::shorter(400, 100);
  for (int k = 0; k < count; ++k) {
    const auto n = static_cast<std::int32_t>(2 + random() % 40);
    const bool symmetric = k % 2 == 0;
    Entries e;
    for (std::int32_t i = 0; i < n; ++i) {
      e[{i, i}] = k % 3 == 0 ? normal(random) : 3.0 * normal(random) + 2.0 * (k % 5);
      for (int m = 0; m < 3; ++m) {
        const auto j = static_cast<std::int32_t>(random() % static_cast<unsigned>(n));
        if (j == i) continue;
        e[{i, j}] = normal(random);
        e[{j, i}] = symmetric ? e[{i, j}] : normal(random);
      }
    }
    const auto a = from_entries<double>(n, e);
    std::vector<double> b;
    for (std::int32_t i = 0; i < n; ++i) b.push_back(normal(random));
    const auto r =
        solved(a, b, spec_of(symmetric ? kMinres : kBicgstab, k % 4 < 2 ? kNone : kJacobi), 2, 1);
    if (r.outcome.reason != Reason::converged_rtol) continue;
    ++converged;
    if (!(true_residual(a, b, r.x) <= 1.0001e-9 * norm(b))) ++wrong;
  }
  CHECK_EQ(wrong, 0);
  CHECK(converged > count / 2);
}
