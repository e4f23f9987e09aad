// Hierarchies of smoothed aggregation beside the mathematics.
#include <sched.h>

#include <cmath>

#include "cpufree/base/cores.hpp"
#include "cpufree/multigrid/galerkin.hpp"
#include "cpufree/multigrid/hierarchy.hpp"
#include "cpufree/multigrid/noise.hpp"
#include "cpufree/multigrid/transfer.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/reference/multigrid.hpp"
#include "harness.hpp"
#include "matrices.hpp"
#include "reference_levels.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_levels;

TEST(strong_couplings_are_those_of_the_reference) {
  const auto a = grid3d(5, 0.05);
  const auto h = hierarchy_of(a);
  const auto owner = slabs(a.n(), 2);
  const multigrid::Strength strong(h.levels[0].matrix, 0.08);
  const auto graph = multigrid::strong_graph(h.levels[0].matrix, owner, strong);
  const auto expected =
      reference::strong_graph(reference::sparse(a.view()), {owner.begin(), owner.end()}, 0.08);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::vector<std::size_t>(graph.col.begin() + graph.row_ptr[i],
                                   graph.col.begin() + graph.row_ptr[i + 1]) == expected[i]);
}

TEST(independent_sets_are_those_that_the_serial_method_finds_by_the_same_keys) {
  for (const auto& a : {grid2d(23, 17), irregular(400, 3)}) {
    const auto h = hierarchy_of(a);
    const std::vector<std::int32_t> owner(at(a.n()), 0);
    const auto graph = multigrid::strong_graph(h.levels[0].matrix, owner,
                                               multigrid::Strength(h.levels[0].matrix, 0.01));
    reference::Graph serial(at(a.n()));
    std::vector<std::uint64_t> keys;
    for (std::int32_t i = 0; i < a.n(); ++i) {
      serial[at(i)].assign(graph.col.begin() + graph.row_ptr[at(i)],
                           graph.col.begin() + graph.row_ptr[at(i) + 1]);
      keys.push_back(multigrid::hash(i) >> 34 << 32 | static_cast<std::uint32_t>(i));
    }
    std::vector<char> candidate(at(a.n()), 1);
    for (std::size_t i = 0; i < candidate.size(); i += 7) candidate[i] = 0;
    CHECK(multigrid::independent_set(graph, candidate) ==
          reference::independent_set(serial, candidate, keys));
  }
}

TEST(aggregates_cover_all_rows_with_strong_couplings_and_stay_inside_a_pe) {
  const auto a = irregular(500, 4);
  const auto h = hierarchy_of(a);
  for (const int pes : {1, 3}) {
    const auto owner = slabs(a.n(), pes);
    const auto graph = multigrid::strong_graph(h.levels[0].matrix, owner,
                                               multigrid::Strength(h.levels[0].matrix, 0.02));
    const auto made = multigrid::aggregate(graph, h.levels[0].matrix);
    int outside = 0, lonely = 0;
    for (std::int32_t i = 0; i < a.n(); ++i) {
      const std::int32_t c = made.of_row[at(i)];
      if ((c < 0) != (graph.isolated[at(i)] != 0)) ++lonely;
      if (c >= 0 && owner[at(i)] != owner[at(made.roots[at(c)])]) ++outside;
    }
    CHECK_EQ(lonely, 0);
    CHECK_EQ(outside, 0);
  }
}

TEST(the_prolongator_is_that_of_the_reference) {
  const auto a = grid3d(6, 0.05);
  const auto h = hierarchy_of(a);
  const auto& matrix = h.levels[0].matrix;
  const auto owner = slabs(a.n(), 1);
  const multigrid::Strength strong(matrix, 0.08);
  Vec constant(at(a.n()));
  for (std::size_t i = 0; i < constant.size(); ++i) constant[i] = 1.0 + 0.1 * double(i % 3);
  const auto made = multigrid::aggregate(multigrid::strong_graph(matrix, owner, strong), matrix);
  const auto diagonal = multigrid::filtered_diagonal(matrix, constant, strong);
  const auto p = prolongator(matrix, made, constant, 1.9, strong, diagonal);
  const auto expected =
      reference::smoothed_prolongator(sparse(matrix), {made.of_row.begin(), made.of_row.end()},
                                      constant, 0.08, 1.9, multigrid::kLeastDiagonal);
  CHECK(distance(sparse(p), expected) < 1e-14);
}

TEST(coarse_matrices_are_galerkin_products_with_a_diagonal_of_ones) {
  const auto h = hierarchy_of(grid2d(40, 30), 2);
  CHECK(h.levels.size() > 2);
  for (std::size_t l = 0; l + 1 < h.levels.size(); ++l) {
    const auto& coarse = h.levels[l + 1].matrix;
    const auto product = reference::galerkin_product(
        sparse(h.levels[l].matrix), sparse(h.levels[l].prolongator), at(coarse.rows()));
    CHECK(distance(sparse(coarse), product) < 1e-12);
    for (std::size_t i = 0; i < product.size(); ++i)
      CHECK(std::abs(product[i].at(i) - 1.0) < 1e-12);
  }
}

TEST(the_prolongator_reproduces_the_constant_where_a_takes_it_to_zero) {
  const auto a = grid2d(40, 40);
  const auto h = hierarchy_of(a);
  const auto& matrix = h.levels[0].matrix;
  const Vec ones(at(a.n()), 1.0);
  const multigrid::Strength strong(matrix, 0.08);
  const auto made =
      multigrid::aggregate(multigrid::strong_graph(matrix, slabs(a.n(), 2), strong), matrix);
  const auto p = prolongator(matrix, made, ones, 2.0, strong, Vec(at(a.n()), 1.0));
  const Vec found = reference::multiply(sparse(p), Vec(at(made.count), 1.0));
  const Vec image = reference::multiply(sparse(matrix), ones);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (image[i] == 0.0) CHECK(std::abs(found[i] - 1.0) < 1e-14);
}

TEST(the_filtered_diagonal_keeps_the_constant_and_a_part_of_itself) {
  const auto a = grid3d(6, 0.05);
  const auto h = hierarchy_of(a);
  const auto& matrix = h.levels[0].matrix;
  const Vec ones(at(a.n()), 1.0);
  const multigrid::Strength strong(matrix, 0.08);
  const auto diagonal = multigrid::filtered_diagonal(matrix, ones, strong);
  const Sparse s = sparse(matrix);
  const Vec image = reference::multiply(s, ones);
  for (std::size_t i = 0; i < s.size(); ++i) {
    double sum = diagonal[i];
    const auto row = static_cast<std::int32_t>(i);
    for (std::int64_t k = matrix.begin(row); k < matrix.end(row); ++k)
      if (strong(matrix, row, k)) sum += matrix.val[at(k)];
    CHECK(std::abs(sum - image[i]) < 1e-12);
  }
  const auto all = multigrid::filtered_diagonal(
      matrix, ones, multigrid::Strength(matrix, 10.0));  // all entries are weak
  for (const double d : all) CHECK(d >= multigrid::kLeastDiagonal);
}

TEST(the_cycle_is_symmetric_and_positive_definite) {
  const auto a = irregular(300, 6);
  const Serial m(hierarchy_of(a));
  for (int k = 0; k < 5; ++k) {
    Vec u(at(a.n())), v(at(a.n()));
    for (std::int32_t i = 0; i < a.n(); ++i)
      u[at(i)] = multigrid::noise(i + 1000 * k), v[at(i)] = multigrid::noise(i - 7000 * (k + 1));
    const Vec mu = m.apply(u), mv = m.apply(v);
    CHECK(std::abs(reference::dot(mu, v) - reference::dot(u, mv)) <
          1e-12 * std::sqrt(reference::dot(mu, mu) * reference::dot(v, v)));
    CHECK(reference::dot(u, mu) > 0.0);
  }
}

TEST(the_largest_eigenvalue_is_found_within_a_tenth) {
  const auto h = hierarchy_of(grid2d(40, 40));
  const double exact = 1.0 + std::cos(M_PI / 41.0);
  CHECK(h.levels[0].lambda < exact + 1e-12 && h.levels[0].lambda > 0.93 * exact);
}

TEST(the_dense_inverse_is_one_and_leaves_singular_rows_out) {
  const auto h = hierarchy_of(grid2d(9, 8), 1, {.coarsest = 40});
  CHECK_EQ(h.levels.size(), std::size_t{2});
  const auto& a = h.levels[1].matrix;
  const Sparse product = reference::multiply(Serial(h).solve, sparse(a));
  for (std::size_t i = 0; i < product.size(); ++i)
    for (const auto& [j, value] : product[i]) CHECK(std::abs(value - (i == j ? 1.0 : 0.0)) < 1e-12);
  multigrid::SparseMatrix singular;
  singular.columns = 3;
  singular.row_ptr.assign({0, 2, 4, 5});
  singular.col.assign({0, 1, 0, 1, 2});
  singular.val.assign({1.0, -1.0, -1.0, 1.0, 1.0});
  CHECK(multigrid::dense_inverse(singular) == std::vector<double>({1, 0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(where_constants_are_null_the_last_level_has_the_pseudo_inverse) {
  auto a = grid2d(40, 30);  // without the boundary: every row sums to 0
  for (std::int32_t i = 0; i < a.n(); ++i) {
    double sum = 0.0;
    std::size_t diagonal = 0;
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      if (a.col[k] == i)
        diagonal = k;
      else
        sum -= a.val[k];
    a.val[diagonal] = sum;
  }
  const Serial h(hierarchy_of(a));
  const Sparse& last = h.levels.back().a;
  const Sparse back = reference::multiply(reference::multiply(last, h.solve), last);
  for (std::size_t i = 0; i < last.size(); ++i)
    for (const auto& [j, value] : back[i])
      CHECK(std::abs(value - (last[i].contains(j) ? last[i].at(j) : 0.0)) < 1e-11);
  double trace = 0.0;  // of a projection: its rank
  const Sparse projection = reference::multiply(h.solve, last);
  for (std::size_t i = 0; i < projection.size(); ++i) trace += projection[i].at(i);
  CHECK(std::abs(trace - static_cast<double>(last.size() - 1)) < 1e-9);
}

TEST(with_the_prolongators_of_a_hierarchy_the_same_one_is_made) {
  const auto a = grid3d(12, 0.1);
  const auto h = hierarchy_of(a);
  std::vector<multigrid::SparseMatrix> given;
  std::vector<double> scale = h.scale;  // prolongators between levels as they are: S P / S'
  for (std::size_t l = 0; l + 1 < h.levels.size(); ++l) {
    auto& p = given.emplace_back(h.levels[l].prolongator);
    for (std::int32_t row = 0; row < p.rows(); ++row)
      for (std::int64_t k = p.begin(row); k < p.end(row); ++k)
        p.val[at(k)] *= scale[at(row)] / (1.0 + p.col[at(k)] % 3);
    scale.clear();
    for (std::int32_t c = 0; c < p.columns; ++c) scale.push_back(1.0 + c % 3);
  }
  const auto made = multigrid::hierarchy_of_prolongators(a.view(), given, kDeep);
  CHECK_EQ(made.levels.size(), h.levels.size());
  for (std::size_t l = 0; l < h.levels.size(); ++l) {
    CHECK(distance(sparse(made.levels[l].matrix), sparse(h.levels[l].matrix)) < 1e-12);
    CHECK(std::abs(made.levels[l].lambda - h.levels[l].lambda) < 1e-12);
  }
  CHECK_EQ(iterations(a, Serial(made)), iterations(a, Serial(h)));
}

TEST(iterations_hardly_grow_with_the_system) {
  const auto small = grid2d(30, 30), large = grid2d(120, 120);
  const auto few = iterations(small, Serial(hierarchy_of(small)));
  const auto more = iterations(large, Serial(hierarchy_of(large)));
  CHECK(few <= 13);
  CHECK(more <= few + 3);
}

TEST(iterations_hardly_depend_on_the_number_of_pes) {
  const auto a = grid3d(20);
  const auto one = iterations(a, Serial(hierarchy_of(a)));
  for (const int pes : {2, 3, 4})
    CHECK(std::abs(iterations(a, Serial(hierarchy_of(a, pes))) - one) <= 1);
}

TEST(weak_couplings_are_left_out_of_aggregates_and_iterations_stay_few) {
  const auto a = grid3d(20, 1e-3);
  CHECK(iterations(a, Serial(hierarchy_of(a))) <= 14);
}

TEST(a_diagonal_matrix_has_one_level_and_says_why) {
  Entries e;
  for (std::int32_t i = 0; i < 30; ++i) e[{i, i}] = 1.0 + i;
  const auto h = hierarchy_of(from_entries<double>(30, e));
  CHECK_EQ(h.levels.size(), std::size_t{1});
  CHECK(h.inverse.empty());
  CHECK(h.why.find("no row") != std::string::npos);
}

TEST(penalty_rows_stay_out_of_all_aggregates) {
  auto a = grid2d(20, 20);
  for (std::int32_t i = 0; i < a.n(); i += 9)
    for (auto k = at(a.row_ptr[at(i)]); k < at(a.row_ptr[at(i) + 1]); ++k)
      if (a.col[k] == i) a.val[k] = 1e30;
  const auto h = hierarchy_of(a);
  const auto& p = h.levels[0].prolongator;
  int reached = 0;
  for (std::int32_t i = 0; i < a.n(); i += 9) reached += p.end(i) > p.begin(i) ? 1 : 0;
  CHECK_EQ(reached, 0);
  CHECK(iterations(a, Serial(h)) <= 14);
}

TEST(rows_of_many_small_couplings_have_strong_ones) {
  Entries e;  // 27-point: 26 couplings of 1/26
  const std::int32_t m = 9;
  for (std::int32_t k = 0; k < m * m * m; ++k)
    for (std::int32_t d = 0; d < 27; ++d) {
      const std::int32_t x = k % m + d % 3 - 1, y = k / m % m + d / 3 % 3 - 1,
                         z = k / (m * m) + d / 9 - 1;
      if (std::min({x, y, z}) >= 0 && std::max({x, y, z}) < m)
        e[{k, x + m * (y + m * z)}] = d == 13 ? 26.0 : -1.0;
    }
  const auto a = from_entries<double>(m * m * m, e);
  const auto h = hierarchy_of(a);
  CHECK(h.levels.size() > 1);
  CHECK(iterations(a, Serial(h)) <= 10);
}

TEST(a_hierarchy_has_the_same_bits_on_one_core_as_on_all) {
  const auto a = grid2d(190, 180);  // several pieces of work
  const auto all = hierarchy_of(a, 3);
  cpu_set_t before, one;
  CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  CHECK_EQ(available_cores(), 1);
  const auto alone = hierarchy_of(a, 3);
  CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  CHECK_EQ(alone.levels.size(), all.levels.size());
  for (std::size_t l = 0; l < all.levels.size(); ++l) {
    CHECK(alone.levels[l].matrix.col == all.levels[l].matrix.col);
    CHECK(alone.levels[l].matrix.val == all.levels[l].matrix.val);
    CHECK(alone.levels[l].prolongator.val == all.levels[l].prolongator.val);
    CHECK_EQ(alone.levels[l].lambda, all.levels[l].lambda);
  }
  CHECK(alone.inverse == all.inverse);
}

TEST(a_product_that_takes_too_many_multiplications_is_left_out) {
  const auto h = hierarchy_of(grid2d(20, 20));
  const auto& a = h.levels[0].matrix;
  const auto& p = h.levels[0].prolongator;
  double first = 0.0, second = 0.0;  // of A P, and of P^T times that
  const Sparse ap = reference::multiply(sparse(a), sparse(p));
  for (std::int32_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t k = a.begin(i); k < a.end(i); ++k)
      first += static_cast<double>(p.end(a.col[at(k)]) - p.begin(a.col[at(k)]));
    second += static_cast<double>(p.end(i) - p.begin(i)) * static_cast<double>(ap[at(i)].size());
  }
  const auto product = [&](double most) {
    multigrid::SparsePattern upper;
    return multigrid::galerkin_product(multigrid::view_of(a), multigrid::view_of(p), most, upper);
  };
  CHECK(!product(std::max(first, second) - 1.0).has_value());
  CHECK(product(std::max(first, second)).has_value());
}

TEST(coarse_matrices_are_symmetric_to_the_last_bit) {
  const auto a = irregular(400, 4);
  const auto h = hierarchy_of(a);
  CHECK(h.levels.size() > 1);
  const Sparse coarse = sparse(h.levels[1].matrix);
  for (std::size_t i = 0; i < coarse.size(); ++i)
    for (const auto& [j, value] : coarse[i]) CHECK_EQ(value, coarse[j].at(i));
}

TEST(a_level_that_would_be_dense_is_left_out_with_the_reason) {
  const auto h = hierarchy_of(grid2d(30, 30), 1, {.coarsest = 10, .most_complexity = 1.1});
  CHECK_EQ(h.levels.size(), std::size_t{1});
  CHECK(h.why.find("dense") != std::string::npos);
  CHECK(h.inverse.empty());
}
