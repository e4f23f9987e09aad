// Matrix formats give the product of the plain rows, bit for bit.
#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/formats/csr_rows.hpp"
#include "cpufree/formats/slices/sliced.hpp"
#include "cpufree/formats/slices/sliced_build.hpp"
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
std::vector<T> sliced_product(const LocalSystem<T>& local, RowRange rows, const std::vector<T>& x,
                              Indices indices) {
  SlicedRows<T, 8> built;
  append_slices(local, rows, built, indices);
  const auto format = built.template view<Sliced<T, 8, true>>();
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
void check_product(const Matrix<T>& a, const std::vector<T>& x, double tolerance,
                   Indices indices = Indices::wide) {
  const auto local = local_of(a);
  const std::vector<double> exact_x(x.begin(), x.end());
  const auto expected = reference::multiply(a.view(), exact_x);
  for (const RowRange rows : {RowRange{0, a.n()}, RowRange{a.n() / 3, a.n() / 3 + a.n() / 2}}) {
    const auto y = sliced_product(local, rows, x, indices);
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
  CHECK(built.pattern->gather.size() / 8 < built.pattern->real.size() / 50);
  CHECK(built.val.size() < local.val.size() * 115 / 100);
}

TEST(indices_take_16_bits_where_those_of_a_slice_are_near_one_another) {
  const auto near = irregular(400, 5);
  check_product(near, wave(400), 1e-11, Indices::narrow);
  const auto local = local_of(near);
  SlicedRows<double, 8> built;
  append_slices(local, {0, local.rows()}, built, Indices::narrow);
  CHECK(built.pattern->gather.empty() && !built.pattern->narrow.empty());
  // Rows 0 to 7 read columns that are far apart.
  constexpr std::int32_t n = 100000;
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) e[{i, i}] = 2.0;
  for (std::int32_t i = 0; i < 8; ++i) e[{i, 20 + 12000 * i}] = e[{20 + 12000 * i, i}] = 1.0;
  check_product(from_entries<double>(n, e), integers<double>(n), 0.0, Indices::narrow);
  const auto far = local_of(from_entries<double>(n, e));
  SlicedRows<double, 8> wide;
  append_slices(far, {0, 16}, wide, Indices::narrow);
  CHECK_EQ(wide.pattern->origin[0], -1);
  CHECK(wide.pattern->origin[1] >= 0);
}

TEST(entries_of_complex_matrices_that_are_stored_once_multiply_like_four) {
  for (const auto& pattern : {grid2d(9, 7), grid2d(4, 1), irregular(101, 5)}) {
    const auto forms = with_phases(pattern);
    const std::int32_t n = forms.real.n();
    const auto x = wave(n);
    const auto expected = reference::multiply(forms.real.view(), x);
    const auto local = local_of(forms.pairs);
    cpu_threads::Shared shared;
    cpu_threads::Port port(shared, 0, 0);
    for (const RowRange rows : {RowRange{0, n}, RowRange{2, n / 4 * 2}}) {
      SlicedRows<double, 8> built;
      built.pattern->pairs = true;
      append_slices(local, rows, built);
      const auto format = built.view<Sliced<double, 8>>();
      int seen = 0;
      const auto near = [&](std::int32_t i, double value) {
        CHECK_NEAR(value, expected[at(i)], 1e-12);
        ++seen;
      };
      const Operand<double> operand{x.data()};
      format.multiply(port, {rows.begin, rows.end, 0}, operand,
                      [&](std::int32_t i, int, double value) { near(i, value); });
      format.multiply(
          port, {rows.begin, rows.end, 0}, ColdOperand{operand},
          [&](std::int32_t i, int, const AccurateSum<double>& sum) { near(i, sum.plain()); });
      CHECK_EQ(seen, 2 * rows.size());
    }
  }
}

TEST(rows_of_complex_matrices_have_the_sizes_of_their_real_form) {
  const auto forms = with_phases(irregular(40, 5));
  const std::int32_t n = forms.real.n();
  SlicedRows<double, 8> built;
  built.pattern->pairs = true;
  append_slices(local_of(forms.pairs), {0, n}, built);
  for (std::int32_t row = 0; row < n; row += 8) {
    const auto sizes = row_sizes(built, at(row / 8), row);
    for (std::int32_t i = row; i < std::min(n, row + 8); ++i) {
      RowSize size;
      for (std::int64_t k = forms.real.row_ptr[at(i)]; k < forms.real.row_ptr[at(i) + 1]; ++k)
        size.add(forms.real.val[at(k)], forms.real.col[at(k)] == i);
      CHECK_NEAR(sizes[at(i - row)].sum, size.sum, 1e-12);
      CHECK_EQ(sizes[at(i - row)].diagonal, size.diagonal);
    }
  }
}

TEST(slices_of_an_empty_range_are_none) {
  const auto local = local_of(grid2d(3, 3));
  SlicedRows<double, 8> built;
  append_slices(local, {4, 4}, built);
  CHECK_EQ(built.pattern->slice_ptr.size(), std::size_t{1});
}

TEST(padding_of_boundary_slices_reads_no_ghost) {
  const auto a = irregular(60, 21);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 2, 3), {}, 2);
  for (const auto& local : plan.local) {
    SlicedRows<double, 8> built;
    append_slices(local, {local.interior, local.rows()}, built);
    const auto view = built.view<Sliced<double, 8>>();
    for (std::size_t s = 0; s < built.pattern->slices(); ++s)
      for (std::int64_t c = view.slice_ptr[s]; c < view.slice_ptr[s + 1]; ++c)
        for (int l = 0; l < 8; ++l) {
          const std::int32_t index = built.pattern->index<8>(s, c, l);
          CHECK(index >= 0 && index < local.rows() + local.ghosts);
          if (view.val[c * 8 + l] == 0.0) CHECK(index < local.rows());
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
