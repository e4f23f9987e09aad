// Block CG under random schedules and weak memory.
#include <algorithm>
#include <cmath>

#include "columns_rig.hpp"
#include "cpufree/reference/block_cg.hpp"
#include "cpufree/solvers/block_cg.hpp"
#include "harness.hpp"

using namespace testing_rig;
using namespace testing_matrices;
using cpu_fibers::Fault;

namespace {

constexpr int kSchedules = 100;

SolveParams few_iterations() {
  SolveParams p;
  p.rtol = 1e-12;
  p.maxiter = 4;
  p.roundoff = 1e-16;
  p.history_capacity = 8;
  return p;
}

// The second one is 0, the third depends on the first.
template <int K>
std::vector<std::vector<double>> right_hand_sides(const Matrix<double>& a) {
  std::vector<std::vector<double>> all;
  for (int k = 0; k < K; ++k) {
    auto b = wave(a.n());
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = k == 1 ? 0.0 : b[i] * std::cos(0.7 * (k == 2 ? 0 : k) * static_cast<double>(i));
    all.push_back(b);
  }
  return all;
}

// Every schedule gives the bits of the first one, which are near the reference.
template <int K, bool kJacobi>
void check_schedules(Style style, int pes, int blocks, const SolveParams& params, int schedules) {
  const auto a = grid2d(5, 3, 0.1);
  const auto columns = right_hand_sides<K>(a);
  const auto d = reference::diagonal(a.view());
  const auto expected =
      reference::block_cg(a.view(), columns, params.rtol, params.maxiter,
                          [&](const auto& r) { return kJacobi ? reference::divide(r, d) : r; });
  ColumnsRig<K> rig(a, columns, pes, blocks, 5, style);
  rig.params = params;
  CHECK((rig.template run<kJacobi, BlockConjugateGradient>(1)));
  std::vector<std::vector<double>> first;
  std::vector<Outcome> outcomes;
  for (int k = 0; k < K; ++k) {
    first.push_back(rig.x(k));
    outcomes.push_back(rig.outcomes[k]);
    for (std::size_t i = 0; i < first.back().size(); ++i)
      CHECK(std::abs(first.back()[i] - expected.x[at(k)][i]) < 1e-9);
  }
  rig.template check_schedules<kJacobi, BlockConjugateGradient>(2, schedules, first, outcomes);
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

TEST(blocks_of_two_are_right_under_every_schedule) { check_all_sizes<2>(Style::cpu); }
TEST(blocks_of_four_are_right_under_every_schedule) { check_all_sizes<4>(Style::cpu); }
TEST(blocks_of_eight_are_right_under_every_schedule) { check_all_sizes<8>(Style::cpu); }
TEST(blocks_on_a_layout_with_packets_are_right_under_every_schedule) {
  check_all_sizes<4>(Style::gpu);
}
TEST(blocks_with_halos_of_blocks_are_right_under_every_schedule) {
  check_all_sizes<2>(Style::gpu_blocks);
  check_all_sizes<8>(Style::gpu_blocks);
}

// Threads of a block share coefficients, each of which one of them computes.
TEST(blocks_of_threads_agree_with_the_reference_whatever_their_order) {
  const auto a = grid2d(9, 7, 0.1);
  const auto columns = right_hand_sides<8>(a);
  const auto d = reference::diagonal(a.view());
  SolveParams params = few_iterations();
  const auto expected = reference::block_cg(a.view(), columns, params.rtol, params.maxiter,
                                            [&](const auto& r) { return reference::divide(r, d); });
  for (const Style style : {Style::cpu, Style::gpu_blocks}) {
    ColumnsRig<8> rig(a, columns, 2, 2, 5, style);
    rig.params = params;
    std::vector<std::vector<double>> first;
    for (unsigned seed = 1; seed <= 6; ++seed) {
      CHECK((rig.run_threads<Jacobi<double>, BlockConjugateGradient>(32, seed)));
      std::vector<std::vector<double>> x;
      for (int k = 0; k < 8; ++k) {
        x.push_back(rig.x(k));
        for (std::size_t i = 0; i < x.back().size(); ++i)
          CHECK(std::abs(x.back()[i] - expected.x[at(k)][i]) < 1e-9);
      }
      if (first.empty()) first = x;
      CHECK(x == first);
    }
  }
}

TEST(restarts_of_a_block_are_right_under_every_schedule) {
  SolveParams params = few_iterations();
  params.rtol = 0.0;
  params.maxiter = 200;
  for (const Style style : {Style::cpu, Style::gpu_blocks}) {
    check_schedules<4, true>(style, 3, 2, params, 20);
    check_schedules<8, false>(style, 2, 2, params, 10);
  }
}

TEST(a_lost_signal_of_a_block_names_its_sender) {
  const auto a = grid2d(5, 4);
  for (const Style style : {Style::cpu, Style::gpu_blocks}) {
    int diagnosed = 0;
    for (std::int64_t lost = 0; lost < 8; ++lost) {
      ColumnsRig<4> rig(a, right_hand_sides<4>(a), 2, 2, 5, style);
      rig.params = few_iterations();
      if (rig.run<true, BlockConjugateGradient>(3, {Fault::Kind::drop_signal, 1, 0, lost}))
        continue;
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
