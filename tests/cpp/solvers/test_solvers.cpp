// The solver kernels on the CPU engine, against the serial reference and against mathematics.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "cpufree/reference/cg.hpp"
#include "cpufree/reference/pipelined_cg.hpp"
#include "cpufree/reference/prcg.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "solves.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_solves;

namespace {

const std::vector<std::pair<int, int>> kShapes = {{1, 1}, {1, 3}, {2, 1}, {3, 2}, {8, 4}};

Reason reason_of(const Matrix<double>& a, const std::vector<double>& b, SolveSpec spec,
                 int pes = 2) {
  return system_of(a, pes, 2)->solve(b, {}, spec, {}).outcome.reason;
}

}  // namespace

TEST(every_method_and_preconditioner_solves_on_every_shape) {
  const auto a = irregular(120, 3);
  const auto b = wave(a.n());
  for (const auto& [pes, blocks] : kShapes) {
    const auto system = system_of(a, pes, blocks);
    for (const Method method : kMethods)
      for (const Preconditioner pc : kPreconditioners) {
        const auto r = system->solve(b, {}, spec_of(method, pc), {});
        CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
        CHECK(true_residual(a, b, r.x) <= 1e-9 * norm(b) * 1.01);
        CHECK_NEAR(r.outcome.true_residual, true_residual(a, b, r.x), 1e-12 * norm(b));
      }
  }
}

TEST(single_precision_solves) {
  const auto a = grid2d<float>(20, 20, 0.1);
  const auto b = wave<float>(a.n());
  for (const Method method : kMethods) {
    const auto r =
        system_of(a, 3, 2)->solve(b, {}, spec_of(method, Preconditioner::jacobi, 1e-5), {});
    CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
    CHECK(true_residual(a, b, r.x) <= 1.1e-5 * r.outcome.bnorm);
  }
}

TEST(iterations_are_those_of_hestenes_and_stiefel) {
  const auto a = grid2d(40, 37);
  const auto b = wave(a.n());
  const auto expected = reference::cg(a.view(), b, 1e-8, 5000);
  for (const Method method : kMethods) {
    const auto r =
        system_of(a, 3, 2)->solve(b, {}, spec_of(method, Preconditioner::jacobi, 1e-8), {});
    const double slack = method == Method::pipecg ? 0.20 : 0.02;
    CHECK_NEAR(static_cast<double>(r.outcome.iterations), static_cast<double>(expected.iterations),
               1.0 + slack * static_cast<double>(expected.iterations));
    const auto difference = reference::axpy(r.x, -1.0, expected.x);
    CHECK(norm(difference) <= 1e-5 * norm(expected.x));
  }
}

TEST(reference_methods_agree_with_each_other) {
  const auto a = grid2d(15, 11);
  const auto b = wave(a.n());
  const auto plain = reference::cg(a.view(), b, 1e-10, 1000);
  const auto pipelined = reference::pipelined_cg(a.view(), b, 1e-10, 1000);
  CHECK(norm(reference::axpy(plain.x, -1.0, pipelined.x)) <= 1e-8 * norm(plain.x));
  const auto predicted = reference::prcg(a.view(), b, 1e-10, 1000);
  CHECK(norm(reference::axpy(plain.x, -1.0, predicted.x)) <= 1e-8 * norm(plain.x));
  CHECK(std::abs(plain.iterations - predicted.iterations) <= 2);
  CHECK(true_residual(a, b, plain.x) <= 1e-9 * norm(b));
}

TEST(reference_solves_a_system_worked_by_hand) {
  const auto a =
      from_entries<double>(2, {{{0, 0}, 4.0}, {{0, 1}, 1.0}, {{1, 0}, 1.0}, {{1, 1}, 3.0}});
  const auto s = reference::cg(a.view(), {1.0, 2.0}, 1e-14, 10);
  CHECK_NEAR(s.x[0], 1.0 / 11.0, 1e-14);
  CHECK_NEAR(s.x[1], 7.0 / 11.0, 1e-14);
  CHECK_EQ(s.iterations, 2);
}

TEST(attainable_accuracy_is_that_of_hestenes_and_stiefel) {
  const auto a = grid2d(30, 30);
  const auto b = wave(a.n());
  const auto best = reference::cg(a.view(), b, 0.0, 400);
  const double attainable = true_residual(a, b, best.x);
  for (const Method method : kMethods)
    for (const Preconditioner pc : {Preconditioner::jacobi, Preconditioner::chebyshev}) {
      const auto r = system_of(a, 2, 2)->solve(b, {}, spec_of(method, pc, 0.0), {});
      CHECK_EQ(r.outcome.reason, Reason::stagnated);
      CHECK(true_residual(a, b, r.x) <= 10.0 * attainable);
    }
}

TEST(numbers_of_pes_agree_to_rounding) {
  const auto a = irregular(200, 17);
  const auto b = wave(a.n());
  const auto one =
      system_of(a, 1, 1)->solve(b, {}, spec_of(Method::prcg, Preconditioner::jacobi, 1e-12), {});
  for (const int pes : {2, 3, 8}) {
    const auto r = system_of(a, pes, 2)->solve(
        b, {}, spec_of(Method::prcg, Preconditioner::jacobi, 1e-12), {});
    CHECK(norm(reference::axpy(r.x, -1.0, one.x)) <= 1e-10 * norm(one.x));
  }
}

TEST(step_that_overflows_is_a_breakdown) {
  const auto a = from_entries<double>(1, {{{0, 0}, 1e-320}});
  for (const Method method : {Method::cg, Method::prcg})
    CHECK_EQ(reason_of(a, {1.0}, spec_of(method, Preconditioner::none)),
             Reason::diverged_breakdown);
}

TEST(repeated_solves_are_bitwise_the_same) {
  const auto a = irregular(150, 19);
  const auto b = wave(a.n());
  for (const Method method : kMethods) {
    const auto system = system_of(a, 3, 2);
    const auto spec = spec_of(method, Preconditioner::jacobi);
    const auto first = system->solve(b, {}, spec, {});
    for (int k = 0; k < harness::shorter(50, 12); ++k) {
      const auto again = system->solve(b, {}, spec, {});
      CHECK(std::memcmp(again.x.data(), first.x.data(), first.x.size() * sizeof(double)) == 0);
    }
  }
}

TEST(history_starts_with_the_initial_residual_and_ends_with_the_last) {
  const auto a = grid2d(12, 12);
  const auto b = wave(a.n());
  for (const Method method : kMethods) {
    const auto r = system_of(a, 2, 1)->solve(b, {}, spec_of(method, Preconditioner::jacobi), {});
    CHECK_EQ(static_cast<std::int64_t>(r.history.size()), r.outcome.iterations + 1);
    CHECK_NEAR(r.history.front(), norm(b), 1e-12 * norm(b));
    CHECK(r.history.back() <= 1e-9 * norm(b));
  }
}

TEST(guess_is_used) {
  const auto a = grid2d(15, 15);
  const auto b = wave(a.n());
  const auto spec = spec_of(Method::prcg, Preconditioner::jacobi);
  const auto system = system_of(a, 2, 2);
  const auto cold = system->solve(b, {}, spec, {});
  const auto warm = system->solve(b, cold.x, spec, {});
  CHECK_EQ(warm.outcome.iterations, 0);
  CHECK_EQ(warm.outcome.reason, Reason::converged_rtol);
  CHECK(std::ranges::equal(warm.x, cold.x));
}

TEST(tiny_and_huge_right_hand_sides_take_the_same_iterations) {
  const auto a = grid2d(12, 12);
  const auto b = wave(a.n());
  const auto system = system_of(a, 2, 2);
  const auto spec = spec_of(Method::prcg, Preconditioner::jacobi);
  const auto plain = system->solve(b, {}, spec, {});
  for (const int exponent : {-900, -40, 40, 900}) {
    auto scaled = b;
    for (double& value : scaled) value = std::ldexp(value, exponent);
    const auto r = system->solve(scaled, {}, spec, {});
    CHECK_EQ(r.outcome.reason, Reason::converged_rtol);
    CHECK_EQ(r.outcome.iterations, plain.outcome.iterations);
    for (std::size_t i = 0; i < b.size(); ++i) CHECK_EQ(r.x[i], std::ldexp(plain.x[i], exponent));
    CHECK_EQ(r.outcome.bnorm, std::ldexp(plain.outcome.bnorm, exponent));
    CHECK_EQ(r.history.back(), std::ldexp(plain.history.back(), exponent));
  }
}

TEST(zero_right_hand_side_gives_zero_whatever_the_guess) {
  const auto a = grid2d(5, 5);
  const std::vector<double> zero(25, 0.0);
  for (const Method method : kMethods) {
    const auto r =
        system_of(a, 2, 1)->solve(zero, wave(25), spec_of(method, Preconditioner::jacobi), {});
    CHECK_EQ(r.outcome.reason, Reason::converged_atol);
    CHECK(std::ranges::equal(r.x, zero));
    CHECK_EQ(r.outcome.true_residual, 0.0);
  }
}

TEST(one_row_is_solved_in_one_iteration) {
  const auto a = from_entries<double>(1, {{{0, 0}, 4.0}});
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners) {
      const auto r =
          system_of(a, 3, 2)->solve(std::vector{8.0}, {}, spec_of(method, pc, 1e-12), {});
      CHECK(r.outcome.reason == Reason::converged_rtol);
      CHECK_NEAR(r.x[0], 2.0, 1e-12);
      if (pc != Preconditioner::chebyshev) CHECK_EQ(r.outcome.iterations, 1);
    }
}

TEST(diagonal_system_with_zero_tolerance_ends) {
  const auto a = from_entries<double>(3, {{{0, 0}, 1.0}, {{1, 1}, 2.0}, {{2, 2}, 4.0}});
  for (const Method method : kMethods) {
    const auto r = system_of(a, 2, 1)->solve(std::vector{1.0, 1.0, 1.0}, {},
                                             spec_of(method, Preconditioner::jacobi, 0.0), {});
    CHECK(r.outcome.reason == Reason::converged_rtol || r.outcome.reason == Reason::stagnated);
    CHECK_NEAR(r.x[2], 0.25, 1e-15);
  }
}

TEST(maxiter_is_kept_and_its_residual_is_true) {
  const auto a = grid2d(20, 20);
  const auto b = wave(a.n());
  for (const Method method : kMethods)
    for (const std::int64_t maxiter : {0, 1, 7}) {
      auto spec = spec_of(method, Preconditioner::jacobi);
      spec.maxiter = maxiter;
      const auto r = system_of(a, 2, 2)->solve(b, {}, spec, {});
      CHECK_EQ(r.outcome.reason, Reason::diverged_its);
      CHECK_EQ(r.outcome.iterations, maxiter);
      CHECK_NEAR(r.outcome.true_residual, true_residual(a, b, r.x), 1e-10 * norm(b));
    }
}

TEST(nan_in_the_matrix_is_named_within_two_iterations) {
  auto a = grid2d(8, 8);
  a.val[13] = NAN;
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners) {
      const auto o = system_of(a, 2, 2)->solve(wave(a.n()), {}, spec_of(method, pc), {}).outcome;
      CHECK_EQ(o.reason, Reason::diverged_nanorinf);
      CHECK(o.iterations <= 2);
    }
}

TEST(nan_of_one_solve_does_not_reach_the_next) {
  // Entries of 1e200 overflow in p . A p after the vectors are full of infinities.
  const auto a = from_entries<double>(
      3, {{{0, 0}, 1e200}, {{1, 1}, 1.0}, {{2, 2}, 1e-200}, {{0, 1}, 1e-3}, {{1, 0}, 1e-3}});
  const auto system = system_of(a, 1, 1);
  const std::vector<double> bad{1.0, NAN, 1.0};
  const std::vector<double> wild{1e150, 1.0, 1e150};
  const std::vector<double> good{0.0, 1.0, 0.0};
  for (const Method method : kMethods) {
    const auto spec = spec_of(method, Preconditioner::none, 1e-6);
    CHECK_EQ(system->solve(bad, {}, spec, {}).outcome.reason, Reason::diverged_nanorinf);
    static_cast<void>(system->solve(wild, {}, spec, {}));
    const auto again = system->solve(good, {}, spec, {});
    const auto fresh = system_of(a, 1, 1)->solve(good, {}, spec, {});
    CHECK_EQ(again.outcome.reason, fresh.outcome.reason);
    CHECK_EQ(again.outcome.iterations, fresh.outcome.iterations);
  }
}

TEST(indefinite_matrix_is_named) {
  const auto a = grid2d(10, 10, -1.0);  // eigenvalues of both signs, positive diagonal
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners) {
      const Reason reason = reason_of(a, wave(a.n()), spec_of(method, pc));
      CHECK(reason == Reason::diverged_indefinite_mat ||
            (pc == Preconditioner::chebyshev && reason == Reason::diverged_indefinite_pc));
    }
}

TEST(negative_definite_matrix_is_named_at_once) {
  auto a = grid2d(10, 10);
  for (double& v : a.val) v = -v;
  for (const Method method : kMethods)
    for (const Preconditioner pc : {Preconditioner::none, Preconditioner::jacobi}) {
      const auto r = system_of(a, 2, 2)->solve(wave(a.n()), {}, spec_of(method, pc), {});
      CHECK_EQ(r.outcome.reason, Reason::diverged_indefinite_mat);
      CHECK_EQ(r.outcome.iterations, 0);
    }
}

TEST(pipecg_replaces_its_residual_on_schedule) {
  const auto a = grid2d(40, 40);
  auto spec = spec_of(Method::pipecg, Preconditioner::jacobi);
  const auto system = system_of(a, 2, 1);
  spec.replace_every = 0;
  const auto never = system->solve(wave(a.n()), {}, spec, {}).outcome;
  CHECK_EQ(never.replacements, 0);
  for (const int every : {5, 10}) {
    spec.replace_every = every;
    const auto o = system->solve(wave(a.n()), {}, spec, {}).outcome;
    CHECK_EQ(o.replacements, (o.iterations - 1) / every);
    CHECK_NEAR(static_cast<double>(o.iterations), static_cast<double>(never.iterations), 2.0);
  }
}

TEST(zero_tolerance_on_tiny_systems_keeps_a_good_answer) {
  const auto a =
      from_entries<double>(2, {{{0, 0}, 3.0}, {{0, 1}, 1.0}, {{1, 0}, 1.0}, {{1, 1}, 2.0}});
  const auto one = from_entries<double>(1, {{{0, 0}, 3.0}});
  for (const Method method : kMethods)
    for (const Preconditioner pc : kPreconditioners)
      for (const double rtol : {0.0, 1e-16}) {
        auto spec = spec_of(method, pc, rtol);
        const auto two = system_of(a, 1, 1)->solve(std::vector{1.0, 0.7}, {}, spec, {});
        CHECK(two.outcome.true_residual <= 1e-12);
        const auto single = system_of(one, 1, 1)->solve(std::vector{0.7}, {}, spec, {});
        CHECK(single.outcome.true_residual <= 1e-12);
      }
}

TEST(lambda_is_estimated_below_a_loose_bound) {
  // Arrow matrix: the row-sum bound of D^-1 A is far above its spectrum.
  Entries e;
  const std::int32_t n = 60;
  for (std::int32_t i = 0; i < n; ++i) e[{i, i}] = 1.0;
  for (std::int32_t i = 1; i < n; ++i) e[{0, i}] = e[{i, 0}] = 0.1;
  const auto a = from_entries<double>(n, e);
  const double exact = 1.0 + 0.1 * std::sqrt(n - 1.0);
  const auto o = system_of(a, 2, 1)
                     ->solve(wave(n), {}, spec_of(Method::cg, Preconditioner::chebyshev), {})
                     .outcome;
  CHECK(o.lambda_max > exact && o.lambda_max < 1.06 * exact);
}

TEST(chebyshev_needs_fewer_iterations_than_jacobi) {
  const auto a = grid2d(40, 40);
  const auto b = wave(a.n());
  const auto system = system_of(a, 2, 2);
  const auto jacobi = system->solve(b, {}, spec_of(Method::prcg, Preconditioner::jacobi), {});
  const auto chebyshev = system->solve(b, {}, spec_of(Method::prcg, Preconditioner::chebyshev), {});
  CHECK(2 * chebyshev.outcome.iterations < jacobi.outcome.iterations);
  CHECK(chebyshev.outcome.lambda_max > 1.9 && chebyshev.outcome.lambda_max <= 2.0);
}

TEST(reductions_per_iteration_are_as_promised) {
  const auto a = grid2d(30, 30);
  const auto b = wave(a.n());
  const auto system = system_of(a, 2, 2);
  const auto per_iteration = [&](Method method) {
    auto spec = spec_of(method, Preconditioner::jacobi, 1e-14);
    spec.maxiter = 40;
    spec.replace_every = 0;
    const auto o = system->solve(b, {}, spec, {}).outcome;
    return static_cast<double>(o.reductions) / static_cast<double>(o.iterations);
  };
  CHECK_NEAR(per_iteration(Method::cg), 2.0, 0.15);
  CHECK_NEAR(per_iteration(Method::prcg), 1.0, 0.15);
  CHECK_NEAR(per_iteration(Method::pipecg), 1.0, 0.15);
}

TEST(huge_time_limit_is_no_time_limit) {
  const auto a = grid2d(8, 8);
  auto spec = spec_of(Method::prcg, Preconditioner::jacobi);
  spec.time_limit = 1e300;
  CHECK_EQ(reason_of(a, wave(a.n()), spec), Reason::converged_rtol);
}
