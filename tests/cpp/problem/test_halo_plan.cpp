#include "cpufree/problem/halo_plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "cpufree/base/error.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "cpufree/reference/cg.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

// Moves x as one exchange does, multiplies locally, and gathers the product.
std::vector<double> distributed_product(const HaloPlan<double>& plan,
                                        const std::vector<double>& x) {
  std::vector<std::vector<double>> v(plan.local.size());
  for (std::size_t pe = 0; pe < v.size(); ++pe) {
    v[pe].assign(at(plan.local[pe].rows() + plan.local[pe].ghosts), NAN);
    for (std::size_t i = 0; i < plan.local[pe].global_row.size(); ++i)
      v[pe][i] = x[at(plan.local[pe].global_row[i])];
  }
  for (std::size_t pe = 0; pe < v.size(); ++pe) {
    const auto& local = plan.local[pe];
    for (std::int32_t k = 0; k < local.boundary(); ++k)
      for (auto d = local.send_ptr[at(k)]; d < local.send_ptr[at(k) + 1]; ++d)
        v[at(local.destinations[at(d)].pe)][at(local.destinations[at(d)].index)] =
            v[pe][at(local.interior + k)];
  }
  std::vector<double> y(x.size(), NAN);
  for (std::size_t pe = 0; pe < v.size(); ++pe) {
    const auto& local = plan.local[pe];
    for (std::int32_t i = 0; i < local.rows(); ++i) {
      double sum = 0.0;
      for (auto k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k)
        sum += local.val[at(k)] * v[pe][at(local.col[at(k)])];
      y[at(local.global_row[at(i)])] = sum;
    }
  }
  return y;
}

}  // namespace

TEST(exchange_and_local_products_give_the_global_product) {
  for (const int pes : {1, 2, 3, 5, 8}) {
    const auto a = irregular(97, 3);
    const auto part = random_partition(a.n(), pes, 4);
    const auto plan = make_halo_plan(a.view(), part, {}, pes);
    const auto x = wave(a.n());
    const auto y = distributed_product(plan, x);
    const auto expected = reference::multiply(a.view(), x);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK_NEAR(y[i], expected[i], 1e-12);
  }
}

TEST(interior_rows_read_no_ghosts_and_boundary_rows_do) {
  const auto a = grid2d(12, 9);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 4, 1), {}, 4);
  for (const auto& local : plan.local)
    for (std::int32_t i = 0; i < local.rows(); ++i) {
      bool reads = false;
      for (auto k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k)
        reads = reads || local.col[at(k)] >= local.rows();
      CHECK_EQ(reads, i >= local.interior);
    }
}

TEST(ghosts_of_a_neighbour_are_contiguous_and_follow_its_rows) {
  const auto a = irregular(80, 5);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 3, 9), {}, 3);
  for (const auto& local : plan.local) {
    std::int32_t next = 0;
    for (const Neighbour& n : local.neighbours) {
      CHECK_EQ(n.first_ghost, next);
      for (std::int32_t g = next; g < next + n.received; ++g) {
        CHECK_EQ(local.ghost_owner[at(g)], n.pe);
        CHECK(g == next || local.ghost_row[at(g)] > local.ghost_row[at(g - 1)]);
      }
      next += n.received;
    }
    CHECK_EQ(next, local.ghosts);
  }
}

TEST(order_is_kept_among_interior_and_among_boundary_rows) {
  const auto a = grid2d(10, 10);
  std::vector<std::int32_t> order(100);
  std::iota(order.rbegin(), order.rend(), 0);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 2, 1), order, 2);
  for (const auto& local : plan.local) {
    const auto middle = local.global_row.begin() + local.interior;
    CHECK(std::is_sorted(local.global_row.begin(), middle, std::greater<>()));
    CHECK(std::is_sorted(middle, local.global_row.end(), std::greater<>()));
  }
}

TEST(pes_without_rows_have_an_empty_share) {
  const auto a = grid2d(2, 2);
  const std::vector<std::int32_t> part{3, 3, 0, 3};
  const auto plan = make_halo_plan(a.view(), part, {}, 5);
  CHECK_EQ(plan.local[1].rows(), 0);
  CHECK_EQ(plan.local[3].rows(), 3);
  CHECK_EQ(plan.local[0].ghosts, 2);
}

TEST(one_way_coupling_is_rejected) {
  const auto a =
      from_entries<double>(3, {{{0, 0}, 1.0}, {{1, 1}, 1.0}, {{2, 2}, 1.0}, {{0, 2}, 0.5}});
  const std::vector<std::int32_t> part{0, 0, 1};
  CHECK_THROWS(InvalidInput, make_halo_plan(a.view(), part, {}, 2));
}

TEST(one_way_coupling_in_a_cycle_is_rejected) {  // every row is read by the PE that it reads
  Entries e;
  for (std::int32_t i = 0; i < 4; ++i) e[{i, i}] = 4.0;
  e[{0, 2}] = e[{2, 1}] = e[{1, 3}] = e[{3, 0}] = -1.0;
  const auto a = from_entries<double>(4, e);
  const std::vector<std::int32_t> part{0, 0, 1, 1};
  CHECK_THROWS(InvalidInput, make_halo_plan(a.view(), part, {}, 2));
}

TEST(partition_out_of_range_is_rejected) {
  const auto a = grid2d(2, 2);
  const std::vector<std::int32_t> part{0, 1, 2, 0};
  CHECK_THROWS(InvalidInput, make_halo_plan(a.view(), part, {}, 2));
}

TEST(order_that_is_no_permutation_is_rejected) {
  const auto a = grid2d(2, 2);
  const std::vector<std::int32_t> part(4, 0);
  const std::vector<std::int32_t> order{0, 1, 1, 3};
  CHECK_THROWS(InvalidInput, make_halo_plan(a.view(), part, order, 1));
}

TEST(blocks_share_all_rows_of_their_pe) {
  const auto a = irregular(150, 8);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 3, 2), {}, 3);
  for (const int blocks : {1, 2, 5, 64}) {
    const auto plans = make_block_plans(plan, blocks);
    for (std::size_t pe = 0; pe < plans.size(); ++pe) {
      std::int32_t interior = 0;
      std::int32_t boundary = plan.local[pe].interior;
      for (const BlockPlan& b : plans[pe]) {
        CHECK_EQ(b.interior.begin, interior);
        CHECK_EQ(b.boundary.begin, boundary);
        interior = b.interior.end;
        boundary = b.boundary.end;
      }
      CHECK_EQ(interior, plan.local[pe].interior);
      CHECK_EQ(boundary, plan.local[pe].rows());
    }
  }
}

TEST(blocks_share_what_slices_take_with_their_padding) {
  // Every 32nd row of the second half is long: its slice is stored as wide as it is.
  constexpr std::int32_t kRows = 4096, kLong = 41;
  Entries e;
  for (std::int32_t i = 0; i < kRows; ++i) e[{i, i}] = 10.0;
  for (std::int32_t i = kRows / 2; i + kLong < kRows; i += 8)
    for (std::int32_t k = 1; k < kLong; ++k) e[{i, i + k}] = e[{i + k, i}] = -0.1;
  const auto a = from_entries<double>(kRows, e);
  const auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(kRows, 0), {}, 1);
  const PaddedRows padded(kRows, kRows, slice_costs(plan.local[0].row_ptr, {0, kRows}), {});
  const auto taken = [&](const RowRange& rows) {
    const std::int64_t entries = padded(rows.end) - padded(rows.begin);
    return row_weight(entries) + row_weight(0) * (rows.size() - 1);
  };
  const auto plans = make_block_plans(plan, 8);
  for (const BlockPlan& b : plans[0]) {
    CHECK(8 * taken(b.interior) <= taken({0, kRows}) * 21 / 20);
    CHECK(8 * taken(b.interior) >= taken({0, kRows}) * 19 / 20);
  }
}

TEST(blocks_await_one_another_mutually) {  // what the proofs of the channels rest on
  const auto a = irregular(150, 11);
  const int pes = 4;
  const int blocks = 3;
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), pes, 6), {}, pes);
  const auto plans = make_block_plans(plan, blocks);
  const auto awaits = [&](int slot) -> const std::vector<std::int32_t>& {
    return plans[at(slot / blocks)][at(slot % blocks)].await;
  };
  int pairs = 0;
  for (int slot = 0; slot < pes * blocks; ++slot)
    for (const std::int32_t other : awaits(slot)) {
      CHECK(std::ranges::binary_search(awaits(other), slot));
      CHECK(other / blocks != slot / blocks);
      ++pairs;
    }
  CHECK(pairs > 0);
}

TEST(blocks_notify_exactly_the_pes_that_they_send_to) {
  const auto a = irregular(90, 12);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 3, 5), {}, 3);
  const auto plans = make_block_plans(plan, 2);
  for (std::size_t pe = 0; pe < plans.size(); ++pe)
    for (const BlockPlan& b : plans[pe]) {
      std::set<std::int32_t> sent;
      const auto& local = plan.local[pe];
      for (std::int32_t i = b.boundary.begin; i < b.boundary.end; ++i)
        for (auto d = local.send_ptr[at(i - local.interior)];
             d < local.send_ptr[at(i - local.interior) + 1]; ++d)
          sent.insert(local.destinations[at(d)].pe);
      CHECK(std::ranges::equal(sent, b.notify));
    }
}

TEST(blocks_await_exactly_the_local_blocks_whose_rows_they_read) {
  const auto a = irregular(400, 13);
  for (const int pes : {1, 3}) {
    const auto plan = make_halo_plan(a.view(), random_partition(a.n(), pes, 8), {}, pes);
    const auto plans = make_block_plans(plan, 7);
    for (std::size_t pe = 0; pe < plans.size(); ++pe) {
      const auto owner = [&](std::int32_t row) {
        for (std::size_t b = 0; b < plans[pe].size(); ++b)
          for (const RowRange r : {plans[pe][b].interior, plans[pe][b].boundary})
            if (row >= r.begin && row < r.end) return static_cast<std::int32_t>(b);
        return -1;
      };
      const auto& local = plan.local[pe];
      std::vector<std::set<std::int32_t>> read(plans[pe].size());
      for (std::int32_t i = 0; i < local.rows(); ++i)
        for (auto k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k)
          if (local.col[at(k)] < local.rows() && owner(local.col[at(k)]) != owner(i))
            read[at(owner(i))].insert(owner(local.col[at(k)]));
      for (std::size_t b = 0; b < read.size(); ++b)
        CHECK(std::ranges::equal(read[b], plans[pe][b].await_local));
    }
  }
}

TEST(blocks_far_apart_do_not_await_one_another) {
  const auto a = grid2d(10, 100);
  const std::vector<std::int32_t> part(1000, 0);
  const auto plans = make_block_plans(make_halo_plan(a.view(), part, {}, 1), 10);
  CHECK_EQ(plans[0][0].await_local.size(), std::size_t{1});
  CHECK_EQ(plans[0][5].await_local.size(), std::size_t{2});
}

TEST(local_waits_are_mutual_even_where_the_pattern_is_not) {
  Entries e;
  for (std::int32_t i = 0; i < 64; ++i) e[{i, i}] = 1.0;
  e[{0, 63}] = 0.5;
  const auto a = from_entries<double>(64, e);
  const std::vector<std::int32_t> part(64, 0);
  const auto plans = make_block_plans(make_halo_plan(a.view(), part, {}, 1), 4);
  CHECK_EQ(plans[0][0].await_local, std::vector<std::int32_t>{3});
  CHECK_EQ(plans[0][3].await_local, std::vector<std::int32_t>{0});
}

TEST(source_of_a_ghost_is_the_block_that_owns_its_row) {
  const auto a = irregular(200, 9);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 3, 3), {}, 3);
  const auto plans = make_block_plans(plan, 4);
  const auto boundaries = gather_boundaries(plans, AllHere(3));
  for (int pe = 0; pe < 3; ++pe) {
    const auto& local = plan.local[at(pe)];
    const auto sources = ghost_sources(local, boundaries);
    CHECK_EQ(sources.size(), at(local.ghosts));
    for (std::size_t g = 0; g < sources.size(); ++g) {
      CHECK_EQ(sources[g] / 4, local.ghost_owner[g]);
      const RowRange rows = plans[at(sources[g] / 4)][at(sources[g] % 4)].boundary;
      CHECK(local.ghost_row[g] >= rows.begin && local.ghost_row[g] < rows.end);
    }
  }
}

// Large enough for several threads. What they must agree with is the definition, row by row.
TEST(large_plans_hold_every_entry_in_local_numbers_and_in_order) {
  const std::int32_t side = 320;
  const auto a = grid2d(side, side);
  std::vector<std::int32_t> order(at(a.n()));
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int32_t>(i * 7919 % order.size());  // a permutation: 7919 is prime
  for (const int pes : {1, 3})
    for (const bool ordered : {false, true}) {
      const auto part = random_partition(a.n(), pes, 5);
      const auto plan =
          make_halo_plan(a.view(), part, ordered ? order : std::vector<std::int32_t>{}, pes);
      std::int64_t wrong = 0;
      std::int64_t entries = 0;
      for (const auto& local : plan.local)
        for (std::int32_t i = 0; i < local.rows(); ++i) {
          const std::int32_t row = local.global_row[at(i)];
          std::map<std::int32_t, double> there;
          for (auto k = a.row_ptr[at(row)]; k < a.row_ptr[at(row) + 1]; ++k)
            there[a.col[at(k)]] = a.val[at(k)];
          for (auto k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k, ++entries) {
            const std::int32_t col = local.col[at(k)];
            if (k > local.row_ptr[at(i)] && local.col[at(k - 1)] >= col) ++wrong;
            const std::int32_t g = col - local.rows();
            const std::int32_t global = g < 0 ? local.global_row[at(col)]
                                              : plan.local[at(local.ghost_owner[at(g)])]
                                                    .global_row[at(local.ghost_row[at(g)])];
            if (!there.contains(global) || there[global] != local.val[at(k)]) ++wrong;
          }
        }
      CHECK_EQ(wrong, 0);
      CHECK_EQ(entries, a.row_ptr.back());
    }
}

TEST(everybody_is_awaited_mutually_where_that_is_asked_for) {
  const auto a = grid2d(9, 7);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 3, 4), {}, 3);
  const auto plans = make_block_plans(plan, 2, Awaited::everybody);
  for (std::int32_t pe = 0; pe < 3; ++pe)
    for (std::int32_t mine = 0; mine < 2; ++mine) {
      const BlockPlan& block = plans[static_cast<std::size_t>(pe)][static_cast<std::size_t>(mine)];
      CHECK(block.await_local == std::vector<std::int32_t>{1 - mine});
      CHECK_EQ(block.notify.size(), std::size_t{2});
      CHECK_EQ(block.await.size(), std::size_t{4});
      for (const std::int32_t slot : block.await) CHECK(slot / 2 != pe);
    }
}
