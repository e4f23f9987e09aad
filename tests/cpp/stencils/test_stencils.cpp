// Jacobi stencils on threads: bit for bit what the reference computes, however they are divided.
#include <cmath>
#include <limits>
#include <numbers>
#include <thread>

#include "cpufree/base/error.hpp"
#include "harness.hpp"
#include "stencil_rig.hpp"

using namespace stencil_rig;

namespace {

constexpr int kFewer = harness::shorter(1, 12);

std::vector<Grid> awkward(int dims) {
  std::vector<Grid> grids;
  for (unsigned periodic = 0; periodic < (dims == 2 ? 4U : 8U); ++periodic) {
    const bool y = (periodic & 1U) != 0, x = (periodic & 2U) != 0;
    if (dims == 2)
      for (const auto& [ny, nx] : {std::pair{3, 3}, {1, 7}, {8, 2}, {13, 9}, {31, 17}})
        grids.push_back(grid2d(ny, nx, y, x));
    else
      for (const auto& [nz, ny, nx] : {std::tuple{3, 3, 3}, {1, 5, 2}, {7, 9, 11}, {16, 5, 13}})
        grids.push_back(grid3d(nz, ny, nx, periodic));
  }
  return grids;
}

// Every `stride`-th division of all awkward grids against the reference.
template <class T>
void check_against_reference(int dims, int stride) {
  int wrong = 0, cases = 0, divided = 0;
  for (const Grid& grid : awkward(dims)) {
    Case<T> c(grid, 13, cases % 2 == 0);
    const auto expected = c.expected(13);
    for (const int pes : {1, 2, 3, 5})
      for (const int blocks : {1, 2, 3})
        for (const int layers : {1, 2, 3, 5})
          for (const int halo : {0, 1}) {
            if (++cases % (stride * kFewer) != 0) continue;
            c.spec.pes = pes;
            c.spec.blocks = blocks;
            c.spec.layers = layers;
            c.spec.halo = halo;
            c.spec.thickness = 1 + cases % 3;
            c.run.check_every = 1 + cases % 6;
            c.out.assign(c.out.size(), std::numeric_limits<T>::quiet_NaN());
            const auto result = c.go();
            wrong += same_bits(c.out, expected) ? 0 : 1;
            divided += result.plan.pes * result.plan.blocks > 1 ? 1 : 0;
          }
  }
  CHECK_EQ(wrong, 0);
  CHECK(divided * 2 * stride * kFewer > cases);  // most are divided at all
}

}  // namespace

TEST(two_dimensions_in_double_equal_the_reference) { check_against_reference<double>(2, 3); }
TEST(two_dimensions_in_float_equal_the_reference) { check_against_reference<float>(2, 7); }
TEST(three_dimensions_in_double_equal_the_reference) { check_against_reference<double>(3, 5); }
TEST(three_dimensions_in_float_equal_the_reference) { check_against_reference<float>(3, 11); }

TEST(reference_computes_what_a_hand_does) {
  const Grid g = grid2d(3, 3);
  const std::vector<double> u{1, 2, 3, 4, 100, 6, 7, 8, 9};
  CHECK_EQ(reference::jacobi<double>(u, nullptr, g, 1)[4], (2.0 + 8.0 + 4.0 + 6.0) / 4.0);
  const std::vector<double> f{0, 0, 0, 0, 4, 0, 0, 0, 0};
  CHECK_EQ(reference::jacobi<double>(u, f.data(), g, 1)[4], 6.0);
  CHECK_EQ(reference::jacobi<double>(u, nullptr, grid2d(3, 3, true, true), 1)[0],
           (7.0 + 4.0 + 3.0 + 2.0) / 4.0);
}

TEST(larger_grid_with_a_model_of_its_own_equals_the_reference) {
  Case<float> c(grid2d(300, 517), 40);
  c.spec.pes = 2;
  const auto result = c.go();
  CHECK(result.plan.layers > 1);
  CHECK(same_bits(c.out, c.expected(40)));
}

TEST(start_may_be_where_the_result_goes) {
  Case<double> c(grid2d(20, 20, true, false), 9);
  c.spec.pes = 1;
  c.spec.blocks = 1;
  const auto expected = c.expected(9);
  const StencilProblem<double> in_place{c.grid, c.start, {}, c.start};
  static_cast<void>(run_stencil<double>(in_place, c.spec, c.run, {}));
  CHECK(same_bits(c.start, expected));
}

TEST(grids_without_points_to_update_keep_their_values) {
  for (const Grid& grid :
       {grid2d(2, 9), grid2d(1, 1), grid3d(5, 2, 5), grid2d(2, 4, false, true)}) {
    Case<double> c(grid, 10);
    c.spec.pes = 3;
    const auto result = c.go();
    CHECK(same_bits(c.out, c.start));
    CHECK_EQ(result.outcome.iterations, 10);
  }
}

TEST(no_iterations_give_the_first_values) {
  Case<float> c(grid3d(5, 6, 7), 0);
  CHECK_EQ(c.go().outcome.iterations, 0);
  CHECK(same_bits(c.out, c.start));
}

// --- Stopping ---

TEST(tolerance_stops_all_divisions_at_the_same_iteration) {
  Case<double> c(grid2d(12, 14), 100000);
  c.run.tolerance = 1e-6;
  c.run.check_every = 7;
  c.spec.blocks = 1;
  const auto one = c.go();
  const auto expected = c.out;
  CHECK(one.outcome.reason == StencilReason::converged);
  CHECK_EQ(one.outcome.iterations % 7, 0);
  CHECK(same_bits(expected, c.expected(one.outcome.iterations)));
  for (const int pes : {2, 3, 4})
    for (const int layers : {1, 2, 3}) {
      c.spec.pes = pes;
      c.spec.blocks = 2;
      c.spec.layers = layers;
      const auto result = c.go();
      CHECK_EQ(result.outcome.iterations, one.outcome.iterations);
      CHECK_EQ(result.update, one.update);
      CHECK(same_bits(c.out, expected));
    }
}

TEST(converged_means_that_no_point_changed_by_more_than_the_tolerance) {
  Case<double> c(grid3d(9, 8, 7), 100000);
  c.run.tolerance = 1e-5;
  c.run.check_every = 1;
  const auto result = c.go();
  const auto before = c.expected(result.outcome.iterations - 1);
  const auto earlier = c.expected(result.outcome.iterations - 2);
  double last = 0.0, last_but_one = 0.0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    last = std::max(last, std::abs(c.out[i] - before[i]));
    last_but_one = std::max(last_but_one, std::abs(before[i] - earlier[i]));
  }
  CHECK_EQ(result.update, last);
  CHECK(last <= 1e-5);
  CHECK(last_but_one > 1e-5);
}

TEST(tolerance_that_is_not_met_has_a_name) {
  Case<double> c(grid2d(30, 30), 25);
  c.run.tolerance = 1e-12;
  const auto result = c.go();
  CHECK(result.outcome.reason == StencilReason::not_converged);
  CHECK_EQ(result.outcome.iterations, 25);
  CHECK(result.update > 1e-12);
}

TEST(values_beyond_their_type_are_not_called_done) {
  Case<float> c(grid2d(20, 20), 30);
  c.start.assign(c.start.size(), 3e38F);
  CHECK(c.go().outcome.reason == StencilReason::not_finite);
}

TEST(values_beyond_their_type_end_runs_with_a_tolerance) {
  Case<float> c(grid2d(20, 20), 100000);
  c.start.assign(c.start.size(), 3e38F);
  c.run.tolerance = 0.0;
  c.run.check_every = 5;
  const auto result = c.go();
  CHECK(result.outcome.reason == StencilReason::not_finite);
  CHECK(result.outcome.iterations <= 10);
}

TEST(changes_whose_squares_overflow_are_none_of_that) {
  Case<double> c(grid2d(20, 20), 30);
  for (std::size_t i = 0; i < c.start.size(); ++i) c.start[i] = i % 3 == 0 ? 1e200 : -1e200;
  c.run.tolerance = 0.0;
  c.run.check_every = 5;
  CHECK(c.go().outcome.reason == StencilReason::not_converged);
}

TEST(overflow_shows_in_the_update) {
  Case<float> c(grid2d(6, 6), 3);
  c.start.assign(c.start.size(), std::numeric_limits<float>::max());
  CHECK(!std::isfinite(c.go().update));
}

TEST(progress_may_stop_a_run_and_the_values_are_those_of_that_iteration) {
  for (const double tolerance : {-1.0, 0.0})
    for (const int pes : {1, 3}) {
      if (pes < harness::shorter(1, 3)) continue;
      const std::int32_t side = harness::shorter(500, 150);
      Case<float> c(grid2d(side, side), std::int64_t{1} << 40);
      c.run.tolerance = tolerance;
      c.spec.pes = pes;
      c.spec.blocks = 1;
      c.spec.layers = 2;
      int calls = 0;
      const auto result = c.go([&](std::int64_t, double) { return ++calls < 2; });
      CHECK(result.outcome.reason == StencilReason::interrupted);
      CHECK(result.outcome.iterations > 0);
      CHECK(calls >= 2);
      if (result.outcome.iterations < harness::shorter(2000, 100))
        CHECK(same_bits(c.out, c.expected(result.outcome.iterations)));
    }
}

TEST(time_limit_stops_a_run) {
  Case<float> c(grid2d(100, 100), std::int64_t{1} << 40);
  c.spec.pes = 2;
  c.run.limits.time_limit = 0.05;
  CHECK(c.go().outcome.reason == StencilReason::time_limit);
}

// --- The mathematics ---

// Jacobi to convergence on -laplace(u) = f with u the product of the sines of pi x, one for each
// axis: the error falls with h^2. Returns the largest error.
double poisson_error(int dims, int cells) {
  using std::numbers::pi;
  const double h = 1.0 / cells;
  const std::int32_t n = cells + 1;
  Case<double> c(dims == 2 ? grid2d(n, n) : grid3d(n, n, n), 200000, true);
  std::vector<double> exact(c.start.size(), 1.0);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    std::size_t rest = i;
    for (int axis = 0; axis < dims; ++axis, rest /= at(n))
      exact[i] *= std::sin(pi * h * static_cast<double>(rest % at(n)));
    c.start[i] = 0.0;
    c.source[i] = h * h * dims * pi * pi * exact[i];
  }
  c.run.tolerance = 1e-12;
  c.spec.pes = 2;
  c.spec.blocks = 1;
  CHECK(c.go().outcome.reason == StencilReason::converged);
  double error = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    error = std::max(error, std::abs(c.out[i] - exact[i]));
  return error;
}

TEST(poisson_equation_in_two_dimensions_converges_with_order_two) {
  const double coarse = poisson_error(2, 8), middle = poisson_error(2, 16);
  const double fine = poisson_error(2, 32);
  CHECK_NEAR(std::log2(coarse / middle), 2.0, 0.1);
  CHECK_NEAR(std::log2(middle / fine), 2.0, 0.1);
}

TEST(poisson_equation_in_three_dimensions_converges_with_order_two) {
  const double coarse = poisson_error(3, 6), middle = poisson_error(3, 12);
  CHECK_NEAR(std::log2(coarse / middle), 2.0, 0.1);
  if (const int cells = harness::shorter(24, 0))
    CHECK_NEAR(std::log2(middle / poisson_error(3, cells)), 2.0, 0.1);
}

TEST(periodic_sweeps_keep_the_sum) {
  Case<double> c(grid3d(8, 6, 10, 7), 50);
  c.spec.pes = 2;
  static_cast<void>(c.go());
  double before = 0.0, after = 0.0;
  for (std::size_t i = 0; i < c.out.size(); ++i) before += c.start[i], after += c.out[i];
  CHECK_NEAR(after, before, 1e-11);
}

// --- Wrong input ---

TEST(wrong_options_are_refused) {
  Case<double> c(grid2d(9, 9), 5);
  const auto refused = [&](auto change) {
    Case<double> wrong = c;
    change(wrong);
    CHECK_THROWS(InvalidInput, wrong.go());
  };
  refused([](auto& w) { w.run.iterations = -1; });
  refused([](auto& w) { w.spec.pes = 0; });
  refused([](auto& w) { w.spec.layers = 65; });
  refused([](auto& w) { w.run.tolerance = std::numeric_limits<double>::quiet_NaN(); });
  refused([](auto& w) { w.run.check_every = -3; });
  refused([](auto& w) { w.run.limits.wait_limit = 0.0; });
  refused([](auto& w) { w.start.pop_back(); });
  refused([](auto& w) { w.out.pop_back(); });
  refused([](auto& w) { w.source.push_back(1.0); });
}

TEST(gpus_are_refused_with_a_reason) {
  Case<double> c(grid2d(9, 9), 5);
  c.spec.engine = Engine::cuda_p2p;
  CHECK_THROWS(Unsupported, c.go());
}

TEST(studies_exchange_as_often_and_leave_something_out) {
  for (const Grid& grid : {grid2d(40, 30, true, false), grid3d(12, 9, 11)}) {
    Case<double> c(grid, 6);
    c.spec.pes = 2;
    c.spec.blocks = 2;
    c.run.check_every = 2;
    const StencilResult normal = c.go();
    c.spec.study = Study::no_compute;
    const StencilResult silent = c.go();
    CHECK_EQ(silent.outcome.exchanges, normal.outcome.exchanges);
    CHECK_EQ(silent.outcome.checks, normal.outcome.checks);
    CHECK(same_bits(c.out, c.start));
    c.spec.study = Study::no_comm;
    CHECK_EQ(c.go().outcome.exchanges, normal.outcome.exchanges);
    CHECK(!same_bits(c.out, c.expected(6)));
    c.spec.pes = 1;
    c.go();
    CHECK(same_bits(c.out, c.expected(6)));
  }
}

TEST(studies_that_would_not_end_or_are_not_there_are_refused) {
  Case<double> c(grid2d(9, 9), 6);
  c.spec.study = Study::no_compute;
  c.run.tolerance = 0.1;
  CHECK_THROWS(InvalidInput, c.go());
  c.run.tolerance = -1.0;
  c.spec.study = Study::split;
  CHECK_THROWS(Unsupported, c.go());
  Case<double> sourced(grid2d(9, 9), 6, true);
  sourced.spec.study = Study::no_comm;
  CHECK_THROWS(Unsupported, sourced.go());
}
