// Factors of preconditioners against dense computations.
#include "cpufree/problem/factors/factors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "cpufree/base/index.hpp"
#include "cpufree/reference/approximate_inverse.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;
using reference::Dense;

namespace {

Dense zeros(std::size_t n) { return Dense(n, std::vector<double>(n, 0.0)); }

Dense dense(const SparseFactor& f) {
  Dense d = zeros(f.row_ptr.size() - 1);
  for (std::size_t i = 0; i < d.size(); ++i)
    for (auto k = at(f.row_ptr[i]); k < at(f.row_ptr[i + 1]); ++k)
      d[i][at(f.col[k])] += static_cast<double>(f.val[k]);
  return d;
}

// S A S of own rows, by their numbers there.
Dense dense(const OwnRows& own) {
  Dense d = zeros(at(own.rows()));
  for (std::int32_t i = 0; i < own.rows(); ++i)
    for (std::size_t k = 0; k < own.columns(i).size(); ++k)
      d[at(i)][at(own.columns(i)[k])] = own.values(i)[k];
  return d;
}

// A factor by the numbers of own rows.
Dense by_name(const Dense& f, const OwnRows& own) {
  Dense d = zeros(f.size());
  for (std::size_t i = 0; i < f.size(); ++i)
    for (std::size_t j = 0; j < f.size(); ++j) d[i][j] = f[at(own.local[i])][at(own.local[j])];
  return d;
}

Dense product(const Dense& a, const Dense& b, bool transpose_b = false) {
  Dense c = zeros(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a.size(); ++j)
      for (std::size_t k = 0; k < a.size(); ++k)
        c[i][j] += a[i][k] * (transpose_b ? b[j][k] : b[k][j]);
  return c;
}

double largest_difference(const Dense& a, const Dense& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a.size(); ++j) most = std::max(most, std::abs(a[i][j] - b[i][j]));
  return most;
}

// All rows of a matrix on one PE, in an order of their own.
OwnRows shuffled(const Matrix<double>& a) {
  std::vector<std::int32_t> order(at(a.n()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937(7));
  return own_rows_of(a.view(), order);
}

std::vector<std::vector<std::size_t>> lower_pattern(const Dense& a) {
  std::vector<std::vector<std::size_t>> pattern(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      if (a[i][j] != 0.0 || i == j) pattern[i].push_back(j);
  return pattern;
}

constexpr double kSingle = 1e-6;  // rounding of the factors

}  // namespace

TEST(own_rows_are_scaled_to_a_diagonal_of_ones_and_stay_in_their_original_order) {
  const auto a = irregular(40, 3);
  const OwnRows own = shuffled(a);
  CHECK(std::ranges::is_sorted(own.name));
  const Dense scaled = dense(own);
  for (std::size_t i = 0; i < scaled.size(); ++i) CHECK(std::abs(scaled[i][i] - 1.0) < 1e-15);
}

TEST(own_rows_of_a_part_are_those_of_the_whole_matrix_without_the_ghosts) {
  const auto a = irregular(60, 4);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 3, 1), {}, 3);
  for (const auto& local : plan.local) {
    const OwnRows here = own_rows_of(local);
    const OwnRows there = own_rows_of(a.view(), local.global_row);
    CHECK(here.name == there.name && here.local == there.local && here.scale == there.scale);
    CHECK(here.row_ptr == there.row_ptr && here.col == there.col && here.val == there.val);
  }
}

TEST(the_approximate_inverse_of_a_matrix_by_hand) {
  // [4 2; 2 5]: row 0 of G is 1 / 2; row 1 solves [4 2; 2 5] y = (0, 1), y = (-1/8, 1/4).
  const Dense g = reference::approximate_inverse({{4.0, 2.0}, {2.0, 5.0}}, {{0}, {0, 1}});
  CHECK(std::abs(g[0][0] - 0.5) < 1e-15 && g[0][1] == 0.0);
  CHECK(std::abs(g[1][0] + 0.25) < 1e-15 && std::abs(g[1][1] - 0.5) < 1e-15);
}

TEST(fsai_of_level_1_is_that_of_the_reference) {
  for (const auto& a : {grid2d(9, 7), irregular(80, 2), grid2d(1, 1), grid2d(33, 1)}) {
    const OwnRows own = shuffled(a);
    const Factors found = approximate_inverse(own, FsaiOptions());
    CHECK_EQ(found.replaced, std::int64_t{0});
    const Dense scaled = dense(own);
    const Dense g = by_name(dense(found.factors[0]), own);
    CHECK(largest_difference(g, reference::approximate_inverse(scaled, lower_pattern(scaled))) <
          kSingle);
  }
}

TEST(fsai_brings_the_diagonal_to_one_on_all_levels_and_stays_lower_triangular) {
  const auto a = grid2d(12, 9);
  const OwnRows own = shuffled(a);
  const Dense scaled = dense(own);
  for (const int level : {1, 2}) {
    const Dense g = by_name(dense(approximate_inverse(own, fsai_options(level)).factors[0]), own);
    const Dense gag = product(product(g, scaled), g, true);
    for (std::size_t i = 0; i < g.size(); ++i) {
      CHECK(std::abs(gag[i][i] - 1.0) < kSingle);
      for (std::size_t j = i + 1; j < g.size(); ++j) CHECK_EQ(g[i][j], 0.0);
    }
  }
}

TEST(fsai_of_level_1_has_no_entry_where_a_has_none_and_level_2_has) {
  const OwnRows own = shuffled(grid2d(12, 9));
  const Dense scaled = dense(own);
  const auto outside = [&](int level) {
    const Dense g = by_name(dense(approximate_inverse(own, fsai_options(level)).factors[0]), own);
    int count = 0;
    for (std::size_t i = 0; i < g.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) count += g[i][j] != 0.0 && scaled[i][j] == 0.0;
    return count;
  };
  CHECK_EQ(outside(1), 0);
  CHECK(outside(2) > 50);
}

TEST(small_entries_are_left_out_and_the_diagonal_stays_one) {
  const auto a = irregular(60, 8);
  const OwnRows own = shuffled(a);
  const Dense scaled = dense(own);
  FsaiOptions options;
  const auto all = approximate_inverse(own, options).entries();
  options.least_kept = 0.1;
  const Factors found = approximate_inverse(own, options);
  CHECK(found.entries() < all);
  const Dense g = by_name(dense(found.factors[0]), own);
  const Dense gag = product(product(g, scaled), g, true);
  for (std::size_t i = 0; i < g.size(); ++i) {
    CHECK(std::abs(gag[i][i] - 1.0) < kSingle);
    for (std::size_t j = 0; j < i; ++j)
      CHECK(g[i][j] == 0.0 || std::abs(g[i][j]) >= 0.09 * g[i][i]);
  }
}

TEST(the_second_factor_is_the_transpose_of_the_first_to_the_last_bit) {
  const Factors found = approximate_inverse(shuffled(irregular(90, 5)), fsai_options(2));
  const Dense g = dense(found.factors[0]), t = dense(found.factors[1]);
  for (std::size_t i = 0; i < g.size(); ++i)
    for (std::size_t j = 0; j < g.size(); ++j) CHECK_EQ(g[i][j], t[j][i]);
}

TEST(factors_do_not_depend_on_the_order_of_rows_on_the_pe) {
  const auto a = irregular(90, 5);
  std::vector<std::int32_t> natural(at(a.n()));
  for (std::int32_t i = 0; i < a.n(); ++i) natural[at(i)] = i;
  const OwnRows one = own_rows_of(a.view(), natural), other = shuffled(a);
  CHECK(by_name(dense(approximate_inverse(one, fsai_options(2)).factors[0]), one) ==
        by_name(dense(approximate_inverse(other, fsai_options(2)).factors[0]), other));
}

TEST(rows_of_nodes_share_factorizations_without_a_change_of_bits) {
  // Chunks of rows are factorized on their own: the rows of a node at a border share nothing.
  const auto a = three_a_node(40, 20);
  auto shifted = a;
  for (std::int32_t i = 0; i < a.n(); ++i)
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      shifted.val[k] = a.col[k] == i ? 20.0 : -0.5;
  const OwnRows own = shuffled(shifted);
  const Dense scaled = dense(own);
  const Factors found = approximate_inverse(own, FsaiOptions());
  CHECK_EQ(found.replaced, std::int64_t{0});
  const Dense g = by_name(dense(found.factors[0]), own);
  const auto pattern = lower_pattern(scaled);
  for (const std::size_t row : {0UL, 511UL, 512UL, 2399UL}) {
    Dense part;
    for (const std::size_t p : pattern[row]) {
      part.emplace_back();
      for (const std::size_t q : pattern[row]) part.back().push_back(scaled[p][q]);
    }
    const auto y = reference::last_column_of_inverse(part);
    for (std::size_t k = 0; k < y.size(); ++k)
      CHECK(std::abs(g[row][pattern[row][k]] - y[k] / std::sqrt(y.back())) < kSingle);
  }
}

TEST(long_rows_take_no_part_and_rows_have_no_more_entries_than_allowed) {
  Entries e;
  const std::int32_t n = 1500;
  for (std::int32_t i = 0; i < n; ++i) e[{i, i}] = 4.0;
  for (std::int32_t i = 1; i < n; ++i) e[{0, i}] = e[{i, 0}] = 0.01;
  for (std::int32_t i = 100; i < 200; ++i) e[{i, 300}] = e[{300, i}] = -0.01;
  FsaiOptions options;
  options.most = 20;
  const Factors found = approximate_inverse(shuffled(from_entries<double>(n, e)), options);
  std::int64_t most = 0;
  for (const SparseFactor& f : found.factors)
    for (std::size_t i = 0; i < at(n); ++i) most = std::max(most, f.row_ptr[i + 1] - f.row_ptr[i]);
  CHECK_EQ(most, std::int64_t{20});
  CHECK_EQ(found.entries(), std::int64_t{2 * (n + 19)});
}

TEST(rows_where_a_is_not_positive_definite_have_their_diagonal_alone) {
  // Row 1 and row 0: [1 2; 2 1].
  const auto a = from_entries<double>(
      3, {{{0, 0}, 1.0}, {{0, 1}, 2.0}, {{1, 0}, 2.0}, {{1, 1}, 1.0}, {{2, 2}, -4.0}});
  const OwnRows own = shuffled(a);
  const Factors inverse = approximate_inverse(own, fsai_options(1));
  CHECK_EQ(inverse.replaced, std::int64_t{2});  // rows 1 and 2
  const Dense f = dense(inverse.factors[0]);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) CHECK_EQ(f[i][j], i == j ? 1.0 : 0.0);
  CHECK_EQ(*std::ranges::min_element(inverse.scale), 0.5);
}

TEST(a_pe_without_rows_has_empty_factors) {
  const OwnRows own = own_rows_of(grid2d(3, 3).view(), {});
  CHECK_EQ(approximate_inverse(own, fsai_options(2)).entries(), std::int64_t{0});
}

TEST(values_of_any_size_have_factors_in_single_precision) {
  auto a = grid2d(6, 5);
  for (const double unit : {1e-280, 1e280}) {
    auto big = a;
    for (double& value : big.val) value *= unit;
    const Factors found = approximate_inverse(shuffled(big), fsai_options(1));
    CHECK_EQ(found.replaced, std::int64_t{0});
    for (const float value : found.factors[0].val) CHECK(std::isfinite(value) && value != 0.0F);
  }
}
