#include "cpufree/solvers/eigenvalue.hpp"
#include "cpufree/solvers/monitor.hpp"
#include "cpufree/solvers/monitors.hpp"

#include "harness.hpp"

using namespace cpufree;

namespace {

SolveParams params_with(double rtol) {
  SolveParams p;
  p.rtol = rtol;
  p.maxiter = 100;
  p.roundoff = 1e-16;
  return p;
}

}  // namespace

TEST(small_initial_residual_needs_no_iteration) {
  const auto p = params_with(1e-2);
  Monitor m(p);
  m.begin(100.0, 0.005);
  CHECK_EQ(m.reason(), Reason::converged_rtol);
  CHECK_EQ(m.iterations(), 0);
}

TEST(absolute_tolerance_is_named) {
  const auto p = params_with(0.0);
  Monitor m(p);
  m.begin(100.0, 0.5, 1.0);
  CHECK_EQ(m.reason(), Reason::converged_atol);
}

TEST(residual_below_the_rule_is_verified_not_believed) {
  const auto p = params_with(1e-3);
  Monitor m(p);
  m.begin(1.0, 1.0);
  CHECK(m.judge(1e-4, 0, 1e-4) == Verdict::go_on);
  CHECK(m.judge(1e-7, 0, 1e-7) == Verdict::verify);
  CHECK(!m.done());
  m.verify(1e-7, false);
  CHECK_EQ(m.reason(), Reason::converged_rtol);
}

TEST(recurrence_that_lied_goes_on_from_the_true_residual) {
  const auto p = params_with(1e-3);
  Monitor m(p);
  m.begin(1.0, 1.0);
  m.judge(1e-7, 0, 1e-7);
  m.verify(1e-4, false);
  CHECK(!m.done());
  CHECK_NEAR(m.residual(), 1e-2, 1e-15);
}

TEST(true_residual_that_does_not_halve_three_times_is_stagnation) {
  const auto p = params_with(1e-3);
  Monitor m(p);
  m.begin(1.0, 1.0);
  m.judge(1e-7, 0, 1e-7);
  m.verify(1e-4, false);
  for (int k = 0; k < 3; ++k) {
    CHECK(!m.done());
    m.judge(1e-7, 0, 1e-7);
    m.verify(0.9e-4, false);
  }
  CHECK_EQ(m.reason(), Reason::stagnated);
}

TEST(recurrence_that_lied_is_asked_earlier_the_next_time) {
  const auto p = params_with(1e-6);
  Monitor m(p);
  m.begin(1.0, 1.0);
  m.judge(1e-13, 0, 1e-13);
  m.verify(1e-4, false);
  CHECK(m.judge(2e-6, 0, 2e-6) == Verdict::go_on);
  CHECK(m.judge(0.9e-6, 0, 0.9e-6) == Verdict::verify);
}

TEST(look_at_the_truth_that_confirms_the_recurrence_ends_nothing) {
  const auto p = params_with(1e-3);
  Monitor m(p);
  m.begin(1.0, 1.0);
  for (int k = 0; k < 20; ++k) {
    m.judge(0.99, 0, 0.99);
    m.verify(0.99, true);
  }
  CHECK(!m.done());
  CHECK_EQ(m.replacements(), 20);
}

TEST(zero_tolerance_is_verified_at_the_level_of_rounding) {
  const auto p = params_with(0.0);
  Monitor m(p);
  m.begin(1.0, 1.0);
  CHECK(m.judge(1e-30, 0, 1e-30) == Verdict::go_on);
  CHECK(m.judge(1e-33, 0, 1e-33) == Verdict::verify);
}

TEST(honest_near_miss_must_claim_more_the_next_time) {
  const auto p = params_with(1e-3);
  Monitor m(p);
  m.begin(1.0, 1.0);
  CHECK(m.judge(0.98e-6, 0, 0.98e-6) == Verdict::verify);
  CHECK(m.verify(1.1e-6, false));
  CHECK(!m.done());
  CHECK(m.judge(0.95e-6, 0, 0.95e-6) == Verdict::go_on);
  CHECK(m.judge(0.6e-6, 0, 0.6e-6) == Verdict::verify);
}

TEST(growth_from_the_level_of_rounding_is_not_believed) {
  const auto p = params_with(0.0);
  Monitor m(p);
  m.begin(1.0, 1.0);
  CHECK(m.judge(1e-30, 0, 1e-30) == Verdict::go_on);
  CHECK(m.judge(1e-27, 0, 1e-27) == Verdict::go_on);
  CHECK(m.judge(1e-25, 0, 1e-25) == Verdict::verify);
  CHECK(!m.verify(1e-25, false));
}

TEST(growth_that_the_preconditioner_does_not_see_is_no_divergence) {
  const auto p = params_with(1e-3);
  Monitor m(p);
  m.begin(1.0, 1.0);
  m.begin_measure(5.0);
  CHECK(m.judge(1e22, 0, 1.0) == Verdict::go_on);
  CHECK(m.needs_no_decision(1e25, 0));  // not asked again in every iteration
  CHECK(m.judge(1e27, 0, 1e18) == Verdict::go_on);
  CHECK(m.judge(1e40, 0, 6e20) == Verdict::stop);
  CHECK_EQ(m.reason(), Reason::diverged_dtol);
}

TEST(divergence_after_a_good_guess_is_that_after_none) {
  const auto p = params_with(1e-14);
  Monitor m(p);
  m.begin(1.0, 1e-20);
  m.begin_measure(1e-20);
  CHECK(m.judge(1e21, 0, 0.9e20) == Verdict::go_on);
  CHECK(m.judge(1e30, 0, 1.1e20) == Verdict::stop);
}

TEST(measure_is_that_of_the_first_start) {
  const auto p = params_with(1e-3);
  Monitor m(p);
  m.begin(1.0, 1.0);
  m.begin_measure(1.0);
  CHECK(m.judge(0.5, 0, 0.5) == Verdict::go_on);
  m.begin_measure(1e15);
  CHECK(m.judge(1e30, 0, 1e30) == Verdict::stop);
}

TEST(squares_that_will_underflow_or_have_overflowed_are_out_of_range) {
  const auto p = params_with(1e-6);
  Monitor m(p);
  m.begin(1.0, 1.0);  // squares shrink to 1e-12
  CHECK(m.in_range(1.0));
  CHECK(m.in_range(1e-295));
  CHECK(!m.in_range(1e-297));
  CHECK(!m.in_range(0.0));
  CHECK(m.in_range(1e300));
  CHECK(!m.in_range(INFINITY));
  CHECK(!m.in_range(NAN));
}

namespace {
// Iterations of pipecg in which the residual does not move, the gain of each so large.
bool stalls(int iterations, double gain, double last = 1.0, double square = 1e-4,
            bool guess = false) {
  auto p = params_with(1e-15);
  p.has_guess = guess;
  p.maxiter = 10000;
  Monitor m(p);
  m.begin(1.0, 1.0);
  m.note_gain(1.0);
  m.judge(square, 0, square);
  m.verify(square, true);  // the last time that it halved
  for (int k = 0; k < iterations; ++k) {
    const double now = k + 1 < iterations ? square : last * square;
    m.judge(now, 0, now);
    m.note_gain(gain);
  }
  return m.stalled(100);
}
}  // namespace

TEST(recurrences_stall_where_neither_residual_nor_x_moves) {
  CHECK(stalls(220, 1e-14));
  CHECK(!stalls(190, 1e-14));                   // too soon to tell
  CHECK(!stalls(220, 1e-4));                    // x moves
  CHECK(!stalls(220, 1e-14, 0.2));              // the residual has just halved
  CHECK(!stalls(220, 1e-14, 1.0, 1e-4, true));  // that x moved more before may be the guess's fault
  CHECK(stalls(120, 1e-14, 1.0, 1e-28));        // sooner at the level of rounding errors
  CHECK(!stalls(90, 1e-14, 1.0, 1e-28));
}

namespace {
// Iterations on a number of rows, each of which shrinks the square of the residual by
// `factor`; asked once before, at the last but 50.
bool late(int iterations, double rows, double factor) {
  auto p = params_with(1e-8);
  p.maxiter = 10000;
  Monitor m(p);
  m.begin(1.0, 1.0, 0.0, rows);
  double square = 1.0;
  bool answer = false;
  for (int k = 1; k <= iterations; ++k) {
    square *= factor;
    m.judge(square, 0, square);
    if (k == iterations - 50 || k == iterations) answer = m.runs_late();
  }
  return answer;
}
}  // namespace

TEST(recurrences_run_late_where_the_rate_asks_for_three_times_as_many_iterations_as_rows) {
  const double slow = std::pow(10.0, -16.0 / 1000.0);  // 1000 iterations to the rule
  CHECK(late(100, 100.0, slow));
  CHECK(late(320, 320.0, slow));
  CHECK(!late(350, 350.0, slow));                           // it will be in time
  CHECK(!late(100, 120.0, slow));                           // too soon to tell
  CHECK(!late(100, 100.0, std::pow(10.0, -16.0 / 150.0)));  // nearly there
  CHECK(late(100, 100.0, 1.0));                             // no rate at all
  CHECK(!late(100, 1e6, 1.0001));                           // of many rows a residual may grow
}

TEST(last_iteration_is_named) {
  auto p = params_with(1e-9);
  p.maxiter = 2;
  Monitor m(p);
  m.begin(1.0, 1.0);
  CHECK(m.judge(0.5, 0, 0.5) == Verdict::go_on);
  CHECK(m.judge(0.5, 0, 0.5) == Verdict::stop);
  CHECK_EQ(m.reason(), Reason::diverged_its);
}

TEST(convergence_in_the_last_iteration_counts) {
  auto p = params_with(1e-3);
  p.maxiter = 1;
  Monitor m(p);
  m.begin(1.0, 1.0);
  CHECK(m.judge(1e-8, 0, 1e-8) == Verdict::verify);
  m.verify(1e-8, false);
  CHECK_EQ(m.reason(), Reason::converged_rtol);
}

TEST(nan_explosion_notes_are_named) {
  const auto p = params_with(1e-3);
  const auto reason = [&](double rr, unsigned notes) {
    Monitor m(p);
    m.begin(1.0, 1.0);
    m.judge(rr, notes, rr);
    return m.reason();
  };
  CHECK_EQ(reason(NAN, 0), Reason::diverged_nanorinf);
  CHECK_EQ(reason(INFINITY, 0), Reason::diverged_nanorinf);
  CHECK_EQ(reason(1e22, 0), Reason::diverged_dtol);
  CHECK_EQ(reason(1.0, kNoteTimeLimit), Reason::time_limit);
  CHECK_EQ(reason(1.0, kNoteInterrupt), Reason::interrupted);
}

TEST(history_keeps_every_iteration_while_there_is_room) {
  double values[10];
  History h(values, 10);
  for (int i = 0; i < 10; ++i) h.add(i, 100.0 + i);
  CHECK_EQ(h.count(), 10);
  CHECK_EQ(h.stride(), 1);
  CHECK_EQ(values[9], 109.0);
}

TEST(full_history_drops_every_other_value_and_stays_evenly_spaced) {
  for (const int capacity : {2, 3, 7, 8}) {
    std::vector<double> values(static_cast<std::size_t>(capacity));
    History h(values.data(), capacity);
    for (int i = 0; i < 1000; ++i) h.add(i, i);
    CHECK(h.count() <= capacity);
    CHECK(h.count() > capacity / 2 - 1);
    for (std::int64_t k = 0; k < h.count(); ++k)
      CHECK_EQ(values[static_cast<std::size_t>(k)], static_cast<double>(k * h.stride()));
    CHECK(h.stride() * (h.count() + 1) >= 999);
  }
}

TEST(largest_eigenvalue_of_the_second_difference_matrix) {
  const int n = 12;
  double diagonal[n];
  double squares[n];
  for (int k = 0; k < n; ++k) diagonal[k] = 2.0, squares[k] = 1.0;
  const double pi = std::acos(-1.0);
  CHECK_NEAR(largest_eigenvalue(diagonal, squares, n, 4.0), 2.0 + 2.0 * std::cos(pi / (n + 1)),
             1e-12);
}
