#include "cpufree/problem/partition/partition_cost.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

// Where rows of these lengths begin, and the last one ends.
std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> starts(lengths.size() + 1, 0);
  std::partial_sum(lengths.begin(), lengths.end(), starts.begin() + 1);
  return starts;
}

using Part = std::vector<std::int32_t>;

// Entry by entry, as the definition says.
template <class Matrix>
PartitionCost counted_by_hand(const Matrix& a, const Part& part, int pes) {
  PartitionCost cost;
  cost.rows.resize(at(pes));
  cost.nnz.resize(at(pes));
  cost.boundary_rows.resize(at(pes));
  cost.traffic.resize(at(pes) * at(pes));
  std::set<std::pair<int, std::int32_t>> ghosts;
  for (std::int32_t i = 0; i < a.n(); ++i) {
    const int pe = part[at(i)];
    bool boundary = false;
    for (auto k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k) {
      const std::int32_t j = a.col[at(k)];
      if (part[at(j)] == pe) continue;
      ++cost.cut;
      boundary = true;
      ghosts.emplace(pe, j);
    }
    ++cost.rows[at(pe)];
    cost.nnz[at(pe)] += a.row_ptr[at(i) + 1] - a.row_ptr[at(i)];
    cost.boundary_rows[at(pe)] += boundary;
  }
  for (const auto& [pe, j] : ghosts) ++cost.traffic[at(pe) * at(pes) + at(part[at(j)])];
  return cost;
}

template <class Matrix>
void check_cost(const Matrix& a, const Part& part, int pes) {
  const PartitionCost found = cost_of(a.row_ptr, a.col, part, pes);
  const PartitionCost hand = counted_by_hand(a, part, pes);
  CHECK(found.rows == hand.rows);
  CHECK(found.nnz == hand.nnz);
  CHECK(found.boundary_rows == hand.boundary_rows);
  CHECK(found.traffic == hand.traffic);
  CHECK_EQ(found.cut, hand.cut);
}

Part random_part(std::int32_t rows, int pes, unsigned seed) {
  std::mt19937 random(seed);
  Part part(at(rows));
  for (auto& pe : part) pe = static_cast<std::int32_t>(random() % static_cast<unsigned>(pes));
  return part;
}

}  // namespace

TEST(cost_of_runs_of_rows_is_as_counted_by_hand) {
  for (const int pes : {1, 2, 3, 8, 70}) {
    const auto a = irregular(1001, 3);
    check_cost(a, contiguous_partition(a.row_ptr, pes), pes);
  }
}

TEST(cost_of_scattered_rows_is_as_counted_by_hand) {
  for (const int pes : {2, 5, 64}) {
    const auto a = irregular(900, 4);
    check_cost(a, random_part(a.n(), pes, 7), pes);
  }
}

TEST(parts_without_rows_cost_nothing) {
  const auto a = grid2d(8, 8);
  Part part(at(a.n()), 1);
  for (std::int32_t i = 32; i < 64; ++i) part[at(i)] = 4;
  check_cost(a, part, 6);
}

// Enough that their bits are not held at once, and that several threads count.
TEST(cost_of_a_large_grid_on_many_pes_is_as_counted_by_hand) {
  const auto a = grid2d(700, 700);
  check_cost(a, contiguous_partition(a.row_ptr, 1024), 1024);
}

TEST(padding_is_what_slices_hold_over_the_entries) {
  std::vector<std::int64_t> lengths(32, 4);
  lengths[0] = 8;
  CHECK_EQ(slice_padding(starts_of(lengths), 32, 100), 32.0 * 8 / 132);
  CHECK_EQ(slice_padding(starts_of(lengths), 32, 4), 1.0);  // the long row counts as the others
  CHECK_EQ(slice_padding(std::vector<std::int64_t>(41, 0), 32, 1), 1.0);
  CHECK_EQ(slice_padding(std::vector<std::int64_t>{0}, 32, 1), 1.0);
}

TEST(padding_of_many_rows_is_that_of_one_thread) {
  std::vector<std::int64_t> lengths(1'000'003);
  std::mt19937 random(5);
  for (auto& length : lengths) length = random() % 50;
  std::int64_t held = 0, stored = 0;
  for (std::size_t first = 0; first < lengths.size(); first += 32) {
    const auto last =
        lengths.begin() + static_cast<std::ptrdiff_t>(std::min(first + 32, lengths.size()));
    const auto begin = lengths.begin() + static_cast<std::ptrdiff_t>(first);
    held += 32 * std::min<std::int64_t>(40, *std::max_element(begin, last));
    for (auto it = begin; it != last; ++it) stored += std::min<std::int64_t>(40, *it);
  }
  CHECK_EQ(slice_padding(starts_of(lengths), 32, 40),
           static_cast<double>(held) / static_cast<double>(stored));
}
