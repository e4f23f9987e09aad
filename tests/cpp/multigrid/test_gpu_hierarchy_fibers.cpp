// Hierarchies of multigrid that a GPU makes have the patterns of those that the host makes, values
// to rounding; here both on the host (host_gpu), one by the kernels that GPUs run.
#include <cmath>
#include <random>

#include "cpufree/base/index.hpp"
#include "cpufree/multigrid/gpu/hierarchy.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

constexpr multigrid::Options kDeep{.coarsest = 10};

// The stand-in's memory is the host's.
template <class T>
GivenRows<T> given(const Matrix<T>& a) {
  return {a.n(), static_cast<std::int64_t>(a.col.size()),
          const_cast<std::int64_t*>(a.row_ptr.data()), const_cast<std::int32_t*>(a.col.data()),
          a.val.data()};
}
template <class T>
std::optional<HierarchyOnGpu> on_gpu(const Matrix<T>& a, const std::vector<std::int32_t>& owner,
                                     const std::vector<std::int32_t>& order,
                                     const multigrid::Options& options) {
  return make_hierarchy_on_gpu<T>(0, given(a), owner, order, options);
}

bool same(const multigrid::SparseMatrix& a, const multigrid::SparseMatrix& b) {
  return std::ranges::equal(a.row_ptr, b.row_ptr) && std::ranges::equal(a.col, b.col) &&
         std::ranges::equal(a.val, b.val);
}

// Relative to the largest one.
template <class V, class W>
double difference(const V& a, const W& b) {
  double most = a.size() == b.size() ? 0.0 : 1e300, size = 0.0;
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k) {
    most = std::max(most, std::abs(a[k] - b[k]));
    size = std::max(size, std::abs(b[k]));
  }
  return size > 0.0 ? most / size : most;
}
bool alike(const multigrid::SparseMatrix& a, const multigrid::SparseMatrix& b) {
  return std::ranges::equal(a.row_ptr, b.row_ptr) && std::ranges::equal(a.col, b.col) &&
         difference(a.val, b.val) < 1e-12;
}

template <class T>
void check_alike(const Matrix<T>& a, const std::vector<std::int32_t>& owner = {},
                 const std::vector<std::int32_t>& order = {},
                 const multigrid::Options& options = kDeep, std::size_t least_levels = 2) {
  const auto found = on_gpu(a, owner, order, options);
  CHECK(found.has_value());
  const multigrid::Hierarchy made = found->download();
  std::vector<std::int32_t> owners = owner;
  owners.resize(at(a.n()), 0);
  const auto expected = multigrid::make_hierarchy(a.view(), owners, order, options);
  CHECK(expected.levels.size() >= least_levels);
  CHECK_EQ(made.levels.size(), expected.levels.size());
  CHECK_EQ(made.why, expected.why);
  CHECK_EQ(made.gathered, expected.gathered);
  CHECK(made.scale == expected.scale);
  CHECK(difference(made.inverse, expected.inverse) < 1e-9);
  for (std::size_t l = 0; l < made.levels.size(); ++l) {
    CHECK(alike(made.levels[l].matrix, expected.levels[l].matrix));
    CHECK_NEAR(made.levels[l].lambda, expected.levels[l].lambda, 1e-9);
    CHECK(made.levels[l].owner == expected.levels[l].owner);
    if (l + 1 == made.levels.size()) continue;
    CHECK(alike(made.levels[l].prolongator, expected.levels[l].prolongator));
    const auto down = transpose(made.levels[l].prolongator);
    const MatrixOnGpu& restriction = found->levels[l].restriction;
    CHECK(std::ranges::equal(restriction.ptr.download(), down.row_ptr));
    CHECK(std::ranges::equal(restriction.col.download(), down.col));
    CHECK(std::ranges::equal(restriction.val.download(), down.val));
  }
}

std::vector<std::int32_t> slabs(std::int32_t rows, int pes) {
  std::vector<std::int32_t> owner(at(rows));
  for (std::int32_t i = 0; i < rows; ++i)
    owner[at(i)] = static_cast<std::int32_t>(std::int64_t{i} * pes / rows);
  return owner;
}

// A 7-point grid with a coefficient that differs by orders of magnitude from cell to cell.
template <class T = double>
Matrix<T> jumps3d(std::int32_t m, double decades, double shift = 1e-3) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> exponent(0.0, decades);
  std::vector<double> k(at(m * m * m));
  for (double& value : k) value = std::pow(10.0, exponent(random));
  Entries e;
  const auto couple = [&](std::int32_t i, std::int32_t j) {
    const double w = 2.0 / (1.0 / k[at(i)] + 1.0 / k[at(j)]);
    e[{i, j}] = e[{j, i}] = -w;
    e[{i, i}] += w, e[{j, j}] += w;
  };
  for (std::int32_t i = 0; i < m * m * m; ++i) {
    e[{i, i}] += shift;
    if (i % m + 1 < m) couple(i, i + 1);
    if (i / m % m + 1 < m) couple(i, i + m);
    if (i / (m * m) + 1 < m) couple(i, i + m * m);
  }
  return from_entries<T>(m * m * m, e);
}

// Rows that are coupled to very many others.
Matrix<double> hubs(std::int32_t n, std::int32_t hub_count) {
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) {
    e[{i, i}] += 1e-2;
    const auto couple = [&](std::int32_t j) {
      if (i == j || e.contains({i, j})) return;
      e[{i, j}] = e[{j, i}] = -1.0;
      e[{i, i}] += 1.0, e[{j, j}] += 1.0;
    };
    if (i + 1 < n) couple(i + 1);
    couple(i % hub_count);
  }
  return from_entries<double>(n, e);
}

}  // namespace

TEST(grids_have_the_levels_that_the_host_makes) {
  check_alike(grid2d(61, 47), {}, {}, kDeep, 3);
  check_alike(jumps3d(14, 0.0), {}, {}, kDeep, 3);
}

TEST(weak_entries_are_dropped_as_the_host_drops_them) { check_alike(jumps3d(13, 5.0)); }

TEST(irregular_matrices_have_the_levels_that_the_host_makes) {
  check_alike(irregular(900, 5));
  check_alike(irregular(400, 12));
}

TEST(matrices_in_single_precision_have_the_levels_that_the_host_makes) {
  check_alike(jumps3d<float>(10, 3.0));
}

TEST(aggregates_of_several_pes_are_those_of_the_host) {
  const auto a = grid2d(40, 35);
  for (const int pes : {2, 3}) {
    check_alike(a, slabs(a.n(), pes));
    auto gathered = kDeep;
    gathered.gathered = 300;
    check_alike(a, slabs(a.n(), pes), {}, gathered);
  }
}

TEST(aggregates_are_numbered_in_the_order_that_is_given) {
  const auto a = grid2d(40, 35);
  std::vector<std::int32_t> order(at(a.n()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::shuffle(order.begin(), order.end(), std::mt19937(8));
  check_alike(a, slabs(a.n(), 2), order);
}

TEST(rows_that_are_too_long_for_tables_on_chip_are_made_in_far_memory) {
  check_alike(hubs(4000, 2), {}, {}, {.coarsest = 10, .most_complexity = 50.0}, 2);
}

TEST(singular_matrices_have_the_pseudo_inverse_that_the_host_makes) {
  check_alike(jumps3d(10, 0.0, 0.0));
}

TEST(a_diagonal_matrix_has_one_level) {
  Entries e;
  for (std::int32_t i = 0; i < 50; ++i) e[{i, i}] = 1.0 + i;
  check_alike(from_entries<double>(50, e), {}, {}, kDeep, 1);
  check_alike(grid2d(1, 1), {}, {}, kDeep, 1);
  check_alike(grid2d(2, 1), {}, {}, kDeep, 1);
}

TEST(a_coarsest_level_that_stays_large_has_an_eigenvalue) {
  auto options = kDeep;
  options.least_ratio = 1e9;
  check_alike(grid2d(20, 20), {}, {}, options, 1);
}

TEST(two_set_ups_leave_the_same_bits) {
  const auto a = jumps3d(12, 4.0);
  const auto first = on_gpu(a, {}, {}, kDeep)->download();
  const auto second = on_gpu(a, {}, {}, kDeep)->download();
  for (std::size_t l = 0; l < first.levels.size(); ++l)
    CHECK(same(first.levels[l].matrix, second.levels[l].matrix));
}

TEST(numbers_made_anew_have_the_bits_of_a_new_hierarchy) {
  for (const auto& a : {jumps3d(12, 4.0), hubs(4000, 2)}) {
    const multigrid::Options options{.coarsest = 10, .most_complexity = 50.0};
    auto other = a;
    for (double& value : other.val) value *= 16.0;
    auto made = *on_gpu(a, {}, {}, options);
    remake_hierarchy_on_gpu<double>(0, given(other), options, made);
    const auto again = made.download();
    const auto fresh = on_gpu(other, {}, {}, options)->download();
    CHECK(again.scale == fresh.scale);
    CHECK(again.inverse == fresh.inverse);
    for (std::size_t l = 0; l < again.levels.size(); ++l) {
      CHECK(same(again.levels[l].matrix, fresh.levels[l].matrix));
      CHECK_EQ(again.levels[l].lambda, fresh.levels[l].lambda);
      if (l + 1 < again.levels.size())
        CHECK(same(again.levels[l].prolongator, fresh.levels[l].prolongator));
    }
  }
}
