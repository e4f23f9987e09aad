// Halos of blocks: what every block holds, sends and reads, checked against the matrix itself.
#include "cpufree/problem/blocks/block_halo.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

constexpr std::int64_t kAnyReads = std::numeric_limits<std::int64_t>::max();

struct Case {
  Matrix<double> a;
  HaloPlan<double> plan;
  BlockHalos halos;
};

Case make(const Matrix<double>& a, int pes, int blocks, std::span<const std::int32_t> order = {}) {
  Case c{a, make_halo_plan(a.view(), random_partition(a.n(), pes, 3), order, pes), {}};
  c.halos = make_block_halos(c.plan, order, blocks).value();
  return c;
}

// One exchange: the packets of every PE, NaN where nothing lands.
std::vector<std::vector<double>> exchanged(const Case& c, const std::vector<double>& x) {
  std::vector<std::vector<double>> packets;
  for (const std::int32_t count : c.halos.packets) packets.emplace_back(at(count), NAN);
  for (std::size_t pe = 0; pe < packets.size(); ++pe) {
    const auto& local = c.plan.local[pe];
    std::int32_t sent = 0;  // rows that other PEs read, so far
    for (const BlockPlan& block : c.halos.plans[pe])
      for (std::int32_t k = 0; k < block.boundary.size(); ++k) {
        const double value = x[at(local.global_row[at(block.boundary.begin + k)])];
        packets[pe][at(block.first_packet + k)] = value;
        if (k >= block.remote) continue;
        for (auto d = local.send_ptr[at(sent)]; d < local.send_ptr[at(sent) + 1]; ++d) {
          const Destination to = local.destinations[at(d)];
          packets[at(to.pe)][at(to.index - c.plan.local[at(to.pe)].rows())] = value;
        }
        ++sent;
      }
  }
  return packets;
}

// A x with the columns as kernels see them; interior rows may read nothing but their block's own.
std::vector<double> product(const Case& c, const std::vector<double>& x) {
  const auto packets = exchanged(c, x);
  std::vector<double> y(x.size(), NAN);
  for (std::size_t pe = 0; pe < packets.size(); ++pe) {
    const auto& local = c.plan.local[pe];
    const auto of_rows = packets_of_rows(c.halos.plans[pe]);
    for (const BlockPlan& block : c.halos.plans[pe]) {
      const RowRange own{block.boundary.begin, block.interior.end};
      const BlockColumns columns{own, local.rows(), of_rows.data(), block.reads};
      for (std::int32_t i = own.begin; i < own.end; ++i) {
        double sum = 0.0;
        for (auto k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k) {
          const std::int32_t column = columns(local.col[at(k)]);
          const bool ghost = column >= own.size();
          CHECK(i < block.interior.begin || !ghost);
          sum += local.val[at(k)] * (ghost ? packets[pe][at(block.reads[at(column - own.size())])]
                                           : x[at(local.global_row[at(own.begin + column)])]);
        }
        y[at(local.global_row[at(i)])] = sum;
      }
    }
  }
  return y;
}

void check_product(const Case& c) {
  const auto x = wave(c.a.n());
  const auto y = product(c, x);
  for (std::int32_t i = 0; i < c.a.n(); ++i) {
    double sum = 0.0;
    for (auto k = c.a.row_ptr[at(i)]; k < c.a.row_ptr[at(i) + 1]; ++k)
      sum += c.a.val[at(k)] * x[at(c.a.col[at(k)])];
    CHECK(std::abs(y[at(i)] - sum) <= 1e-12);
  }
}

}  // namespace

TEST(product_after_an_exchange_is_that_of_the_matrix) {
  for (const int pes : {1, 2, 3, 5})
    for (const int blocks : {1, 2, 7}) {
      check_product(make(grid2d(9, 7), pes, blocks));
      check_product(make(irregular(50, 4), pes, blocks));
    }
}

TEST(more_blocks_than_rows_leave_some_without_any) {
  const Case c = make(grid2d(2, 2), 1, 9);
  check_product(c);
  CHECK_EQ(std::ranges::count(c.halos.plans[0], 0, &BlockPlan::rows), 5);
}

// Where a block's rows of each kind are: those that other PEs read, other boundary, interior.
std::vector<RowRange> kinds_of(const BlockPlan& block) {
  const std::int32_t remote = block.boundary.begin + block.remote;
  return {{block.boundary.begin, remote}, {remote, block.boundary.end}, block.interior};
}

TEST(rows_of_a_kind_go_by_length_and_then_by_the_order_given) {
  const auto a = irregular(300, 9);
  std::vector<std::int32_t> order(300);
  for (std::size_t k = 0; k < order.size(); ++k)
    order[k] = static_cast<std::int32_t>((7 * k + 2) % 300);
  Case c{a, make_halo_plan(a.view(), random_partition(a.n(), 2, 3), order, 2), {}};
  c.halos = make_block_halos(c.plan, order, 3, kAnyReads, 1).value();
  for (std::size_t pe = 0; pe < 2; ++pe)
    for (const BlockPlan& block : c.halos.plans[pe])
      for (const RowRange& kind : kinds_of(block))
        for (std::int32_t i = kind.begin + 1; i < kind.end; ++i) {
          const auto name = [&](std::int32_t row) { return c.plan.local[pe].global_row[at(row)]; };
          const auto length = [&](std::int32_t row) { return c.a.view().row_nnz(name(row)); };
          const auto place = [&](std::int32_t row) {
            return std::ranges::find(order, name(row)) - order.begin();
          };
          CHECK(length(i - 1) > length(i) ||
                (length(i - 1) == length(i) && place(i - 1) < place(i)));
        }
}

TEST(only_rows_between_blocks_are_boundary) {
  // A chain of 12 in 3 blocks: the 4 rows at the two cuts.
  const auto a = grid2d(12, 1);
  auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(12, 0), {}, 1);
  CHECK_EQ(make_block_halos(plan, {}, 3, kAnyReads, 1)->packets[0], 4);
}

TEST(an_interior_of_less_than_a_slice_counts_as_boundary) {
  // A chain of 120 in 3 blocks of 40, with 39, 38 and 39 interior rows.
  const auto a = grid2d(120, 1);
  for (const std::int32_t slice : {39, 40}) {
    auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(120, 0), {}, 1);
    const auto halos = make_block_halos(plan, {}, 3, kAnyReads, slice).value();
    CHECK_EQ(halos.plans[0][1].interior.size(), 0);
    CHECK_EQ(halos.plans[0][0].interior.size(), slice == 39 ? 39 : 0);
  }
}

TEST(interior_rows_fill_the_last_slice_of_the_boundary_where_that_saves_one) {
  // 1 + 39 and 2 + 38 rows are one slice more than 40 rows with slices of 8, and none with 19.
  const auto a = grid2d(120, 1);
  for (const auto& [slice, at_an_end, within] : {std::array{8, 8, 8}, std::array{19, 2, 2}}) {
    auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(120, 0), {}, 1);
    const auto halos = make_block_halos(plan, {}, 3, kAnyReads, slice).value();
    CHECK_EQ(halos.plans[0][0].boundary.size(), at_an_end);
    CHECK_EQ(halos.plans[0][1].boundary.size(), within);
    CHECK_EQ(halos.packets[0], 2 * at_an_end + within);
    Case c{a, std::move(plan), halos};
    check_product(c);
  }
}

TEST(rows_of_a_node_lie_side_by_side_among_those_of_one_kind) {
  // Pieces of the sequence end within nodes, where nodes do not come into it: 120 nodes in 7
  // blocks.
  const auto a = three_a_node(12, 10);
  for (const std::int32_t slice : {1, 7, 8, 16, 32}) {
    auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(at(a.n()), 0), {}, 1);
    const auto halos = make_block_halos(plan, {}, 7, kAnyReads, slice).value();
    const auto& name = plan.local[0].global_row;
    for (const BlockPlan& block : halos.plans[0])
      for (const RowRange& rows : {block.boundary, block.interior}) {
        CHECK_EQ(rows.size() % 3, 0);
        for (std::int32_t i = rows.begin; i < rows.end; ++i)
          CHECK_EQ(name[at(i)], name[at(i - (i - rows.begin) % 3)] + (i - rows.begin) % 3);
      }
  }
}

TEST(rows_that_all_read_the_same_are_shared_among_blocks_nevertheless) {
  Entries e;
  for (std::int32_t i = 0; i < 40; ++i)
    for (std::int32_t j = 0; j < 40; ++j) e[{i, j}] = 1.0;
  const auto a = from_entries<double>(40, e);
  auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(40, 0), {}, 1);
  const auto halos = make_block_halos(plan, {}, 4).value();
  for (const BlockPlan& block : halos.plans[0]) CHECK_EQ(block.rows(), 10);
}

TEST(entries_keep_their_sequence_within_a_row) {
  const auto a = irregular(80, 6);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 2, 3), {}, 2);
  auto renumbered = plan;
  CHECK(make_block_halos(renumbered, {}, 3).has_value());
  for (std::size_t pe = 0; pe < 2; ++pe) {
    const auto& before = plan.local[pe];
    const auto& after = renumbered.local[pe];
    for (std::int32_t i = 0; i < after.rows(); ++i) {
      const auto old =
          std::ranges::find(before.global_row, after.global_row[at(i)]) - before.global_row.begin();
      CHECK(std::ranges::equal(
          std::span(before.val)
              .subspan(at(before.row_ptr[at(old)]),
                       at(before.row_ptr[at(old) + 1] - before.row_ptr[at(old)])),
          std::span(after.val).subspan(at(after.row_ptr[at(i)]),
                                       at(after.row_ptr[at(i) + 1] - after.row_ptr[at(i)]))));
    }
  }
}

TEST(packets_know_the_blocks_that_send_them) {
  const Case c = make(grid2d(8, 8), 3, 2);
  const auto boundaries = gather_boundaries(c.halos.plans, AllHere(3));
  for (int pe = 0; pe < 3; ++pe) {
    const auto& local = c.plan.local[at(pe)];
    const auto sources = packet_sources(local, boundaries, c.halos.plans[at(pe)], pe);
    CHECK_EQ(sources.size(), at(c.halos.packets[at(pe)]));
    for (std::size_t g = 0; g < sources.size(); ++g) {
      const auto owner = at(sources[g] / 2);
      const BlockPlan& block = c.halos.plans[owner][at(sources[g] % 2)];
      if (g < at(local.ghosts)) {
        CHECK_EQ(owner, at(local.ghost_owner[g]));
        CHECK(local.ghost_row[g] >= block.boundary.begin);
        CHECK(local.ghost_row[g] < block.boundary.begin + block.remote);
      } else {
        CHECK_EQ(owner, at(pe));
        CHECK(static_cast<std::int32_t>(g) >= block.first_packet);
        CHECK(static_cast<std::int32_t>(g) < block.first_packet + block.boundary.size());
      }
    }
  }
}

std::int64_t all_reads(const BlockHalos& halos) {
  std::int64_t all = 0;
  for (const auto& blocks : halos.plans)
    for (const BlockPlan& block : blocks) all += static_cast<std::int64_t>(block.reads.size());
  return all;
}

TEST(a_sequence_whose_pieces_read_too_much_is_refused_and_the_plan_kept) {
  const auto a = grid2d(6, 8);  // 4 blocks of two lines of 6: 6, 12, 12 and 6 reads
  auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(48, 0), {}, 1);
  const auto before = plan.local[0].col;
  CHECK(!make_block_halos(plan, {}, 4, 35).has_value());
  CHECK(std::ranges::equal(before, plan.local[0].col));
  CHECK(make_block_halos(plan, {}, 4, 36).has_value());
}

TEST(rows_that_are_read_and_read_nothing_are_boundary) {
  Entries e;  // two blocks of rows that all read one another
  for (std::int32_t i = 0; i < 8; ++i)
    for (std::int32_t j = 0; j < 8; ++j)
      if (i / 4 == j / 4) e[{i, j}] = 1.0 + i + j;
  e[{0, 7}] = e[{4, 3}] = 1.0;  // rows 7 and 3 read nothing of the other block
  const auto a = from_entries<double>(8, e);
  Case c{a, make_halo_plan(a.view(), std::vector<std::int32_t>(8, 0), {}, 1), {}};
  c.halos = make_block_halos(c.plan, {}, 2, kAnyReads, 1).value();
  CHECK_EQ(c.halos.packets[0], 4);
  check_product(c);
}

TEST(blocks_read_less_than_pieces_of_the_sequence_do) {
  // 16 blocks of 256 rows: strips of four lines of 64 read 1920 rows of others.
  const auto a = grid2d(64, 64);
  auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(64 * 64, 0), {}, 1);
  CHECK(all_reads(make_block_halos(plan, {}, 16).value()) < 1920 * 3 / 4);
}

TEST(rows_that_read_nothing_do_not_gather_in_one_block) {
  // Nodes with nine unknowns each, and as many rows that stand alone: a block of equal weight could
  // have three times as many of these.
  const auto nodes = grid2d(24, 24);
  Entries e;
  for (std::int32_t i = 0; i < nodes.n(); ++i)
    for (std::int32_t u = 0; u < 9; ++u) {
      const std::int32_t row = 2 * (9 * i + u);
      for (auto k = nodes.row_ptr[at(i)]; k < nodes.row_ptr[at(i) + 1]; ++k)
        for (std::int32_t v = 0; v < 9; ++v) e[{row, 2 * (9 * nodes.col[at(k)] + v)}] = 1.0;
      e[{row + 1, row + 1}] = 1.0;
    }
  const auto a = from_entries<double>(18 * nodes.n(), e);
  auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(at(a.n()), 0), {}, 1);
  const auto halos = make_block_halos(plan, {}, 16).value();
  std::int32_t most = 0;
  for (const BlockPlan& block : halos.plans[0])
    most = std::max(most, block.boundary.size() + block.interior.size());
  CHECK(most <= a.n() / 16 * 12 / 10);
}

TEST(blocks_are_pieces_of_the_sequence_where_these_read_least) {
  // Rows that read nothing but themselves: no cut is better than another.
  Entries e;
  for (std::int32_t i = 0; i < 40; ++i) e[{i, i}] = 1.0;
  const Case c = make(from_entries<double>(40, e), 1, 4);
  for (std::int32_t i = 0; i < 40; ++i) CHECK_EQ(c.plan.local[0].global_row[at(i)], i);
}

TEST(a_cut_whose_blocks_read_in_one_direction_only_is_not_taken) {
  // Rows that all read one another, even ones and odd ones; and row 0 reads row 7. Pieces of the
  // sequence read one another; even and odd rows as blocks would read one packet in one direction.
  Entries e;
  for (std::int32_t i = 0; i < 8; ++i)
    for (std::int32_t j = i % 2; j < 8; j += 2) e[{i, j}] = 1.0;
  const auto cut = make(from_entries<double>(8, e), 1, 2);
  CHECK_EQ(all_reads(cut.halos), 0);
  e[{0, 7}] = 1.0;
  const auto pieces = make(from_entries<double>(8, e), 1, 2);
  for (const BlockPlan& block : pieces.halos.plans[0]) CHECK_EQ(block.reads.size(), 4U);
}

TEST(blocks_that_read_in_one_direction_only_are_refused_and_the_plan_kept) {
  Entries e;  // two blocks of rows that all read one another
  for (std::int32_t i = 0; i < 8; ++i)
    for (std::int32_t j = 0; j < 8; ++j)
      if (i / 4 == j / 4) e[{i, j}] = 1.0;
  e[{0, 7}] = 1.0;  // block 0 reads block 1, not the other way round
  const auto a = from_entries<double>(8, e);
  auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(8, 0), {}, 1);
  const auto before = plan.local[0].col;
  CHECK(!make_block_halos(plan, {}, 2).has_value());
  CHECK(std::ranges::equal(before, plan.local[0].col));
}
