// Interior rows in a new order: sorted by length.
#include "cpufree/problem/blocks/interior_order.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <numeric>
#include <span>
#include <thread>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/blocks/length_windows.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

constexpr std::int32_t kWindow = 128;

struct Case {
  HaloPlan<double> before, after;
};

HaloPlan<double> plan_of(const Matrix<double>& a, int pes) {
  std::vector<std::int32_t> part(at(a.n()));
  for (std::size_t i = 0; i < part.size(); ++i)
    part[i] = static_cast<std::int32_t>(i * at(pes) / part.size());
  return make_halo_plan(a.view(), part, {}, pes);
}

// Two rows of every three are short.
Matrix<double> mixed(std::int32_t n) {
  Entries e;
  for (std::int32_t i = 0; i < n; ++i)
    for (std::int32_t d = 0; d <= (i % 3 == 0 ? 9 : 1); ++d)
      if (i + 3 * d < n) e[{i, i + 3 * d}] = e[{i + 3 * d, i}] = 1.0 + i % 7 + 0.1 * d;
  return from_entries<double>(n, e);
}

Case sorted(const Matrix<double>& a, int pes) {
  Case c;
  c.before = c.after = plan_of(a, pes);
  sort_by_length(c.after, AllHere(at(pes)), kWindow);
  return c;
}

std::int64_t length(const LocalSystem<double>& local, std::int32_t row) {
  return local.row_ptr[at(row) + 1] - local.row_ptr[at(row)];
}

std::int64_t in_slices(const LocalSystem<double>& local) {
  const auto costs = slice_costs(local.row_ptr, {0, local.interior});
  return std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
}

std::vector<double> product(const LocalSystem<double>& local) {
  std::vector<double> y;
  for (std::int32_t i = 0; i < local.rows(); ++i) {
    double sum = 0.0;
    for (auto k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k) {
      const std::int32_t column = local.col[at(k)];
      sum += local.val[at(k)] *
             (column < local.rows() ? 1.0 / (1 + local.global_row[at(column)]) : 0.1 * column);
    }
    y.push_back(sum);
  }
  return y;
}

// Two processes with a PE each.
struct Meeting {
  std::barrier<> barrier{2};
  std::vector<Bytes> given{2};
};
class OneOfTwo final : public Peers {
 public:
  OneOfTwo(Meeting& meeting, int pe) : meeting_(meeting), pe_(pe) {}
  int first() const override { return pe_; }
  int here() const override { return 1; }
  int all() const override { return 2; }
  std::vector<Bytes> all_gather(const char*, std::vector<Bytes> mine) const override {
    meeting_.given[at(pe_)] = std::move(mine.at(0));
    meeting_.barrier.arrive_and_wait();
    auto all = meeting_.given;
    meeting_.barrier.arrive_and_wait();
    return all;
  }
  std::vector<std::vector<Bytes>> exchange(const char*,
                                           std::vector<std::vector<Bytes>> mine) const override {
    return mine;  // not asked for
  }

 private:
  Meeting& meeting_;
  int pe_;
};

// What two processes make of the plan of two PEs: `change(process, plan, peers)`.
template <class F>
std::array<HaloPlan<double>, 2> apart(const HaloPlan<double>& plan, F&& change) {
  std::array<HaloPlan<double>, 2> own;
  Meeting meeting;
  std::vector<std::jthread> ranks;
  for (int pe = 0; pe < 2; ++pe) {
    own[at(pe)] = plan;
    own[at(pe)].local = {plan.local[at(pe)]};
    ranks.emplace_back([&, pe] { change(at(pe), own[at(pe)], OneOfTwo(meeting, pe)); });
  }
  ranks.clear();
  return own;
}

void check_same_sums(const Case& c) {
  for (std::size_t pe = 0; pe < c.before.local.size(); ++pe) {
    const auto &before = c.before.local[pe], &after = c.after.local[pe];
    const auto expected = product(before), found = product(after);
    CHECK(after.global_row != before.global_row);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto old = std::ranges::find(before.global_row, after.global_row[i]);
      CHECK_EQ(found[i], expected[at(old - before.global_row.begin())]);
    }
  }
}

void check_unseen_by_others(const Case& c) {
  for (std::size_t pe = 0; pe < c.before.local.size(); ++pe) {
    const auto &before = c.before.local[pe], &after = c.after.local[pe];
    CHECK(after.global_row != before.global_row);
    CHECK_EQ(after.interior, before.interior);
    CHECK(after.ghost_row == before.ghost_row);
    CHECK(after.send_ptr == before.send_ptr);
    for (std::int32_t i = before.interior; i < before.rows(); ++i) {
      CHECK_EQ(after.global_row[at(i)], before.global_row[at(i)]);
      CHECK_EQ(after.row_ptr[at(i)], before.row_ptr[at(i)]);
    }
  }
}

}  // namespace

TEST(sorted_rows_take_less_in_slices) {
  const Case c = sorted(mixed(4000), 1);
  CHECK(3 * in_slices(c.after.local[0]) < 2 * in_slices(c.before.local[0]));
}

TEST(sorted_rows_stay_in_their_window_longest_and_shortest_first_in_turn) {
  const Case c = sorted(mixed(4000), 1);
  const auto &before = c.before.local[0], &after = c.after.local[0];
  for (std::int32_t i = 0; i < after.interior; ++i) {
    const auto old = static_cast<std::int32_t>(
        std::ranges::find(before.global_row, after.global_row[at(i)]) - before.global_row.begin());
    CHECK_EQ(old / kWindow, i / kWindow);
    if (i % kWindow == 0) continue;
    const std::int64_t grows = length(after, i) - length(after, i - 1);
    CHECK(i / kWindow % 2 == 0 ? grows <= 0 : grows >= 0);
    if (grows == 0) CHECK(after.global_row[at(i)] > after.global_row[at(i) - 1]);
  }
}

// Nodes of three unknowns, those of one having the same columns; their numbers of neighbours
// differ.
TEST(rows_of_a_node_stay_side_by_side) {
  Entries e;
  const std::int32_t nodes = 700;
  for (std::int32_t i = 0; i < nodes; ++i)
    for (std::int32_t d = 0; d <= (i % 3 == 0 ? 9 : 1); ++d)
      for (std::int32_t k = 0; i + 3 * d < nodes && k < 9; ++k) {
        const std::int32_t row = 3 * i + k / 3, col = 3 * (i + 3 * d) + k % 3;
        e[{row, col}] = e[{col, row}] = 1.0 + row % 7 + col % 7;
      }
  const Case c = sorted(from_entries<double>(3 * nodes, e), 1);
  const LocalSystem<double>& after = c.after.local[0];
  CHECK(after.global_row != c.before.local[0].global_row);
  int torn = 0;
  for (std::int32_t row = 0; row < after.rows(); ++row) {
    torn += after.global_row[at(row)] % 3 == row % 3 ? 0 : 1;
    for (std::int64_t k = after.row_ptr[at(row)]; k < after.row_ptr[at(row) + 1]; k += 3)
      for (std::int64_t q = 1; q < 3; ++q)
        torn += after.col[at(k + q)] == after.col[at(k)] + q ? 0 : 1;
  }
  CHECK_EQ(torn, 0);
}

TEST(sorted_rows_have_the_same_sums_to_the_last_bit) { check_same_sums(sorted(mixed(3000), 3)); }

TEST(what_other_pes_know_of_sorted_rows_is_as_it_was) {
  check_unseen_by_others(sorted(mixed(3000), 2));
}

TEST(rows_that_are_alike_are_not_sorted) {
  const Case c = sorted(grid2d(60, 60), 1);
  CHECK(c.after.local[0].global_row == c.before.local[0].global_row);
  CHECK(c.after.local[0].col == c.before.local[0].col);
}

// Lanes may share long rows, whose slices then have eight of them; or not, and they have 32.
TEST(long_rows_are_sorted_where_slices_of_either_kind_shrink) {
  const auto sorts = [](auto&& width) {
    Entries e;
    const std::int32_t n = 2000;
    for (std::int32_t i = 0; i < n; ++i)
      for (std::int32_t d = 0; d <= width(i); ++d)
        if (i + d < n) e[{i, i + d}] = e[{i + d, i}] = 1.0;
    const Case c = sorted(from_entries<double>(n, e), 1);
    return c.after.local[0].global_row != c.before.local[0].global_row;
  };
  CHECK(sorts([](std::int32_t i) { return i % 4 == 0 ? 160 : 16; }));
  CHECK(sorts([](std::int32_t i) { return i / 8 % 4 == 0 ? 160 : 16; }));  // those of eight alike
  CHECK(!sorts([](std::int32_t) { return 80; }));
}

TEST(pes_without_interior_rows_are_left_alone) {
  Entries e;
  for (std::int32_t i = 0; i < 40; ++i)
    for (std::int32_t j = 0; j < 40; ++j) e[{i, j}] = 1.0;
  const Case c = sorted(from_entries<double>(40, e), 4);
  for (std::size_t pe = 0; pe < 4; ++pe) CHECK(c.after.local[pe].col == c.before.local[pe].col);
}

// One PE would gain and the other would not: they decide together.
TEST(processes_sort_as_one_that_has_all_pes) {
  for (const std::int32_t width : {3, 60}) {
    Entries e;
    const std::int32_t n = 4000;
    for (std::int32_t i = 0; i < n; ++i)
      for (std::int32_t d = 0; d <= (i >= n / 2 ? width : i % 3 == 0 ? 9 : 1); ++d)
        if (i + d < n) e[{i, i + d}] = e[{i + d, i}] = 1.0 + i % 7;
    const Case c = sorted(from_entries<double>(n, e), 2);
    const auto own = apart(c.before, [](std::size_t, auto& plan, const Peers& peers) {
      sort_by_length(plan, peers, kWindow);
    });
    for (std::size_t pe = 0; pe < 2; ++pe)
      CHECK(own[pe].local[0].global_row == c.after.local[pe].global_row);
    CHECK_EQ(c.after.local[0].global_row != c.before.local[0].global_row, width == 3);
  }
}
