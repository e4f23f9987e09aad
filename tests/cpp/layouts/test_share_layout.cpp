// How shares lie in a GPU's memory.
#include "cpufree/base/machine.hpp"
#include "cpufree/solvers/gpu/share_layout.hpp"

#include <algorithm>
#include <cstdlib>

#include "harness.hpp"
#include "matrices.hpp"

using namespace cpufree;
using namespace testing_matrices;

namespace {

struct Example {
  HaloPlan<double> plan;
  std::vector<PeLayout> layouts;
  Example(int pes, int blocks) {
    const auto a = irregular(500, 17);
    plan = make_halo_plan(a.view(), random_partition(a.n(), pes, 2), {}, pes);
    layouts = lay_out_shares(plan, make_block_plans(plan, blocks));
  }
};

}  // namespace

TEST(private_order_holds_every_row_once_boundary_rows_of_a_block_first) {
  const Example e(3, 5);
  for (std::size_t pe = 0; pe < 3; ++pe) {
    const LocalSystem<double>& local = e.plan.local[pe];
    const auto rows = private_rows(local, e.layouts[pe]);
    CHECK_EQ(rows.size(), at(e.layouts[pe].private_rows));
    int met = 0;
    for (const ShareLayout& share : e.layouts[pe].shares) {
      CHECK_EQ(share.first_private % 32, 0);
      const BlockPlan& plan = share.plan;
      for (std::int32_t j = 0; j < plan.rows(); ++j, ++met) {
        const std::int32_t i = j < plan.boundary.size()
                                   ? plan.boundary.begin + j
                                   : plan.interior.begin + j - plan.boundary.size();
        CHECK_EQ(rows[at(share.first_private + j)], local.global_row[at(i)]);
      }
    }
    CHECK_EQ(met, local.rows());
    CHECK_EQ(std::ranges::count(rows, -1), static_cast<std::ptrdiff_t>(rows.size()) - met);
  }
}

TEST(shares_follow_one_another_in_the_arrays_of_their_pe) {
  const Example e(2, 4);
  for (const PeLayout& pe : e.layouts) {
    std::int64_t units = 0, slices = 0, tails = 0, tail_entries = 0, values = 0;
    for (const ShareLayout& share : pe.shares) {
      const WarpSlicesSize size = share.shape.size();
      CHECK_EQ(share.first_unit, units);
      CHECK_EQ(share.first_slice, slices);
      CHECK_EQ(share.first_tail, tails);
      CHECK_EQ(share.first_tail_entry, tail_entries);
      CHECK_EQ(share.first_value, values);
      units += size.units;
      slices += size.slices;
      tails += size.tails;
      tail_entries += size.tail_entries;
      values += size.values;
    }
    CHECK_EQ(pe.units, units);
    CHECK_EQ(pe.tail_entries, tail_entries);
    CHECK_EQ(pe.values, values);
    CHECK_EQ(pe.slices, slices);
    CHECK_EQ(pe.tails, tails);
  }
}

TEST(boundary_slices_follow_interior_slices) {
  const Example e(2, 3);
  for (const PeLayout& pe : e.layouts)
    for (const ShareLayout& share : pe.shares)
      for (std::size_t s = 0; s < share.shape.slice.size(); ++s) {
        const RowRange range =
            s < at(share.interior.slices()) ? share.plan.interior : share.plan.boundary;
        CHECK(share.shape.rows[s].begin >= range.begin && share.shape.rows[s].end <= range.end);
      }
}

TEST(lanes_share_rows_that_are_long) {
  CHECK_EQ(rows_on_lanes({0, 1000}, 1000 * 15, 512, -1).lanes_log2, 0);
  CHECK_EQ(rows_on_lanes({0, 1000}, 1000 * 16, 512, -1).lanes_log2, 1);
  CHECK_EQ(rows_on_lanes({0, 1000}, 1000 * 86, 512, -1).lanes_log2, 3);
  CHECK_EQ(rows_on_lanes({0, 1000}, 1000 * 5000, 512, -1).lanes_log2, 5);
}

TEST(warps_take_fewer_rows_at_a_time_where_there_are_few) {
  CHECK_EQ(rows_on_lanes({0, 200}, 200 * 200, 512, -1).thin, 1);
  CHECK_EQ(rows_on_lanes({0, 60}, 60 * 200, 512, -1).thin, 3);
  CHECK_EQ(rows_on_lanes({0, 300}, 300 * 200, 512, -1).thin, 0);
  CHECK_EQ(rows_on_lanes({0, 9000}, 9000 * 200, 512, -1).thin, 0);
}

TEST(warps_take_eight_rows_at_a_time_where_blocks_with_packets_have_more_than_threads) {
  const auto a = irregular(900, 90);
  for (const bool packets : {false, true})
    for (const int threads : {64, 1024}) {
      auto plan = make_halo_plan(a.view(), random_partition(a.n(), 1, 2), {}, 1);
      auto plans = packets ? make_block_halos(plan, {}, 4)->plans : make_block_plans(plan, 4);
      for (const std::int32_t lanes_log2 : {1, 2, 3})
        for (const PeLayout& pe : lay_out_shares(plan, plans, {packets, {}, lanes_log2, threads}))
          for (const ShareLayout& share : pe.shares) {
            const std::int32_t least = packets && threads == 64 ? std::min(lanes_log2, 2) : 0;
            const std::int32_t most = packets && threads == 64 ? least : lanes_log2;
            for (const LaneRows& rows : {share.interior, share.boundary})
              CHECK(rows.thin >= least && rows.thin <= most);
          }
    }
}

TEST(each_range_of_a_share_is_spread_by_itself) {
  const auto a = irregular(900, 90);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 2, 2), {}, 2);
  for (const PeLayout& pe : lay_out_shares(plan, make_block_plans(plan, 4), {false, {}, 2, 512}))
    for (const ShareLayout& share : pe.shares) {
      std::int32_t interior = 0;
      for (std::size_t s = 0; s < share.shape.slice.size(); ++s) {
        const LaneRows& rows = share.shape.rows[s];
        CHECK_EQ(rows.lanes_log2, 2);
        CHECK(rows.size() <= 8);
        if (s < at(share.interior.slices())) interior += rows.size();
      }
      CHECK_EQ(interior, share.plan.interior.size());
    }
}

TEST(slices_without_tails_are_as_wide_as_their_longest_rows) {
  const auto a = irregular(500, 17);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 1, 2), {}, 1);
  const auto plans = make_block_plans(plan, 3);
  CHECK(lay_out_shares(plan, plans)[0].tails > 0);
  Codes codes;
  codes.tails = false;
  for (const PeLayout& pe : lay_out_shares(plan, plans, {false, codes})) {
    CHECK_EQ(pe.tails, 0);
    CHECK_EQ(pe.tail_entries, 0);
    for (const ShareLayout& share : pe.shares)
      for (std::size_t s = 0; s < share.shape.slice.size(); ++s) {
        std::int64_t longest = 0;
        const auto& ptr = plan.local[0].row_ptr;
        for (std::int32_t row = share.shape.rows[s].begin; row < share.shape.rows[s].end; ++row)
          longest = std::max(longest, ptr[at(row) + 1] - ptr[at(row)]);
        CHECK_EQ(share.shape.slice[s].width, longest);
      }
  }
}

TEST(warps_have_less_to_sum_where_lanes_share_few_long_rows) {
  Entries e;  // one block, all rows of one slice, which one warp sums if lanes do not share them
  for (std::int32_t i = 0; i < 32; ++i)
    for (std::int32_t j = 0; j < 32; ++j) e[{i, j}] = i == j ? 40.0 : 1.0 / (i + j + 1.0);
  const auto a = from_entries<double>(32, e);
  const auto plan = make_halo_plan(a.view(), random_partition(a.n(), 1, 2), {}, 1);
  const auto plans = make_block_plans(plan, 1);
  std::int64_t before = 1'000'000;
  for (const std::int32_t lanes_log2 : {0, 1, 2, 3}) {
    const auto layouts = lay_out_shares(plan, plans, {false, {true, false}, lanes_log2, 256});
    const std::int64_t busiest = busiest_warp(layouts, 256);
    CHECK(busiest >= 32 >> lanes_log2 && busiest < before);
    before = busiest;
  }
  // Of one warp, it has all to sum, and to begin twice as many slices.
  const auto all = [&](std::int32_t lanes_log2) {
    return busiest_warp(lay_out_shares(plan, plans, {false, {true, false}, lanes_log2, 32}), 32);
  };
  CHECK(all(0) >= 32);
  CHECK(all(1) > all(0));
}

TEST(chunks_cover_all_slices_in_order_and_keep_to_their_size) {
  const Example e(1, 3);
  for (const std::int64_t most : {1, 20, 100, 100'000}) {
    const auto chunks = cut_into_chunks(e.layouts[0], most);
    std::int64_t next = 0;
    for (const Chunk& chunk : chunks) {
      CHECK_EQ(chunk.first_unit, next);
      CHECK(chunk.units <= most || chunk.end == chunk.first + 1);
      next += chunk.units;
    }
    CHECK_EQ(next, e.layouts[0].units);
  }
}

TEST(feeds_name_every_chunk_of_a_warps_slices_interior_ones_first) {
  const Example e(1, 3);
  for (const ShareLayout& share : e.layouts[0].shares) {
    const SliceFeed feed = feed_of<double>(share.shape, {share.interior, share.boundary}, 4);
    CHECK_EQ(feed.first.size(), std::size_t{5});
    CHECK_EQ(feed.first.back(), feed.items.size());
    std::int64_t bytes = 0;
    std::vector<std::int32_t> slices;
    for (std::size_t w = 0; w < 4; ++w)
      for (std::size_t k = feed.first[w]; k < feed.first[w + 1]; ++k) {
        const FeedItem& item = feed.items[k];
        bytes += item.bytes();
        if (item.slice() < 0) continue;
        const WarpSlice& slice = share.shape.slice[at(item.slice())];
        CHECK_EQ(item.grain * std::int64_t{kFeedGrain}, slice.first * kSliceUnit);
        const bool interior = item.slice() < share.interior.slices();
        const std::int32_t begin = interior ? 0 : share.interior.slices();
        CHECK_EQ(at(item.slice() - begin) % 4, w);
        slices.push_back(item.slice());
      }
    std::ranges::sort(slices);
    for (std::size_t s = 0; s < slices.size(); ++s) CHECK_EQ(at(slices[s]), s);
    CHECK_EQ(slices.size(), share.shape.slice.size());
    CHECK(bytes <= share.shape.units * kSliceUnit);
    CHECK(bytes > share.shape.units * kSliceUnit -
                      static_cast<std::int64_t>(share.shape.slice.size()) * kSliceUnit);
  }
}

TEST(everything_stays_on_chip_where_it_fits) {
  const std::vector<ShareSize> shares{{100, {300, 4, 0, 0, 0}}, {90, {300, 3, 33, 70, 5}}};
  const FastMemory fast = choose_residency(shares, {5, false, 8}, 200'000, -1);
  CHECK(fast.residency.matrix);
  CHECK_EQ(fast.residency.vectors, 5);
  CHECK_EQ(fast.residency.stride, 100);
  CHECK_EQ(fast.bytes,
           resident_bytes(fast.residency, 8, resident_matrix_bytes(shares[1].matrix, 8)));
}

TEST(as_many_vectors_as_fit_stay_on_chip_where_the_matrix_does_not) {
  const std::vector<ShareSize> shares{{1001, {9000, 32, 0, 0, 0}}};
  const FastMemory fast = choose_residency(shares, {12, false, 8}, 6 * 1002 * 8 + 100, -1);
  CHECK(!fast.residency.matrix);
  CHECK_EQ(fast.residency.vectors, 6);
  CHECK_EQ(fast.residency.stride, 1002);
  CHECK(!fast.residency.direction);  // the copy of p makes room before a vector does
  CHECK_EQ(fast.bytes, std::size_t{6 * 1002 * 8});
}

TEST(exchanged_vector_that_is_read_on_chip_stays_there_before_private_ones) {
  const std::vector<ShareSize> shares{{1000, {9000, 32, 0, 0, 0}, 200}};
  const FastMemory fast =
      choose_residency(shares, {12, false, 8}, 3 * 1000 * 8 + 1200 * 8 + 900, -1);
  CHECK(!fast.residency.matrix && fast.residency.direction);
  CHECK_EQ(fast.residency.vectors, 3);
}

TEST(rings_have_their_room_before_vectors_do) {
  const std::vector<ShareSize> shares{{1000, {90000, 32, 0, 0, 0}, 0, 12, 2688},
                                      {1000, {90000, 32, 0, 0, 0}, 0, 9, 2560}};
  OnChipRequest wanted{4, false, 8, 16, -1, true};
  const FastMemory fast = choose_residency(shares, wanted, 100'000, -1);
  CHECK_EQ(fast.residency.ring.slots, 2);
  CHECK_EQ(fast.residency.ring.warps, 12);  // no more than have slices
  CHECK_EQ(fast.residency.ring.slot_bytes, 2688);
  CHECK(fast.residency.ring.passing);
  CHECK_EQ(fast.residency.vectors, 4);
  CHECK(!fast.residency.direction);
  CHECK_EQ(fast.bytes, 4 * 8000 + ring_bytes(fast.residency.ring));
  wanted.slots = 8;  // as many as fit
  CHECK_EQ(choose_residency(shares, wanted, 100'000, -1).residency.ring.slots, 3);
  wanted.slots = 0;
  CHECK_EQ(choose_residency(shares, wanted, 100'000, -1).residency.ring.slots, 0);
}

TEST(the_second_cache_keeps_a_part_of_the_matrix_where_all_vectors_are_on_chip) {
  const std::vector<ShareSize> shares{{1000, {90000, 32, 0, 0, 0}, 0, 12, 2688}};
  const OnChipRequest wanted{4, false, 8, 16, -1, true, 40};
  CHECK_EQ(choose_residency(shares, wanted, 120'000, -1).residency.ring.kept, 40);
  const Residency less = choose_residency(shares, wanted, 90'000, -1).residency;
  CHECK(less.ring.slots > 0 && less.vectors < 4);
  CHECK_EQ(less.ring.kept, 0);
}

TEST(what_is_not_kept_passes_where_something_is) {
  const std::vector<ShareSize> shares{{1000, {90000, 32, 0, 0, 0}, 0, 12, 2688}};
  const OnChipRequest wanted{4, false, 8, 16, -1, false, 40};
  CHECK(choose_residency(shares, wanted, 120'000, -1).residency.ring.passing);
  CHECK(!choose_residency(shares, wanted, 90'000, -1).residency.ring.passing);
}

TEST(one_block_of_32_may_have_no_room_for_its_vectors) {
  std::vector<ShareSize> shares(63, {1000, {90000, 32, 0, 0, 0}, 0, 12, 2688});
  shares[5].rows = 2000;
  const auto kept = [&] { return choose_residency(shares, {4, false, 8}, 12'000, -1).residency; };
  CHECK_EQ(kept().vectors, 1);
  CHECK_EQ(kept().stride, 1000);
  shares[7].rows = 1500;
  CHECK_EQ(kept().vectors, 1);  // two of 63 have more than 1000
  CHECK_EQ(kept().stride, 1500);
  shares.emplace_back(shares[0]);  // 64
  CHECK_EQ(kept().stride, 1000);
  shares[9].rows = 1500;
  CHECK_EQ(kept().stride, 1500);
}

TEST(one_vector_leaves_the_largest_block_out_and_two_have_room_in_all) {
  std::vector<ShareSize> shares(64, {1000, {90000, 32, 0, 0, 0}, 0, 12, 2688});
  const auto kept = [&](std::int32_t rows, std::size_t bytes) {
    shares[5].rows = rows;
    return choose_residency(shares, {4, false, 8}, bytes, -1).residency;
  };
  const Residency one = kept(4000, 30'000), two = kept(1200, 20'000);
  CHECK(one.vectors == 1 && one.stride == 1000);
  CHECK(two.vectors == 2 && two.stride == 1200);
}

TEST(vectors_that_are_read_from_far_memory_are_fetched_ahead) {
  const std::vector<ShareSize> shares{{4000, {90000, 32, 0, 0, 0}, 0, 12, 2688}};
  OnChipRequest wanted{4, false, 8};
  wanted.matrix_bytes = Machine{}.solver_cached_bytes - 30e6, wanted.vector_bytes = 11e6;
  const auto prefetch = [&](std::size_t limit) {
    return choose_residency(shares, wanted, limit, -1).residency.prefetch;
  };
  CHECK(prefetch(70'000));    // two vectors and p are not on chip
  CHECK(!prefetch(130'000));  // p alone is not: the L2 cache has it, and most of the matrix
  CHECK(!prefetch(200'000));  // all are
  wanted.matrix_bytes = 2 * Machine{}.solver_cached_bytes;
  CHECK(prefetch(130'000));
  CHECK(!prefetch(200'000));
  CHECK(prefetch(1000));  // none of them is on chip
}

TEST(vectors_of_few_rounds_are_not_fetched_ahead) {
  const std::vector<ShareSize> shares{{1000, {90000, 32, 0, 0, 0}, 0, 12, 2688}};
  OnChipRequest wanted{4, false, 8};
  wanted.matrix_bytes = 2 * Machine{}.solver_cached_bytes, wanted.vector_bytes = 11e6;
  CHECK(!choose_residency(shares, wanted, 1000, -1).residency.prefetch);
}

TEST(so_many_of_256_copies_are_kept) {
  for (const std::int32_t kept : {0, 1, 40, 255, 256}) {
    const RingShape ring{2, 2688, 12, true, kept};
    std::int32_t found = 0;
    for (std::uint32_t item = 0; item < 512; ++item) {
      const CacheHint hint = ring.hint_of(item);
      CHECK(hint == CacheHint::keep || hint == CacheHint::drop);
      if (hint == CacheHint::keep) ++found;
      if (kept > 0) CHECK(std::abs(found - static_cast<int>(item + 1) * kept / 256) <= 1);
    }
    CHECK_EQ(found, 2 * kept);
  }
  CHECK(RingShape{}.hint_of(7) == CacheHint::none);
}

TEST(coded_values_leave_room_for_the_first_cache) {
  const auto vectors = [](std::int32_t values) {
    const std::vector<ShareSize> shares{{8000, {90000, 250, 0, 0, values}, 0, 16, 2560}};
    const FastMemory fast = choose_residency(shares, {4, false, 8, 16, -1, true}, 227'000, -1);
    CHECK(fast.residency.ring.slots > 0 && !fast.residency.matrix);
    return fast.residency.vectors;
  };
  CHECK_EQ(vectors(0), 2);  // 82 KB of rings, and 64 KB each
  CHECK_EQ(vectors(100), 1);
}

TEST(rings_that_do_not_fit_are_left_out) {
  const std::vector<ShareSize> shares{{1000, {90000, 32, 0, 0, 0}, 0, 16, 2688}};
  const FastMemory fast = choose_residency(shares, {4, false, 8, 16, -1, true}, 50'000, -1);
  CHECK_EQ(fast.residency.ring.slots, 0);
  CHECK_EQ(fast.residency.vectors, 4);
}

TEST(what_blocks_read_of_others_lies_behind_their_own) {
  const std::vector<ShareSize> shares{{100, {300, 4, 0, 0, 0}, 31}, {90, {300, 4, 0, 0, 0}, 50}};
  const FastMemory fast = choose_residency(shares, {5, true, 8}, 200'000, -1);
  CHECK(fast.residency.matrix && fast.residency.scratch);
  CHECK_EQ(fast.residency.operand, 140);  // 90 + 50
  CHECK_EQ(fast.residency.reads, 50);
  const std::size_t vectors = 5 * 100 * 8 + 2 * 140 * 8 + 208;  // and 50 numbers, rounded up
  CHECK_EQ(resident_vector_bytes(fast.residency, 8), vectors);
  const FastMemory less = choose_residency(shares, {5, true, 8}, fast.bytes - 1, -1);
  CHECK(less.residency.matrix && !less.residency.scratch);
  CHECK_EQ(less.residency.vectors, 5);
}

TEST(nothing_stays_on_chip_where_not_one_vector_fits) {
  const FastMemory fast =
      choose_residency({{50'000, {10, 1, 0, 0, 0}}}, {5, false, 8}, 100'000, -1);
  CHECK_EQ(fast.residency.vectors, 0);
  CHECK_EQ(fast.bytes, std::size_t{0});
}

TEST(residency_can_be_switched_off_or_to_vectors_alone) {
  const std::vector<ShareSize> shares{{100, {300, 4, 0, 0, 0}}};
  CHECK_EQ(choose_residency(shares, {5, false, 4}, 200'000, 0).bytes, std::size_t{0});
  const FastMemory vectors = choose_residency(shares, {5, false, 4}, 200'000, 1);
  CHECK(!vectors.residency.matrix);
  CHECK_EQ(vectors.residency.vectors, 5);
}

TEST(blocks_without_rows_lay_nothing_out) {
  const auto a = grid2d(2, 2);
  const std::vector<std::int32_t> part(4, 1);
  const auto plan = make_halo_plan(a.view(), part, {}, 2);
  const auto layouts = lay_out_shares(plan, make_block_plans(plan, 3));
  CHECK_EQ(layouts[0].units, 0);
  CHECK_EQ(layouts[0].private_rows, 0);
  CHECK(private_rows(plan.local[0], layouts[0]).empty());
  CHECK(cut_into_chunks(layouts[0], 100).empty());
}
