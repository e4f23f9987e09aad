// The GPU's matrix format, as the host builds it.
#include "cpufree/formats/warp_slices_build.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>

#include "built_slices.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/formats/local.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;
using namespace testing_slices;

TEST(every_entry_is_there_once_for_any_number_of_rows) {
  for (std::int32_t n = 1; n <= 100; ++n) {
    std::vector<std::int32_t> lengths;
    for (std::int32_t i = 0; i < n; ++i) lengths.push_back(1 + i * 5 % 9);
    const auto local = rows_of(lengths);
    check_built(local, build(local, {{0, n}}));
  }
}

TEST(every_entry_is_there_once_for_rows_of_mixed_lengths) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::int32_t> lengths(70);
    for (auto& length : lengths)
      length = static_cast<std::int32_t>(random() % 4 == 0 ? random() % 300 : random() % 8);
    const auto local = rows_of(lengths);
    check_built(local, build(local, {{0, 33}, {33, 70}}));
  }
}

TEST(every_entry_is_there_once_where_lanes_share_rows) {
  for (std::int32_t lanes_log2 = 1; lanes_log2 <= 5; ++lanes_log2) {
    std::mt19937 random(static_cast<unsigned>(lanes_log2));
    std::vector<std::int32_t> lengths(45);
    for (auto& length : lengths)
      length = static_cast<std::int32_t>(random() % 9 == 0 ? random() % 3000 : random() % 80);
    const auto local = rows_of(lengths);
    check_built(local, build(local, {{0, 17}, {17, 45}}, lanes_log2 % 2 == 0, lanes_log2));
  }
}

TEST(every_entry_is_there_once_in_single_precision) {
  const auto local = rows_of<float>({4, 0, 9, 250, 3});
  check_built(local, build(local, {{0, 5}}));
}

TEST(empty_rows_take_no_entries) {
  const auto local = rows_of(std::vector<std::int32_t>(40, 0));
  const auto built = build(local, {{0, 40}});
  check_built(local, built);
  CHECK_EQ(built.shape.units, 0);
  CHECK_EQ(built.shape.slice.size(), std::size_t{2});
}

TEST(dense_row_becomes_a_tail_and_widens_nothing) {
  std::vector<std::int32_t> lengths(64, 7);
  lengths[10] = 5000;
  const auto local = rows_of(lengths);
  const auto built = build(local, {{0, 64}});
  check_built(local, built);
  CHECK_EQ(built.shape.slice[0].width, 7);
  CHECK(built.shape.slice[0].tails >= 0);
  CHECK_EQ(built.shape.tail_entries, 5000 - 7);
}

TEST(row_a_little_longer_than_the_others_widens_its_slice) {
  std::vector<std::int32_t> lengths(32, 20);
  lengths[4] = 22;
  const auto built = build(rows_of(lengths), {{0, 32}});
  CHECK_EQ(built.shape.slice[0].width, 22);
  CHECK_EQ(built.shape.slice[0].tails, -1);
}

TEST(rows_of_equal_length_have_neither_padding_nor_tails) {
  const auto local = rows_of(std::vector<std::int32_t>(64, 300));
  const auto built = build(local, {{0, 64}});
  CHECK_EQ(built.shape.units * kSliceUnit, 64 * 300 * (2 + 8));
  CHECK(built.shape.tail_ptr.empty());
}

TEST(ranges_begin_with_slices_of_their_own) {
  const auto local = rows_of(std::vector<std::int32_t>(50, 3));
  const auto built = build(local, {{0, 20}, {20, 50}});
  CHECK_EQ(built.shape.slice.size(), std::size_t{2});
  CHECK_EQ(built.shape.rows[1].begin, 20);
  check_built(local, built);
}

TEST(slices_filled_in_parts_are_those_filled_at_once) {
  std::vector<std::int32_t> lengths;
  for (std::int32_t i = 0; i < 200; ++i) lengths.push_back(i % 50 == 3 ? 400 : i % 11);
  const auto local = rows_of(lengths);
  const auto whole = build(local, {{0, 200}});
  const std::size_t slices = whole.shape.slice.size();
  for (std::size_t first = 0; first < slices; first += 3) {
    const std::size_t end = std::min(first + 3, slices);
    const std::int64_t begin = whole.shape.slice[first].first;
    std::vector<std::uint64_t> part(at((whole.shape.end_of(end - 1) - begin) * kSliceUnit / 8));
    fill_warp_slices(whole.source, whole.shape, first, end,
                     reinterpret_cast<std::byte*>(part.data()));
    CHECK(std::equal(part.begin(), part.end(), whole.words.begin() + begin * (kSliceUnit / 8)));
  }
}

TEST(padding_of_boundary_rows_reads_what_the_row_reads) {
  const auto a = irregular(90, 21);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 3, 3), {}, 3);
  for (const auto& local : plan.local)
    check_built(local, build(local, {{0, local.interior}, {local.interior, local.rows()}}));
}

// Such as those of a prolongator: a row's number is that of no column.
TEST(padding_of_rows_that_outnumber_the_columns_reads_a_column) {
  constexpr std::int32_t kColumns = 4;
  std::vector<std::int32_t> lengths;
  for (std::int32_t i = 0; i < 77; ++i) lengths.push_back(i % 5 == 2 ? 0 : 1);
  auto local = rows_of<float>(lengths);
  local.rows_elsewhere = kColumns;
  for (const std::int32_t lanes_log2 : {0, 1, 5}) {
    const auto built = build(local, {{0, 30}, {30, 77}}, true, lanes_log2);
    for (std::size_t s = 0; s < built.shape.slice.size(); ++s)
      for (std::int32_t l = 0; l < 32; ++l)
        for (std::int32_t k = 0; k < built.shape.slice[s].width; ++k)
          CHECK(entry(built, s, l, k).first < kColumns);
    check_built(local, built);
  }
}

TEST(columns_take_16_bits_where_they_lie_close_together) {
  const auto local = grid(12, false);
  const auto built = build(local, {{0, local.rows()}});
  check_built(local, built);
  for (const WarpSlice& slice : built.shape.slice) CHECK(slice.code == ColumnCode::near);
}

TEST(columns_take_16_bits_in_up_to_four_windows) {
  LocalSystem<double> local = rows_of(std::vector<std::int32_t>(32, 8));
  for (std::size_t k = 0; k < local.col.size(); ++k)
    local.col[k] = static_cast<std::int32_t>(500'000 * (k % 8 / 2) + 1000 * (k % 8) + k / 8);
  const auto built = build(local, {{0, 32}});
  CHECK(built.shape.slice[0].code == ColumnCode::far);
  int wrong = 0;
  for (int l = 0; l < 32; ++l)
    for (std::int32_t k = 0; k < 8; ++k)
      wrong += entry(built, 0, l, k).first == local.col[at(8 * l + k)] ? 0 : 1;
  CHECK_EQ(wrong, 0);
}

TEST(columns_all_over_the_place_stay_as_they_are) {
  LocalSystem<double> local = rows_of(std::vector<std::int32_t>(32, 6));
  for (std::size_t k = 0; k < local.col.size(); ++k)
    local.col[k] = static_cast<std::int32_t>(400'000 * (k % 6) + k);
  const auto built = build(local, {{0, 32}});
  CHECK(built.shape.slice[0].code == ColumnCode::plain);
  check_built(local, built);
}

TEST(values_take_8_bits_where_there_are_few_of_them) {
  const auto local = grid(12, true);
  const auto built = build(local, {{0, local.rows()}});
  CHECK_EQ(built.dictionary.size(), std::size_t{3});  // 0, 6, -1
  check_built(local, built);
  CHECK(10 * built.shape.units <= 3 * build(local, {{0, local.rows()}}, false).shape.units);
}

TEST(dictionary_holds_256_values_and_not_one_more) {
  auto local = rows_of(std::vector<std::int32_t>(51, 5));  // 255 values, and 0
  CHECK_EQ(build(local, {{0, 51}}).dictionary.size(), std::size_t{256});
  check_built(local, build(local, {{0, 51}}));
  local = rows_of(std::vector<std::int32_t>(64, 4));
  CHECK(build(local, {{0, 64}}).dictionary.empty());
}

TEST(values_that_are_no_numbers_are_not_coded) {
  auto local = rows_of({2});
  local.val[1] = std::numeric_limits<double>::quiet_NaN();
  const auto built = build(local, {{0, 1}});
  CHECK(built.dictionary.empty());
  CHECK(std::isnan(entry(built, 0, 0, 1).second));
}

TEST(zeros_of_both_signs_are_different_values) {
  auto local = rows_of({2});
  local.val[0] = -0.0;
  local.val[1] = 0.0;
  const auto built = build(local, {{0, 1}});
  CHECK(std::signbit(entry(built, 0, 0, 0).second));
  CHECK(!std::signbit(entry(built, 0, 0, 1).second));
}

TEST(products_are_the_same_to_the_last_bit_in_every_code) {
  for (const bool alike : {false, true}) {
    auto local = grid(11, alike);
    const auto x = wave(local.rows());
    const auto plain = build(local, {{0, local.rows()}}, false);
    const auto coded = build(local, {{0, local.rows()}});
    const auto expected = product(plain, x);
    CHECK(product(coded, x) == expected);
    CHECK(cold_product_right(coded, x));
    CHECK(cold_product_right(plain, x));
    for (std::size_t i = 0; i < x.size(); ++i) {
      double sum = 0.0;
      for (auto k = local.row_ptr[i]; k < local.row_ptr[i + 1]; ++k)
        sum += local.val[at(k)] * x[at(local.col[at(k)])];
      CHECK(std::abs(expected[i] - sum) <= 1e-12);
    }
  }
}

TEST(products_in_windows_are_those_of_plain_columns) {
  auto local = grid(44, true);  // planes of 1936 rows, 85 184 in all
  local.val.back() = 7.5;
  // Far apart: columns of a slice in three windows.
  const auto stretch = [](std::int32_t c) { return c + c / 1936 * 50'000; };
  for (auto& c : local.col) c = stretch(c);
  std::vector<double> x(at(stretch(local.rows()) + 1));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<double>(i));
  const auto built = build(local, {{0, local.rows()}});
  CHECK(std::ranges::count(built.shape.slice, ColumnCode::far, &WarpSlice::code) > 2000);
  CHECK(product(built, x) == product(build(local, {{0, local.rows()}}, false), x));
  CHECK(cold_product_right(built, x));
}

TEST(runs_of_three_columns_store_the_first_one) {
  const auto local = nodes({4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
  const auto built = build(local, {{0, 66}});
  check_built(local, built);
  for (const WarpSlice& slice : built.shape.slice) CHECK(slice.code == ColumnCode::runs);
  CHECK_EQ(built.shape.units * kSliceUnit, 3 * 32 * 4 * (2 + 24));
  CHECK(built.shape.simple() == Simple::runs);
}

TEST(every_entry_is_there_once_where_rows_of_mixed_lengths_come_in_runs) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::int32_t> neighbours(40);
    for (auto& count : neighbours) count = static_cast<std::int32_t>(random() % 12);
    neighbours[7] = 200;  // tails
    const auto local = nodes(neighbours);
    for (const bool compress : {false, true})
      check_built(local, build(local, {{0, 45}, {45, 120}}, compress));
  }
}

TEST(lanes_that_share_rows_have_runs_in_turn) {
  for (std::int32_t lanes_log2 = 1; lanes_log2 <= 5; ++lanes_log2) {
    const auto local = nodes({9, 30, 1, 8, 0, 28, 29, 3, 3, 3, 17, 16, 90});
    const auto built = build(local, {{0, 20}, {20, 39}}, true, lanes_log2, kRun);
    check_built(local, built);
    CHECK(std::ranges::count(built.shape.slice, ColumnCode::runs, &WarpSlice::code) > 0);
  }
}

TEST(rows_come_in_runs_where_nine_in_ten_do) {
  auto local = nodes(std::vector<std::int32_t>(20, 2));
  const ShareSource<double> source{local};
  CHECK_EQ(usual_run(source, {0, 60}), kRun);
  for (const std::int64_t row : {3, 11, 20, 31, 40, 51}) ++local.col[at(6 * row + 5)];
  CHECK_EQ(usual_run(source, {0, 60}), kRun);
  ++local.col[at(6 * 55 + 5)];
  CHECK_EQ(usual_run(source, {0, 60}), 1);
}

TEST(row_that_is_no_run_leaves_its_slice_with_columns_of_its_own) {
  auto local = nodes(std::vector<std::int32_t>(4000, 3));
  ++local.col[at(9 * 40 + 8)];
  const auto built = build(local, {{0, local.rows()}});
  check_built(local, built);
  CHECK(built.shape.slice[1].code == ColumnCode::near);
  CHECK_EQ(std::ranges::count(built.shape.slice, ColumnCode::runs, &WarpSlice::code),
           std::ssize(built.shape.slice) - 1);
}

TEST(share_that_may_stay_on_chip_has_one_code) {
  auto local = nodes(std::vector<std::int32_t>(100, 3));
  ++local.col[at(9 * 40 + 8)];
  const auto built = build(local, {{0, local.rows()}});
  check_built(local, built);
  CHECK(built.shape.simple() == Simple::columns);
}

TEST(runs_in_windows_far_cold) {
  auto local = nodes(std::vector<std::int32_t>(32, 8));
  for (auto& c : local.col) c += c / 3 % 4 * 600'000;
  const auto built = build(local, {{0, local.rows()}});
  check_built(local, built);
  for (const WarpSlice& slice : built.shape.slice) CHECK(slice.code == ColumnCode::runs);
  for (auto& c : local.col) c += c / 3 % 5 * 9'000'000;
  const auto wide = build(local, {{0, local.rows()}});
  check_built(local, wide);
  CHECK(wide.shape.slice[0].code == ColumnCode::plain);
}

TEST(runs_of_single_precision_values_and_of_few_values) {
  const auto local = nodes<float>(std::vector<std::int32_t>(50, 4));
  const auto built = build(local, {{0, local.rows()}});
  check_built(local, built);
  CHECK_EQ(built.shape.slice[0].width * kSliceRows * 14 / 3,
           kSliceUnit * built.shape.slice[1].first);
  auto alike = nodes(std::vector<std::int32_t>(50, 4));
  for (std::size_t k = 0; k < alike.val.size(); ++k) alike.val[k] = static_cast<double>(k % 7);
  const auto coded = build(alike, {{0, alike.rows()}});
  check_built(alike, coded);
  CHECK_EQ(coded.shape.units * kSliceUnit, 5 * kSliceRows * 4 * 5);
}

TEST(products_of_runs_are_those_of_columns_to_the_last_bit) {
  for (const int values : {3, 100'000})
    for (const std::int32_t apart : {0, 90'000}) {
      std::vector<std::int32_t> neighbours;
      for (std::int32_t i = 0; i < 150; ++i) neighbours.push_back(i % 3 == 0 ? 7 : 4 + i % 4);
      auto local = nodes(neighbours);
      for (auto& c : local.col) c += c / 3 % 4 * apart;
      for (std::size_t k = 0; k < local.val.size(); ++k)
        local.val[k] = std::sin(static_cast<double>(k % at(values)));
      std::vector<double> x(500'000);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<double>(i));
      const auto built = build(local, {{0, local.rows()}});
      CHECK(built.shape.slice[0].code == ColumnCode::runs);
      const auto expected = product(build(local, {{0, local.rows()}}, false), x);
      CHECK(product(built, x) == expected);
      CHECK(cold_product_right(built, x));
    }
}
