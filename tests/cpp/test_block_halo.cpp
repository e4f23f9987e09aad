// Halos of blocks: what every block holds, sends and reads, checked against the matrix itself.
#include "cpufree/problem/block_halo.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpufree/base/index.hpp"
#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

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

TEST(blocks_hold_contiguous_pieces_of_the_order_given) {
  const auto a = grid2d(6, 5);
  std::vector<std::int32_t> order(30);
  for (std::size_t k = 0; k < order.size(); ++k)
    order[k] = static_cast<std::int32_t>((7 * k + 2) % 30);
  const Case c = make(a, 2, 3, order);
  check_product(c);
  for (std::size_t pe = 0; pe < 2; ++pe) {
    std::ptrdiff_t last = -1;  // place in the order of the last row of the blocks before
    for (const BlockPlan& block : c.halos.plans[pe]) {
      std::vector<std::ptrdiff_t> places;
      for (std::int32_t i = block.boundary.begin; i < block.interior.end; ++i)
        places.push_back(std::ranges::find(order, c.plan.local[pe].global_row[at(i)]) -
                         order.begin());
      CHECK(places.empty() || std::ranges::min(places) > last);
      if (!places.empty()) last = std::ranges::max(places);
    }
  }
}

TEST(only_rows_between_blocks_are_boundary) {
  // A chain of 12 in 3 blocks: the 4 rows at the two cuts.
  const Case c = make(grid2d(12, 1), 1, 3);
  CHECK_EQ(c.halos.packets[0], 4);
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

TEST(blocks_that_read_too_much_of_others_are_refused_and_the_plan_kept) {
  const auto a = grid2d(6, 8);  // 4 blocks of two lines of 6: 6, 12, 12 and 6 reads
  auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(48, 0), {}, 1);
  const auto before = plan.local[0].col;
  CHECK(!make_block_halos(plan, {}, 4, 35).has_value());
  CHECK(std::ranges::equal(before, plan.local[0].col));
  const auto halos = make_block_halos(plan, {}, 4, 36);
  CHECK(halos.has_value());
  CHECK_EQ(halos->plans[0][1].reads.size(), std::size_t{12});
}

TEST(blocks_that_read_in_one_direction_only_are_refused_and_the_plan_kept) {
  Entries e;
  for (std::int32_t i = 0; i < 8; ++i) e[{i, i}] = 1.0;
  e[{0, 7}] = 1.0;  // block 0 reads block 1, not the other way round
  const auto a = from_entries<double>(8, e);
  auto plan = make_halo_plan(a.view(), std::vector<std::int32_t>(8, 0), {}, 1);
  const auto before = plan.local[0].col;
  CHECK(!make_block_halos(plan, {}, 2).has_value());
  CHECK(std::ranges::equal(before, plan.local[0].col));
}
