// Sums as if in twice the precision: their parts, and products with rows that cancel.
#include <random>

#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/formats/csr_rows.hpp"
#include "cpufree/formats/slices/sliced.hpp"
#include "cpufree/formats/slices/sliced_build.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

__extension__ using Wide = __int128;

double integer(std::mt19937_64& random, int bits) {
  const auto size = static_cast<double>(random() >> (64U - static_cast<unsigned>(bits)));
  return random() % 2 == 0 ? size : -size;
}

// A row whose terms cancel to some 1e-14 of their sizes: integers of 50 bits, and their negatives
// somewhat later.
struct Row {
  std::vector<double> a, x;
  double exact = 0.0;
};
Row cancelling(int pairs, unsigned seed) {
  std::mt19937_64 random(seed);
  Row row;
  Wide sum = 0;
  const auto add = [&](double a, double x) {
    row.a.push_back(a), row.x.push_back(x);
    sum += static_cast<Wide>(a) * static_cast<Wide>(x);
  };
  for (int k = 0; k < pairs; ++k) {
    const double a = integer(random, 50), x = integer(random, 50);
    add(a, x);
    add(-a, x + static_cast<double>(k % 2));  // what is left: sums of a
  }
  row.exact = static_cast<double>(sum);
  return row;
}

double plain_sum(const Row& row) {
  double sum = 0.0;
  for (std::size_t k = 0; k < row.a.size(); ++k) sum += row.a[k] * row.x[k];
  return sum;
}

// A matrix whose first row is `row`, among shorter ones, and the operand.
Matrix<double> with_row(const Row& row) {
  const auto n = static_cast<std::int32_t>(row.a.size());
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) {
    e[{0, i}] = row.a[at(i)];
    if (i > 0) e[{i, i}] = row.a[at(i)];
  }
  return from_entries<double>(n, e);
}

}  // namespace

TEST(product_and_its_error_are_the_exact_product) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 10000; ++k) {
    const double a = integer(random, 53), x = integer(random, 53);
    const ExactProduct product = exact_product(a, x);
    CHECK_EQ(product.high, a * x);
    CHECK(static_cast<Wide>(product.high) + static_cast<Wide>(product.low) ==
          static_cast<Wide>(a) * static_cast<Wide>(x));
  }
}

TEST(sum_of_terms_that_cancel_has_all_digits) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Row row = cancelling(500, seed);
    AccurateSum<double> sum;
    for (std::size_t k = 0; k < row.a.size(); ++k) sum.add_product(row.a[k], row.x[k]);
    CHECK_NEAR(sum.below(row.exact), 0.0, 1e-13 * std::abs(row.exact));
    CHECK(std::abs(plain_sum(row) - row.exact) > 1e-7 * std::abs(row.exact));  // that is not easy
    CHECK(std::abs(sum.plain() - row.exact) > 1e-7 * std::abs(row.exact));
  }
}

TEST(halves_give_the_same_bits_in_either_order) {
  const Row row = cancelling(100, 3);
  AccurateSum<double> one, other;
  for (std::size_t k = 0; k < row.a.size(); ++k)
    (k % 3 == 0 ? one : other).add_product(row.a[k], row.x[k]);
  AccurateSum<double> a = one, b = other;
  a += other;
  b += one;
  CHECK_EQ(a.high, b.high);
  CHECK_EQ(a.low, b.low);
  CHECK_NEAR(a.below(row.exact), 0.0, 1e-13 * std::abs(row.exact));
}

TEST(numbers_at_the_end_of_the_range_have_a_plain_sum) {
  AccurateSum<double> sum;
  sum.add_product(1e306, 2.0);
  sum.add_product(1.0, 3e305);
  CHECK_NEAR(sum.below(2.5e306), 2e305, 1e291);
  sum.add_product(1e308, 1e10);
  CHECK(sum.below(1.0) == -INFINITY);
}

TEST(sums_of_single_precision_are_those_of_double) {
  AccurateSum<float> sum;
  double expected = 0.0;
  for (int k = 0; k < 1000; ++k) {
    const float a = 1.0F / static_cast<float>(k + 1), x = static_cast<float>(k % 7 - 3);
    sum.add_product(a, x);
    expected += static_cast<double>(a) * static_cast<double>(x);
  }
  CHECK_EQ(sum.below(0.0), -expected);
}

TEST(cold_products_of_the_cpu_formats_have_all_digits) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Row row = cancelling(203, seed);
    const auto a = with_row(row);
    const std::vector<std::int32_t> part(at(a.n()), 0);
    const auto local = make_halo_plan(a.view(), part, {}, 1).local[0];
    // The numbers that rows have here.
    std::vector<double> x(at(a.n()));
    std::int32_t long_row = -1;
    for (std::int32_t i = 0; i < a.n(); ++i) {
      x[at(i)] = row.x[at(local.global_row[at(i)])];
      if (local.global_row[at(i)] == 0) long_row = i;
    }
    cpu_threads::Shared shared;
    cpu_threads::Port port(shared, 0, 0);
    double rest = INFINITY;
    const auto take = [&](std::int32_t i, int, const AccurateSum<double>& sum) {
      if (i == long_row) rest = sum.below(row.exact);
    };
    const std::vector<std::uint32_t> row_ptr(local.row_ptr.begin(), local.row_ptr.end());
    const CsrRows<double> plain{row_ptr.data(), local.columns(), local.values()};
    plain.multiply(port, {0, a.n(), 0}, ColdOperand{Operand<double>{x.data()}}, take);
    CHECK_NEAR(rest, 0.0, 1e-13 * std::abs(row.exact));
    rest = INFINITY;
    SlicedRows<double, 8> built;
    append_slices(local, {0, a.n()}, built);
    const auto sliced = built.view<Sliced<double, 8>>();
    sliced.multiply(port, {0, a.n(), 0}, ColdOperand{Operand<double>{x.data()}}, take);
    CHECK_NEAR(rest, 0.0, 1e-13 * std::abs(row.exact));
  }
}
