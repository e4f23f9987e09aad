#include "cpufree/problem/partition/partition.hpp"

#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

TEST(split_covers_every_row_exactly_once) {
  const auto a = irregular(101, 1);
  for (int parts = 1; parts <= 130; ++parts) {
    const auto ranges = split_rows(a.row_ptr, {0, a.n()}, parts);
    std::int32_t next = 0;
    for (const RowRange& r : ranges) {
      CHECK_EQ(r.begin, next);
      CHECK(r.end >= r.begin);
      next = r.end;
    }
    CHECK_EQ(next, a.n());
  }
}

TEST(split_balances_weight_within_the_heaviest_row) {
  const auto a = irregular(1000, 2);
  std::int64_t heaviest = 0;
  std::int64_t all = 0;
  for (std::int32_t i = 0; i < a.n(); ++i) {
    heaviest = std::max(heaviest, row_weight(a.view().row_nnz(i)));
    all += row_weight(a.view().row_nnz(i));
  }
  for (const RowRange& r : split_rows(a.row_ptr, {0, a.n()}, 7)) {
    std::int64_t weight = 0;
    for (std::int32_t i = r.begin; i < r.end; ++i) weight += row_weight(a.view().row_nnz(i));
    CHECK(std::abs(weight - all / 7) <= heaviest + 7);
  }
}

TEST(split_of_an_inner_range_stays_inside) {
  const auto a = grid2d(10, 10);
  const auto ranges = split_rows(a.row_ptr, {20, 53}, 4);
  CHECK_EQ(ranges.front().begin, 20);
  CHECK_EQ(ranges.back().end, 53);
}

TEST(split_of_nothing_gives_empty_ranges) {
  const auto a = grid2d(3, 3);
  for (const RowRange& r : split_rows(a.row_ptr, {4, 4}, 3)) CHECK_EQ(r.size(), 0);
}

TEST(contiguous_partition_gives_each_pe_rows_when_there_are_enough) {
  const auto a = grid2d(8, 8);
  const auto part = contiguous_partition(a.row_ptr, 8);
  std::vector<int> rows(8, 0);
  for (std::size_t i = 0; i < part.size(); ++i) {
    ++rows[static_cast<std::size_t>(part[i])];
    CHECK(i == 0 || part[i] >= part[i - 1]);
  }
  for (const int r : rows) CHECK(r >= 6 && r <= 10);
}

TEST(contiguous_partition_of_fewer_rows_than_pes_leaves_pes_empty) {
  const auto a = grid2d(1, 2);
  const auto part = contiguous_partition(a.row_ptr, 5);
  CHECK_EQ(part.size(), std::size_t{2});
  for (const auto p : part) CHECK(p >= 0 && p < 5);
  CHECK(part[0] < part[1]);
}

TEST(padding_counts_as_entries_of_all_rows_of_its_slice) {
  std::vector<std::int64_t> row_ptr{0};
  for (int row = 0; row < 40; ++row) row_ptr.push_back(row_ptr.back() + (row % 32 == 0 ? 8 : 4));
  const PaddedRows padded(40, 40, slice_costs(row_ptr, {0, 40}), {});
  CHECK_EQ(padded(32), std::int64_t{32 * 8});               // rather than a tail, which costs more
  CHECK_EQ(padded(40) - padded(32), std::int64_t{32 * 8});  // a slice has 32 rows even of 8
  CHECK_EQ(padded(16), std::int64_t{16 * 8});
}

TEST(slice_is_as_wide_as_its_rows_but_for_few_long_ones) {
  std::array<std::int64_t, kSliceRows> lengths{};
  lengths.fill(5);
  CHECK_EQ(best_slice_width(lengths).width, std::int64_t{5});
  CHECK_EQ(best_slice_width(lengths).cost, std::int64_t{5 * kSliceRows});
  lengths[7] = 9;  // padding is cheaper than a tail
  CHECK_EQ(best_slice_width(lengths).width, std::int64_t{9});
  lengths[7] = 5000;
  CHECK_EQ(best_slice_width(lengths).width, std::int64_t{5});
  CHECK(best_slice_width(lengths).cost < 5 * kSliceRows + 5000 + 300);
}
