// Cutting the rows of PEs among blocks.
#include "cpufree/problem/blocks/block_cut.hpp"

#include <sched.h>

#include <algorithm>
#include <numeric>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "cpufree/problem/partition/row_graph.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

HaloPlan<double> plan_for(const Matrix<double>& a, int pes) {
  return make_halo_plan(a.view(), contiguous_partition(a.row_ptr, pes), {}, pes);
}

std::vector<std::int64_t> weights(const LocalSystem<double>& local,
                                  const std::vector<std::int32_t>& block, int blocks) {
  std::vector<std::int64_t> weight(at(blocks), 0);
  for (std::size_t i = 0; i < block.size(); ++i)
    weight[at(block[i])] += row_weight(local.row_ptr[i + 1] - local.row_ptr[i]);
  return weight;
}

// Runs f where this process has one core.
template <class F>
auto on_one_core(F&& f) {
  cpu_set_t before;
  CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int core = 0;
  while (CPU_ISSET(core, &before) == 0) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const auto result = f();
  CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  return result;
}

}  // namespace

TEST(all_blocks_have_about_the_same_weight) {
  for (const auto& a : {grid2d(60, 50), three_a_node(40, 30), irregular(3000, 2)}) {
    const auto plan = plan_for(a, 2);
    const auto cut = cut_among_blocks(plan, 7);
    for (std::size_t pe = 0; pe < 2; ++pe) {
      const auto weight = weights(plan.local[pe], cut[pe], 7);
      const auto mean = std::accumulate(weight.begin(), weight.end(), std::int64_t{0}) / 7;
      // Row 0 of `irregular` has a third of the columns: half of it, and nodes of the graph.
      const auto heaviest = row_weight(a.view().row_nnz(0));
      for (const std::int64_t w : weight) CHECK(std::abs(w - mean) <= mean / 8 + heaviest);
    }
  }
}

TEST(rows_that_are_not_coupled_come_apart) {
  // Two grids, the rows of which alternate.
  const auto one = grid2d(20, 20);
  Entries e;
  for (std::int32_t i = 0; i < one.n(); ++i)
    for (auto k = one.row_ptr[at(i)]; k < one.row_ptr[at(i) + 1]; ++k)
      for (std::int32_t g = 0; g < 2; ++g) e[{2 * i + g, 2 * one.col[at(k)] + g}] = one.val[at(k)];
  const auto cut = cut_among_blocks(plan_for(from_entries<double>(800, e), 1), 2)[0];
  for (std::size_t i = 2; i < cut.size(); ++i) CHECK_EQ(cut[i], cut[i - 2]);
  CHECK(cut[0] != cut[1]);
}

TEST(rows_that_read_the_same_columns_stay_together) {
  const auto cut = cut_among_blocks(plan_for(three_a_node(30, 30), 1), 5)[0];
  for (std::size_t i = 0; i < cut.size(); i += 3) {
    CHECK_EQ(cut[i], cut[i + 1]);
    CHECK_EQ(cut[i], cut[i + 2]);
  }
}

TEST(a_matrix_whose_rows_all_read_the_same_is_cut_nevertheless) {
  Entries e;
  for (std::int32_t i = 0; i < 60; ++i)
    for (std::int32_t j = 0; j < 60; ++j) e[{i, j}] = 1.0;
  const auto cut = cut_among_blocks(plan_for(from_entries<double>(60, e), 1), 6)[0];
  for (std::int32_t b = 0; b < 6; ++b) CHECK_EQ(std::ranges::count(cut, b), 10);
}

TEST(the_cut_does_not_depend_on_the_number_of_cores) {
  const auto a = grid2d(80, 70);
  const auto plan = plan_for(a, 3);
  const auto cut = [&] { return cut_among_blocks(plan, 13); };
  CHECK(cut() == on_one_core(cut));
}

TEST(small_nodes_are_grouped_and_keep_their_weight) {
  const auto a = grid2d(200, 150);
  const auto plan = plan_for(a, 1);
  const auto fine = graph_of_rows(RowPattern::of(plan.local[0]), 1000);
  const auto coarse = graph_of_rows(RowPattern::of(plan.local[0]), 5);
  CHECK_EQ(fine.nodes(), a.n());
  CHECK(coarse.nodes() < a.n() / 4);
  CHECK(coarse.nodes() >= 5 * 32);
  std::vector<std::int64_t> weight(at(coarse.nodes()), 0);
  for (std::int32_t i = 0; i < a.n(); ++i)
    weight[at(coarse.node[at(i)])] += row_weight(a.view().row_nnz(i));
  CHECK(std::ranges::equal(weight, coarse.weight));
}

TEST(neighbours_of_groups_are_those_of_their_rows) {
  const auto a = grid2d(90, 80);
  const auto plan = plan_for(a, 1);
  const auto graph = graph_of_rows(RowPattern::of(plan.local[0]), 4);
  CHECK(graph.nodes() < a.n() / 4);
  std::vector<std::pair<std::int32_t, std::int32_t>> expected, found;
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k)
      if (graph.node[at(i)] != graph.node[at(a.col[at(k)])])
        expected.emplace_back(graph.node[at(i)], graph.node[at(a.col[at(k)])]);
  std::ranges::sort(expected);
  expected.erase(std::ranges::unique(expected).begin(), expected.end());
  for (std::int32_t n = 0; n < graph.nodes(); ++n)
    for (auto k = graph.ptr[at(n)]; k < graph.ptr[at(n) + 1]; ++k)
      found.emplace_back(n, graph.to[at(k)]);
  std::ranges::sort(found);
  CHECK(found == expected);
}
