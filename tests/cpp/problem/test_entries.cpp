// What is seen of the entries of a matrix, and digests of arrays.
#include "cpufree/problem/entries.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "cpufree/base/digest.hpp"
#include "cpufree/base/index.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

// Large enough for several threads.
constexpr std::int32_t kRows = 60'000;

// Bands that are 40 and 4000 off the diagonal, and one beside it in two rows of three.
Matrix<double> banded() {
  Entries e;
  for (std::int32_t i = 0; i < kRows; ++i) {
    e[{i, i}] = 4.0;
    for (const std::int32_t d : {1, 40, 4000})
      if (i + d < kRows && (d > 1 || i % 3 != 0)) e[{i, i + d}] = e[{i + d, i}] = 1.0 + i % 7;
  }
  return from_entries<double>(kRows, e);
}

std::size_t place(const Matrix<double>& a, std::int32_t row, std::int32_t column) {
  auto k = at(a.row_ptr[at(row)]);
  while (a.col[k] != column) ++k;
  return k;
}

std::vector<std::byte> bytes(std::size_t count) {
  std::vector<std::byte> all(count);
  for (std::size_t k = 0; k < count; ++k) all[k] = static_cast<std::byte>(k * k >> 7U);
  return all;
}

}  // namespace

TEST(a_symmetric_matrix_is_seen_to_be_one) {
  const EntryReport seen = inspect(banded().view());
  CHECK(seen.mirrored && seen.symmetric && seen.finite && seen.positive_diagonal);
  CHECK_EQ(seen.asymmetry, 0.0);
}

TEST(an_entry_without_mirror_image_is_seen_on_either_side_of_the_diagonal) {
  for (const bool above : {true, false}) {
    auto a = banded();
    // Entry (30000, 34000) or its mirror image goes to a column of its own.
    const std::size_t k = above ? place(a, 30'000, 34'000) : place(a, 34'000, 30'000);
    a.col[k] += above ? 1 : -1;
    CHECK(!inspect(a.view()).mirrored);
  }
}

TEST(an_entry_too_many_below_the_diagonal_is_seen) {
  Entries e;
  for (std::int32_t i = 0; i < 9; ++i) e[{i, i}] = 1.0;
  e[{7, 2}] = 1.0;
  CHECK(!inspect(from_entries<double>(9, e).view()).mirrored);
}

TEST(the_largest_asymmetry_is_relative_to_the_diagonals) {
  auto a = banded();
  a.val[place(a, 100, 140)] += 1e-3;
  a.val[place(a, 50'040, 50'000)] += 8e-3;
  a.val[place(a, 50'000, 50'000)] = 16.0;
  const EntryReport seen = inspect(a.view());
  CHECK(seen.mirrored && !seen.symmetric);
  CHECK_NEAR(seen.asymmetry, 8e-3 / std::sqrt(16.0 * 4.0), 1e-12);
}

TEST(what_is_not_finite_is_seen_anywhere) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")})
    for (const std::int32_t column : {0, 40, 4040}) {
      auto a = banded();
      a.val[place(a, 40, column)] = bad;
      CHECK(!inspect(a.view()).finite);
    }
}

TEST(a_diagonal_that_is_missing_or_not_positive_is_seen) {
  for (const double value : {0.0, -1.0, std::nan("")}) {
    auto a = banded();
    a.val[place(a, kRows - 1, kRows - 1)] = value;
    CHECK(!inspect(a.view()).positive_diagonal);
  }
  Entries e;
  e[{0, 0}] = e[{0, 1}] = e[{1, 0}] = 1.0;
  const EntryReport seen = inspect(from_entries<double>(2, e).view());
  CHECK(seen.mirrored && !seen.positive_diagonal);
}

TEST(the_largest_entry_is_found_anywhere) {
  std::vector<double> values(600'011, -1.0);  // several threads, and some beyond their lanes
  CHECK_EQ(largest_entry<double>(values), 0.0);
  for (const std::size_t k : {std::size_t{0}, std::size_t{300'000}, values.size() - 1}) {
    values[k] = 3.0;
    values[k == 0 ? 1 : k - 1] = std::nan("");
    CHECK_EQ(largest_entry<double>(values), 3.0);
    values[k] = -1.0;
  }
  CHECK_EQ(largest_entry<float>(std::vector<float>{}), 0.0F);
}

TEST(numbers_in_64_bits_are_the_same) {
  std::vector<std::int32_t> numbers(600'011);
  for (std::size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = static_cast<std::int32_t>(k * 7919) - 1'000'000;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, numbers.size()}) {
    const auto wide = widened({numbers.data(), count});
    CHECK(std::equal(wide.begin(), wide.end(), numbers.begin(),
                     numbers.begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

TEST(rows_are_told_from_other_arrays) {
  const auto a = banded();
  const auto rows = [](const std::vector<std::int64_t>& ptr, const std::vector<std::int32_t>& col) {
    return are_rows<std::int32_t>(ptr, col);
  };
  CHECK(rows(a.row_ptr, a.col));
  for (const std::int32_t column : {-1, 0, 80, kRows}) {  // of the last entry of row 40
    auto col = a.col;
    col[place(a, 40, 4040)] = column;
    CHECK(!rows(a.row_ptr, col));
  }
  auto col = a.col;
  col[place(a, 40, 0)] = -1;
  CHECK(!rows(a.row_ptr, col));
  auto ptr = a.row_ptr;
  ptr[7] = ptr[9];
  CHECK(!rows(ptr, a.col));
  for (const std::int64_t far : {std::int64_t{-8}, std::int64_t{1} << 40}) {
    ptr[30'000] = far;
    CHECK(!rows(ptr, a.col));
  }
  ptr = a.row_ptr;
  ptr.back() -= 1;
  CHECK(!rows(ptr, a.col));
  CHECK(!rows({}, {}));
}

TEST(digests_of_arrays_that_differ_in_a_bit_differ) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, (std::size_t{2} << 20) + 77}) {
    const auto before = bytes(count);
    const Digest digest = digest_of(before);
    CHECK(digest == digest_of(bytes(count)));
    for (const std::size_t k : {std::size_t{0}, count / 2, count - 1}) {
      auto after = before;
      after[k] ^= std::byte{16};
      CHECK(digest_of(after) != digest);
    }
    CHECK(digest_of(bytes(count + 1)) != digest);
  }
}

TEST(digests_of_arrays_whose_words_have_changed_places_differ) {
  auto a = bytes(4096);
  const Digest before = digest_of(a);
  std::swap_ranges(a.begin(), a.begin() + 8, a.begin() + 1024);
  CHECK(digest_of(a) != before);
}

TEST(a_mean_distance_of_many_entries_is_that_of_all_within_a_hundredth) {
  constexpr std::int32_t kRows = 500'000, kApart = 5'000;
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> col;
  double sum = 0.0;
  for (std::int32_t row = 0; row < kRows; ++row) {
    const std::int32_t far = row % 3 == 0 ? 2 * kApart : kApart;
    for (const std::int32_t column : {row - far, row, row + far})
      if (column >= 0 && column < kRows) {
        col.push_back(column);
        sum += std::abs(row - column);
      }
    ptr.push_back(static_cast<std::int64_t>(col.size()));
  }
  CHECK(ptr.back() > kLookedAtAll);
  const double all = sum / static_cast<double>(col.size());
  CHECK_NEAR(mean_distance(ptr, col, {}, {}) / all, 1.0, 0.01);
}

TEST(rows_that_sum_to_zero_are_told_from_others_whatever_their_number) {
  // A ring of nodes with two unknowns each: every row couples one unknown with its own kind.
  const std::int32_t nodes = 40'000;
  Entries e;
  for (std::int32_t i = 0; i < 2 * nodes; ++i) {
    e[{i, i}] = 2.0;
    e[{i, (i + 2) % (2 * nodes)}] = e[{i, (i + 2 * nodes - 2) % (2 * nodes)}] = -1.0;
  }
  const auto a = from_entries<double>(2 * nodes, e);
  CHECK(maps_to_zero(a.view(), 1, 1e-13));
  CHECK(maps_to_zero(a.view(), 2, 1e-13));
  CHECK(!maps_to_zero(a.view(), 3, 1e-13));  // 80 000 is no multiple of 3
  e[{12'345, 12'345}] = 2.0 + 1e-9;          // none of those that are looked at first
  CHECK(!maps_to_zero(from_entries<double>(2 * nodes, e).view(), 2, 1e-13));
  CHECK(maps_to_zero(from_entries<float>(2 * nodes, e).view(), 2, 1e-4));
}
