// The GPU's matrix format, as the host builds it.
#include "cpufree/solvers/warp_slices_build.hpp"

#include <set>

#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Rows of the lengths given; entry k of row i is in column 3 k + i % 3 and has a value of its own.
template <class T = double>
LocalSystem<T> rows_of(const std::vector<std::int32_t>& lengths) {
  LocalSystem<T> local;
  local.row_ptr.push_back(0);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    local.global_row.push_back(static_cast<std::int32_t>(i));
    for (std::int32_t k = 0; k < lengths[i]; ++k) {
      local.col.push_back(3 * k + static_cast<std::int32_t>(i % 3));
      local.val.push_back(static_cast<T>(local.val.size() + 1));
    }
    local.row_ptr.push_back(static_cast<std::int64_t>(local.col.size()));
  }
  local.interior = local.rows();
  return local;
}

template <class T>
struct Built {
  WarpSliceShape shape;
  std::vector<std::int32_t> col;
  std::vector<T> val;
};

template <class T>
Built<T> build(const LocalSystem<T>& local, const std::vector<RowRange>& ranges) {
  Built<T> built;
  for (const RowRange range : ranges) append_warp_slices(local.row_ptr, range, built.shape);
  built.col.assign(at(built.shape.entries), -7);
  built.val.assign(at(built.shape.entries), T{-7});
  fill_warp_slices(local, built.shape, 0, built.shape.slice.size(), built.col.data(),
                   built.val.data());
  return built;
}

// Checks a share against its rows: every entry once, in the order of its row; everything else is
// padding of value 0 that reads a column of the row, or the row itself.
template <class T>
void check_built(const LocalSystem<T>& local, const Built<T>& built) {
  std::set<std::int64_t> used;
  const auto take = [&](std::int64_t place) { return used.insert(place).second; };
  int wrong = 0;
  for (std::size_t s = 0; s < built.shape.slice.size(); ++s) {
    const WarpSlice& slice = built.shape.slice[s];
    const RowRange rows = built.shape.rows[s];
    wrong += slice.first % 32 == 0 && rows.size() >= 1 && rows.size() <= 32 ? 0 : 1;
    for (std::int32_t l = 0; l < 32; ++l) {
      const std::int32_t row = std::min(rows.begin + l, rows.end - 1);
      std::int64_t next = local.row_ptr[at(row)];
      const std::int64_t end = rows.begin + l < rows.end ? local.row_ptr[at(row) + 1] : next;
      std::set<std::int32_t> readable{row};
      for (std::int64_t k = next; k < local.row_ptr[at(row) + 1]; ++k)
        readable.insert(local.col[at(k)]);
      const auto read = [&](std::int64_t place) {
        wrong += take(place) ? 0 : 1;
        if (next < end)
          wrong += built.col[at(place)] == local.col[at(next)] &&
                           built.val[at(place)] == local.val[at(next)]
                       ? 0
                       : 1;
        else
          wrong += built.val[at(place)] == T{0} && readable.contains(built.col[at(place)]) ? 0 : 1;
        ++next;
      };
      for (std::int32_t k = 0; k < slice.width; ++k) read(slice.first + 32 * k + l);
      if (slice.tails >= 0)
        for (std::int64_t k = built.shape.tail_ptr[at(slice.tails + l)];
             k < built.shape.tail_ptr[at(slice.tails + l + 1)]; ++k)
          read(k);
      wrong += next >= end ? 0 : 1;
    }
  }
  CHECK_EQ(wrong, 0);
  CHECK(used.empty() || *used.rbegin() < built.shape.entries);
}

}  // namespace

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

TEST(every_entry_is_there_once_in_single_precision) {
  const auto local = rows_of<float>({4, 0, 9, 250, 3});
  check_built(local, build(local, {{0, 5}}));
}

TEST(empty_rows_take_no_entries) {
  const auto local = rows_of(std::vector<std::int32_t>(40, 0));
  const auto built = build(local, {{0, 40}});
  check_built(local, built);
  CHECK_EQ(built.shape.entries, 0);
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
  CHECK(built.shape.entries <= 64 * 7 + 5000 + 32);
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
  CHECK_EQ(built.shape.entries, 64 * 300);
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
    const auto count = at(whole.shape.end_of(end - 1) - begin);
    std::vector<std::int32_t> col(count);
    std::vector<double> val(count);
    fill_warp_slices(local, whole.shape, first, end, col.data(), val.data());
    CHECK(std::equal(col.begin(), col.end(), whole.col.begin() + begin));
    CHECK(std::equal(val.begin(), val.end(), whole.val.begin() + begin));
  }
}

TEST(padding_of_boundary_rows_reads_what_the_row_reads) {
  const auto a = irregular(90, 21);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 3, 3), {}, 3);
  for (const auto& local : plan.local)
    check_built(local, build(local, {{0, local.interior}, {local.interior, local.rows()}}));
}
