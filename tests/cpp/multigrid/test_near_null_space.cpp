// Systems of several unknowns a node, and hierarchies whose numbers alone are made again.
#include <cmath>

#include "cpufree/multigrid/hierarchy.hpp"
#include "cpufree/reference/multigrid.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

using multigrid::NearNullSpace;
using multigrid::SparseMatrix;

constexpr multigrid::Options kDeep{.coarsest = 10};

// Two unknowns a node on a grid of m x m nodes: coupled to one another in a node, and each to that
// of its neighbours.
Matrix<double> pairs(std::int32_t m, double coefficient = 1.0) {
  Entries e;
  for (std::int32_t k = 0; k < m * m; ++k)
    for (std::int32_t c = 0; c < 2; ++c) {
      const std::int32_t i = 2 * k + c;
      e[{i, i}] = 4.0 + 0.1 * coefficient;
      e[{i, 2 * k + 1 - c}] = 0.5;
      const auto couple = [&](std::int32_t j) { e[{i, j}] = e[{j, i}] = -1.0; };
      if (k % m + 1 < m) couple(i + 2);
      if (k / m + 1 < m) couple(i + 2 * m);
    }
  return from_entries<double>(2 * m * m, e);
}

// Three vectors: two translations, and one that is no combination of these anywhere.
NearNullSpace three_vectors(std::int32_t nodes) {
  NearNullSpace near;
  near.modes = 3;
  near.nodes = nodes;
  for (std::int32_t k = 0; k < nodes; ++k)
    for (std::int32_t c = 0; c < 2; ++c) {
      near.node.push_back(k);
      near.vectors.push_back(c == 0 ? 1.0 : 0.0);
      near.vectors.push_back(c == 1 ? 1.0 : 0.0);
      near.vectors.push_back(std::sin(0.3 * k + c));
    }
  return near;
}

std::vector<std::int32_t> halves(std::int32_t rows) {
  std::vector<std::int32_t> owner(at(rows));
  for (std::int32_t i = 0; i < rows; ++i) owner[at(i)] = i < rows / 2 ? 0 : 1;
  return owner;
}

bool same_pattern(const SparseMatrix& a, const SparseMatrix& b) {
  return std::ranges::equal(a.row_ptr, b.row_ptr) && std::ranges::equal(a.col, b.col);
}
double distance(const SparseMatrix& a, const SparseMatrix& b) {
  double most = 0.0;
  for (std::size_t k = 0; k < a.val.size(); ++k)
    most = std::max(most, std::abs(a.val[k] - b.val[k]));
  return most;
}

reference::Sparse sparse(const SparseMatrix& a) {
  return reference::sparse(CsrView<double>{a.rows(), a.row_ptr, a.col, a.val});
}
// The largest difference of two matrices whose patterns may differ by zeros.
double distance(const reference::Sparse& a, const reference::Sparse& b) {
  double most = a.size() == b.size() ? 0.0 : 1e300;
  for (std::size_t i = 0; i < a.size() && most < 1e300; ++i) {
    auto left = a[i];
    for (const auto& [j, value] : b[i]) left[j] -= value;
    for (const auto& [j, value] : left) most = std::max(most, std::abs(value));
  }
  return most;
}

}  // namespace

TEST(tentative_columns_are_orthonormal_and_give_the_vectors) {
  const auto near = three_vectors(40);
  std::vector<std::int32_t> of_row(80, -1);  // aggregates of 4 nodes; the last ones are of none
  for (std::size_t i = 0; i < 72; ++i) of_row[i] = static_cast<std::int32_t>(i / 8);
  const auto t = multigrid::tentative_prolongator(near, of_row, 9);
  CHECK_EQ(t.columns(), 27);
  for (std::int32_t c = 0; c < 9; ++c)
    for (std::size_t p = 0; p < 3; ++p)
      for (std::size_t q = 0; q < 3; ++q) {
        double dot = 0.0;
        for (std::size_t i = at(8 * c); i < at(8 * c + 8); ++i)
          dot += t.values[3 * i + p] * t.values[3 * i + q];
        CHECK(std::abs(dot - (p == q ? 1.0 : 0.0)) < 1e-14);
      }
  for (std::size_t i = 0; i < 72; ++i)
    for (std::size_t m = 0; m < 3; ++m) {
      double value = 0.0;
      for (std::size_t q = 0; q < 3; ++q)
        value += t.values[3 * i + q] * t.coarse.vectors[3 * (3 * at(of_row[i]) + q) + m];
      CHECK(std::abs(value - near.vectors[3 * i + m]) < 1e-14);
    }
}

TEST(dependent_vectors_of_an_aggregate_make_fewer_columns) {
  auto near = three_vectors(6);
  for (std::size_t i = 0; i < 12; ++i) near.vectors[3 * i + 2] = 2.0 * near.vectors[3 * i];
  std::vector<std::int32_t> of_row(12, 0);
  for (std::size_t i = 8; i < 12; ++i) of_row[i] = 1;
  const auto t = multigrid::tentative_prolongator(near, of_row, 2);
  CHECK_EQ(t.columns(), 4);
  CHECK(t.coarse.node == std::vector<std::int32_t>({0, 0, 1, 1}));
}

TEST(unknowns_of_a_node_are_of_one_aggregate) {
  const auto a = pairs(20);
  const auto near = three_vectors(400);
  const auto h = multigrid::make_hierarchy(a.view(), halves(a.n()), {}, kDeep, &near);
  CHECK(h.levels.size() > 2);
  CHECK_EQ(h.coarsenings.front().aggregates.of_row.size(), std::size_t{400});
  CHECK_EQ(h.levels[1].matrix.rows(), 3 * h.coarsenings[0].aggregates.count);
}

// Levels beside those of the reference, from the aggregates that have been found.
void check_levels(const Matrix<double>& a, const NearNullSpace& near,
                  std::vector<std::int32_t> node) {
  const auto h = multigrid::make_hierarchy(a.view(), halves(a.n()), {}, kDeep, &near);
  CHECK(h.levels.size() > 2);
  const std::size_t modes = at(near.modes);
  std::vector<reference::Vec> vectors(modes, reference::Vec(at(a.n())));
  for (std::size_t i = 0; i < vectors[0].size(); ++i)
    for (std::size_t m = 0; m < modes; ++m)
      vectors[m][i] = near.vectors[modes * i + m] / h.scale[i];
  for (std::size_t l = 0; l + 1 < h.levels.size(); ++l) {
    const auto& aggregates = h.coarsenings[l].aggregates;
    std::vector<int> of_row;
    for (const std::int32_t n : node) of_row.push_back(aggregates.of_row[at(n)]);
    const auto fine = sparse(h.levels[l].matrix);
    const auto t = reference::tentative_prolongator(of_row, aggregates.count, vectors);
    auto p = reference::smoothed_prolongator(fine, t, h.levels[l].lambda);
    const auto columns = vectors.front().size();
    const auto coarse = reference::galerkin_product(fine, p, columns);
    for (auto& row : p)
      for (auto& [c, value] : row) value /= std::sqrt(coarse[c].at(c));
    CHECK(distance(sparse(h.levels[l].prolongator), p) < 1e-12);
    CHECK(distance(sparse(h.levels[l + 1].matrix), reference::galerkin_product(fine, p, columns)) <
          1e-12);
    for (auto& v : vectors)
      for (std::size_t c = 0; c < columns; ++c) v[c] *= std::sqrt(coarse[c].at(c));
    node.assign(columns, 0);
    for (std::size_t i = 0; i < t.size(); ++i)
      for (const auto& [c, value] : t[i]) node[c] = of_row[i];
  }
}

TEST(levels_of_several_unknowns_a_node_are_those_of_the_reference) {
  auto near = three_vectors(144);
  for (std::size_t i = 0; i < near.vectors.size() / 2; i += 3)  // dependent in some aggregates
    near.vectors[i + 2] = 3.0 * near.vectors[i + 1];
  check_levels(pairs(12), near, near.node);
}

TEST(levels_of_several_vectors_of_single_rows_are_those_of_the_reference) {
  NearNullSpace near;
  near.modes = 2;
  std::vector<std::int32_t> node;
  for (std::int32_t i = 0; i < 18 * 15; ++i) {
    node.push_back(i);
    near.vectors.push_back(1.0);
    near.vectors.push_back(std::sin(0.1 * i));
  }
  check_levels(grid2d(18, 15), near, node);
}

TEST(with_the_same_values_a_hierarchy_is_made_again_to_the_bit) {
  const auto near = three_vectors(400);
  const auto a = pairs(20);
  const auto grid = grid2d(40, 30);
  for (const NearNullSpace* given : {static_cast<const NearNullSpace*>(nullptr), &near}) {
    const auto& matrix = given == nullptr ? grid : a;
    const auto owner = halves(matrix.n());
    auto one = multigrid::make_hierarchy(matrix.view(), owner, {}, kDeep, given);
    const auto two =
        multigrid::remake_hierarchy(matrix.view(), owner, one.coarsenings, kDeep, given);
    CHECK_EQ(one.levels.size(), two.levels.size());
    CHECK(one.inverse == two.inverse);
    for (std::size_t l = 0; l < one.levels.size(); ++l) {
      CHECK(same_pattern(one.levels[l].matrix, two.levels[l].matrix));
      CHECK(one.levels[l].matrix.val == two.levels[l].matrix.val);
      CHECK(one.levels[l].prolongator.val == two.levels[l].prolongator.val);
      CHECK_EQ(one.levels[l].lambda, two.levels[l].lambda);
      CHECK(one.levels[l].owner == two.levels[l].owner);
    }
  }
}

TEST(with_other_values_the_patterns_are_kept) {
  const auto a = grid2d(40, 30);
  auto other = a;
  for (std::size_t k = 0; k < other.val.size(); ++k)
    if (other.val[k] < 0.0) other.val[k] *= 1e-3;  // all weak, had strength been looked at
  const auto owner = halves(a.n());
  auto one = multigrid::make_hierarchy(a.view(), owner, {}, kDeep);
  const auto two = multigrid::remake_hierarchy(other.view(), owner, one.coarsenings, kDeep);
  CHECK_EQ(one.levels.size(), two.levels.size());
  for (std::size_t l = 0; l < one.levels.size(); ++l) {
    CHECK(same_pattern(one.levels[l].matrix, two.levels[l].matrix));
    if (l + 1 < one.levels.size())
      CHECK(same_pattern(one.levels[l].prolongator, two.levels[l].prolongator));
  }
  CHECK(distance(one.levels[0].matrix, two.levels[0].matrix) > 0.2);
}
