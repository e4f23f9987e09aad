// Matrix formats give the product of the plain rows, bit for bit.
#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/formats/csr_rows.hpp"
#include "cpufree/formats/sliced.hpp"
#include "cpufree/formats/sliced_build.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/solvers/context.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

template <class T>
LocalSystem<T> local_of(const Matrix<T>& a) {
  const std::vector<std::int32_t> part(static_cast<std::size_t>(a.n()), 0);
  return make_halo_plan(a.view(), part, {}, 1).local[0];
}

template <class T>
std::vector<T> sliced_product(const LocalSystem<T>& local, RowRange rows, const std::vector<T>& x) {
  SlicedRows<T, 8> built;
  append_slices(local, rows, built);
  const Sliced<T, 8> format{built.slice_ptr.data(), built.base.data(), built.gather.data(),
                            built.val.data()};
  cpu_threads::Shared shared;
  cpu_threads::Port port(shared, 0, 0);
  std::vector<T> y(x.size(), T{-1});
  format.multiply(port, {rows.begin, rows.end, 0}, Operand<T>{x.data()},
                  [&](std::int32_t i, int, T value) { y[static_cast<std::size_t>(i)] = value; });
  return y;
}

// Sums a row as the formats do: in the order of the columns, a fused step at a time or not, as the
// compiler chose. Equal to rounding; bitwise where products are exact.
template <class T>
void check_product(const Matrix<T>& a, const std::vector<T>& x, double tolerance) {
  const auto local = local_of(a);
  const std::vector<double> exact_x(x.begin(), x.end());
  const auto expected = reference::multiply(a.view(), exact_x);
  for (const RowRange rows : {RowRange{0, a.n()}, RowRange{a.n() / 3, a.n() / 3 + a.n() / 2}}) {
    const auto y = sliced_product(local, rows, x);
    for (std::int32_t i = 0; i < a.n(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      const bool inside = i >= rows.begin && i < rows.end;
      CHECK_NEAR(static_cast<double>(y[k]), inside ? expected[k] : -1.0, tolerance);
    }
  }
}

template <class T>
std::vector<T> integers(std::int32_t n) {
  std::vector<T> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(static_cast<int>(i * 7 % 13) - 6);
  return x;
}

}  // namespace

TEST(slices_of_a_grid_multiply_exactly) {
  for (const std::int32_t nx : {1, 2, 5, 8, 9, 17})
    check_product(grid2d(nx, 7), integers<double>(nx * 7), 0.0);
}

TEST(slices_of_a_grid_multiply_exactly_in_single_precision) {
  check_product(grid2d<float>(13, 11), integers<float>(143), 0.0);
}

TEST(slices_of_irregular_rows_multiply_to_rounding) {
  for (const std::int32_t n : {1, 3, 8, 50, 257}) check_product(irregular(n, 5), wave(n), 1e-11);
}

TEST(slices_of_a_grid_hardly_gather) {
  const auto local = local_of(grid2d(64, 64));
  SlicedRows<double, 8> built;
  append_slices(local, {0, local.rows()}, built);
  CHECK(built.gather.size() / 8 < built.base.size() / 50);
  CHECK(built.val.size() < local.val.size() * 115 / 100);
}

TEST(slices_of_an_empty_range_are_none) {
  const auto local = local_of(grid2d(3, 3));
  SlicedRows<double, 8> built;
  append_slices(local, {4, 4}, built);
  CHECK_EQ(built.slice_ptr.size(), std::size_t{1});
}

TEST(padding_of_boundary_slices_reads_no_ghost) {
  const auto a = irregular(60, 21);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 2, 3), {}, 2);
  for (const auto& local : plan.local) {
    SlicedRows<double, 8> built;
    append_slices(local, {local.interior, local.rows()}, built);
    for (std::size_t c = 0; c < built.base.size(); ++c)
      for (int l = 0; l < 8; ++l) {
        const std::int32_t index = built.base[c] >= 0
                                       ? built.base[c] + l
                                       : built.gather[static_cast<std::size_t>(~built.base[c]) * 8 +
                                                      static_cast<std::size_t>(l)];
        const bool padded = built.val[c * 8 + static_cast<std::size_t>(l)] == 0.0;
        CHECK(index >= 0 && index < local.rows() + local.ghosts);
        if (padded) CHECK(index < local.rows());
      }
  }
}

TEST(sizes_of_rows_in_slices_are_those_of_the_rows) {
  for (const auto& a : {grid2d(17, 9), irregular(123, 9)}) {
    const auto local = local_of(a);
    SlicedRows<double, 8> built;
    append_slices(local, {0, a.n()}, built);
    for (std::int32_t row = 0; row < a.n(); ++row) {
      RowSize expected;
      for (auto k = local.row_ptr[at(row)]; k < local.row_ptr[at(row) + 1]; ++k)
        expected.add(local.val[at(k)], local.col[at(k)] == row);
      const RowSize found = row_sizes(built, at(row / 8), row / 8 * 8)[at(row % 8)];
      CHECK_EQ(found.sum, expected.sum);
      CHECK_EQ(found.diagonal, expected.diagonal);
    }
  }
}

TEST(plain_rows_multiply_to_rounding) {
  const auto a = irregular(123, 9);
  const auto local = local_of(a);
  const std::vector<std::uint32_t> row_ptr(local.row_ptr.begin(), local.row_ptr.end());
  const CsrRows<double> format{row_ptr.data(), local.col.data(), local.val.data()};
  cpu_threads::Shared shared;
  cpu_threads::Port port(shared, 0, 0);
  const auto x = wave(a.n());
  const auto expected = reference::multiply(a.view(), x);
  int rows = 0;
  format.multiply(port, {10, 100, local.row_ptr[10]}, Operand<double>{x.data()},
                  [&](std::int32_t i, int, double v) {
                    CHECK_NEAR(v, expected[static_cast<std::size_t>(i)], 1e-11);
                    ++rows;
                  });
  CHECK_EQ(rows, 90);
}
