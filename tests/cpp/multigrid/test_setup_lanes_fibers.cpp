// Kernels that make hierarchies give the same with 32 lanes side by side, in teams of 32 or 8, as
// with one lane, of which the stand-in for GPUs has teams.
#include <algorithm>

#include "cpufree/base/index.hpp"
#include "cpufree/multigrid/setup/kernels.hpp"
#include "harness.hpp"
#include "lane_rig.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace lane_rig;
using namespace testing_matrices;
namespace setup = multigrid::setup;

namespace {

// Rows with up to a number of entries and the diagonal.
Matrix<double> scattered(std::int32_t n, std::int32_t entries) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int32_t> column(0, n - 1);
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) {
    e[{i, i}] = 1.0;
    for (std::int32_t k = 0; k < entries; ++k) {
      const std::int32_t j = column(random);
      if (j != i) e[{i, j}] = -1.0 / (1.0 + (i + 3 * j) % 17);
    }
  }
  return from_entries<double>(n, e);
}

setup::Rows rows_of(Matrix<double>& a) {
  return {a.n(), a.row_ptr.data(), a.col.data(), a.val.data()};
}

struct Product {
  std::vector<std::int32_t> length, col;
  std::vector<std::int64_t> ptr;
  std::vector<double> val;
  std::vector<std::int32_t> long_rows;
  bool operator==(const Product&) const = default;
};

// Lengths by `run`, of rows that tables of teams have room for; then these rows.
template <class F>
Product product_of(const setup::Factors& of, std::int32_t columns, int row_lanes, F&& run) {
  const std::int64_t rows = of.a.count;
  Product made;
  made.length.resize(at(rows)), made.long_rows.resize(at(rows));
  std::vector<std::int32_t> bound(at(rows));
  std::uint64_t all = 0;
  std::uint32_t longs = 0;
  run(setup::CountProducts{of, columns, bound.data(), &all});
  setup::MultiplyRows kernel;
  kernel.of = of, kernel.count = rows, kernel.bound = bound.data();
  kernel.row_lanes = row_lanes;
  kernel.length = made.length.data();
  kernel.long_rows = made.long_rows.data(), kernel.long_count = &longs;
  run(kernel);
  made.long_rows.resize(longs);
  std::ranges::sort(made.long_rows);
  for (const std::int32_t row : made.long_rows) made.length[at(row)] = 0;
  made.ptr.assign(1, 0);
  for (const std::int32_t length : made.length) made.ptr.push_back(made.ptr.back() + length);
  made.col.resize(at(made.ptr.back())), made.val.resize(at(made.ptr.back()));
  // Rows that are left out have no room.
  std::vector<std::int32_t> list;
  for (std::int64_t row = 0; row < rows; ++row)
    if (!std::ranges::binary_search(made.long_rows, row))
      list.push_back(static_cast<std::int32_t>(row));
  kernel.count = std::ssize(list), kernel.list = list.data();
  kernel.length = nullptr;
  kernel.to = {rows, made.ptr.data(), nullptr, made.val.data()};
  kernel.to_col = made.col.data();
  run(kernel);
  return made;
}

void check_product(const setup::Factors& of, std::int32_t columns, bool some_long = false) {
  const auto one = product_of(of, columns, kWarp, [](const auto& k) { run_by_one(k); });
  CHECK(one.long_rows.empty());
  CHECK(one.ptr.back() > 0);
  for (const int row_lanes : {setup::kFewLanes, kWarp}) {
    const auto many = product_of(of, columns, row_lanes, [](const auto& k) { run_by_warp(k); });
    if (some_long && row_lanes == setup::kFewLanes)
      CHECK(!many.long_rows.empty());
    else
      CHECK(many == one);
  }
}

}  // namespace

TEST(products_of_matrices_are_those_of_one_lane) {
  auto grid = grid2d(6, 5);
  auto other = scattered(30, 5);
  setup::Factors of;
  of.a = rows_of(grid), of.b = rows_of(other);
  check_product(of, other.n());
  std::swap(of.a, of.b);
  check_product(of, other.n());
}

TEST(rows_that_are_too_long_for_teams_of_eight_are_listed) {
  auto dense = scattered(104, 24);
  setup::Factors of;
  of.a = of.b = rows_of(dense);
  check_product(of, dense.n(), true);
}

TEST(prolongators_are_those_of_one_lane) {
  for (const int entries : {2, 12, 40}) {
    auto a = scattered(56, entries);
    std::vector<std::int32_t> aggregate(at(a.n()));
    for (std::int32_t i = 0; i < a.n(); ++i) aggregate[at(i)] = i % 11 == 0 ? -1 : i / 7;
    std::vector<double> constant(at(a.n())), diagonal(at(a.n()), 0.8);
    for (std::size_t i = 0; i < constant.size(); ++i)
      constant[i] = 1.0 + 0.01 * static_cast<double>(i);
    const std::vector<std::uint8_t> bits(at(multigrid::byte_of_row(a.n() + 1, a.row_ptr.back())),
                                         0xb7);
    setup::Factors of;
    of.a = rows_of(a);
    of.aggregate = aggregate.data(), of.constant = constant.data(), of.strong = {bits.data()};
    of.diagonal = diagonal.data(), of.omega = 0.6;
    check_product(of, a.n() / 7 + 1);
  }
}

TEST(rows_in_other_places_are_those_of_one_lane) {
  auto a = scattered(40, 9);
  std::vector<std::int32_t> list, number(at(a.n()));
  for (std::int32_t i = 0; i < a.n(); ++i) list.push_back(i * 27 % a.n());
  for (std::int32_t i = 0; i < a.n(); ++i) number[at(list[at(i)])] = i;
  std::vector<std::int64_t> ptr{0};
  for (const std::int32_t row : list)
    ptr.push_back(ptr.back() + a.row_ptr[at(row) + 1] - a.row_ptr[at(row)]);
  std::vector<std::vector<std::int32_t>> col(3, std::vector<std::int32_t>(a.col.size()));
  std::vector<std::vector<double>> val(3, std::vector<double>(a.col.size()));
  std::uint32_t missing = 0;
  const auto place = [&](std::size_t k, int row_lanes) {
    setup::PlaceRows kernel;
    kernel.from = rows_of(a), kernel.count = a.n();
    kernel.list = list.data(), kernel.number = number.data(), kernel.ptr = ptr.data();
    kernel.col = col[k].data(), kernel.val = val[k].data();
    kernel.missing = &missing, kernel.row_lanes = row_lanes;
    return kernel;
  };
  run_by_one(place(0, kWarp)), run_by_warp(place(1, kWarp)),
      run_by_warp(place(2, setup::kFewLanes));
  CHECK(col[1] == col[0] && col[2] == col[0]);
  CHECK(val[1] == val[0] && val[2] == val[0]);
  CHECK_EQ(missing, 0U);
  number[5] = -1;
  run_by_warp(place(1, kWarp));
  CHECK_EQ(missing, 1U);
}

TEST(sums_before_numbers_are_those_of_one_lane) {
  std::vector<std::int32_t> numbers(2100);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::int32_t>(i * 7 % 13);
  const auto count = std::ssize(numbers);
  const std::int64_t chunks = (count + layout::kScan - 1) / layout::kScan;
  std::vector<std::int64_t> sums(at(chunks)), to(at(count) + 1), expected{0};
  for (const std::int32_t number : numbers) expected.push_back(expected.back() + number);
  run_by_warp(layout::SumNumbers<double>{numbers.data(), count, sums.data()});
  run_by_warp(layout::ScanSums<double>{chunks, sums.data(), to.data() + count});
  run_by_warp(layout::ScanNumbers<double>{numbers.data(), count, sums.data(), to.data()});
  CHECK(to == expected);
}

TEST(inverses_by_blocks_are_inverses) {
  auto a = grid2d(7, 5, 0.1);
  const std::int64_t n = a.n();
  std::vector<double> vector(at(n), 1.0), right(at(32 * n)), left(at(32 * n)), inverse(32 * 32);
  std::vector<double> matrix(at(n * n)), found(at(n * n));
  std::vector<std::int64_t> ptr(at(n) + 1);
  std::vector<std::int32_t> col(at(n * n));
  run_by_warp(setup::SpreadDense{rows_of(a), vector.data(), 0.5, matrix.data()});
  const auto dense = matrix;
  setup::DenseBlock block{n, 0, 0, matrix.data(), inverse.data(), right.data(), left.data()};
  for (; block.first < n; block.first += block.size) {
    block.size = static_cast<int>(std::min<std::int64_t>(setup::kInverseBlock, n - block.first));
    run_by_warp(setup::InvertBlock{block, multigrid::kSingular});
    run_by_warp(setup::SetBlockAside{block});
    run_by_warp(setup::EliminateBlock{block});
  }
  run_by_warp(setup::PlaceInverse{n, matrix.data(), vector.data(), 0.0, ptr.data(), col.data(),
                                  found.data()});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < n; ++k) sum += dense[at(i * n + k)] * found[at(k * n + j)];
      CHECK_NEAR(sum, i == j ? 1.0 : 0.0, 1e-10);
    }
}
