// The kernel for several right-hand sides under random schedules and weak memory.
#include <algorithm>
#include <cmath>

#include "columns_rig.hpp"
#include "harness.hpp"

using namespace testing_rig;
using namespace testing_matrices;
using cpu_fibers::Fault;

namespace {

constexpr int kSchedules = 200;

SolveParams few_iterations() {
  SolveParams p;
  p.rtol = 1e-14;
  p.maxiter = 5;
  p.roundoff = 1e-16;
  p.history_capacity = 8;
  return p;
}

// Right-hand sides of different difficulty: the second one is 0, the third is met at once.
template <int K>
std::vector<std::vector<double>> right_hand_sides(const Matrix<double>& a) {
  std::vector<std::vector<double>> all;
  for (int k = 0; k < K; ++k) {
    auto b = wave(a.n());
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = k == 1 ? 0.0 : b[i] * std::cos(0.7 * k * static_cast<double>(i));
    all.push_back(b);
  }
  return all;
}

// Every column of every schedule ends with the bits of `cg` for it alone.
template <int K, bool kJacobi>
void check_schedules(Style style, int pes, int blocks, const SolveParams& params, int schedules) {
  using M = std::conditional_t<kJacobi, Jacobi<double>, Identity<double>>;
  const auto a = grid2d(4, 3, 0.1);
  const auto columns = right_hand_sides<K>(a);
  std::vector<std::vector<double>> expected;
  std::vector<Outcome> outcomes;
  for (const auto& b : columns) {
    Rig alone(a, b, pes, blocks, 5, style);
    alone.params = params;
    CHECK((alone.run<ConjugateGradient, M>(1)));
    expected.push_back(alone.x());
    outcomes.push_back(alone.outcome);
  }
  ColumnsRig<K> rig(a, columns, pes, blocks, 5, style);
  rig.params = params;
  rig.template check_schedules<kJacobi>(1, schedules, expected, outcomes);
}

template <int K>
void check_all_sizes(Style style) {
  for (const int pes : {1, 2, 3}) {
    const int blocks = style == Style::gpu_blocks ? 3 : 1 + pes % 2;
    check_schedules<K, true>(style, pes, blocks, few_iterations(), kSchedules);
    check_schedules<K, false>(style, pes, blocks, few_iterations(), kSchedules / 4);
  }
}

}  // namespace

TEST(two_columns_are_right_under_every_schedule) { check_all_sizes<2>(Style::cpu); }
TEST(four_columns_are_right_under_every_schedule) { check_all_sizes<4>(Style::cpu); }
TEST(eight_columns_are_right_under_every_schedule) { check_all_sizes<8>(Style::cpu); }
TEST(four_columns_on_a_layout_with_packets_are_right_under_every_schedule) {
  check_all_sizes<4>(Style::gpu);
}
TEST(two_columns_with_halos_of_blocks_are_right_under_every_schedule) {
  check_all_sizes<2>(Style::gpu_blocks);
}
TEST(eight_columns_with_halos_of_blocks_are_right_under_every_schedule) {
  check_all_sizes<8>(Style::gpu_blocks);
}

// Chebyshev has exchanges, products and sums of its own.
TEST(columns_with_chebyshev_are_right_under_every_schedule) {
  const auto a = grid2d(4, 3, 0.1);
  const auto columns = right_hand_sides<4>(a);
  SolveParams params = few_iterations();
  params.lambda_bound = 2.0;
  params.chebyshev_degree = 3;
  for (const Style style : {Style::cpu, Style::gpu_blocks}) {
    std::vector<std::vector<double>> expected;
    for (const auto& b : columns) {
      Rig alone(a, b, 2, 2, 5, style);
      alone.params = params;
      CHECK((alone.run<ConjugateGradient, Chebyshev<double>>(1)));
      expected.push_back(alone.x());
    }
    ColumnsRig<4> rig(a, columns, 2, 2, 5, style);
    rig.params = params;
    int stuck = 0, wrong = 0;
    for (int seed = 1; seed <= harness::schedules(40); ++seed) {
      const auto number = static_cast<std::uint64_t>(seed);
      if (!rig.run_with<Chebyshev<double, 4>, ConjugateGradient>(number)) ++stuck;
      for (int k = 0; k < 4; ++k) wrong += rig.x(k) == expected[at(k)] ? 0 : 1;
    }
    CHECK_EQ(stuck, 0);
    CHECK_EQ(wrong, 0);
  }
}

TEST(restarts_of_some_columns_are_right_under_every_schedule) {
  SolveParams params = few_iterations();
  params.rtol = 0.0;
  params.maxiter = 200;
  for (const Style style : {Style::cpu, Style::gpu_blocks}) {
    check_schedules<4, true>(style, 3, 2, params, 20);
    check_schedules<8, false>(style, 2, 2, params, 10);
  }
}

TEST(a_lost_signal_of_columns_names_its_sender) {
  const auto a = grid2d(4, 4);
  for (const Style style : {Style::cpu, Style::gpu_blocks}) {
    int diagnosed = 0;
    for (std::int64_t lost = 0; lost < 8; ++lost) {
      ColumnsRig<4> rig(a, right_hand_sides<4>(a), 2, 2, 5, style);
      rig.params = few_iterations();
      if (rig.run<true>(3, {Fault::Kind::drop_signal, 1, 0, lost})) continue;
      diagnosed += std::ranges::any_of(rig.machine().records(),
                                       [](const WaitRecord& r) {
                                         return r.state == BlockState::expired && r.from_pe == 1 &&
                                                r.from_block == 0;
                                       })
                       ? 1
                       : 0;
    }
    CHECK(diagnosed >= 4);
  }
}
