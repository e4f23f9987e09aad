// Products through rings of slots, thread by thread under random schedules: bit for bit those of
// slices that are read where they are.
#include <algorithm>
#include <vector>

#include "slice_share.hpp"

using namespace cpufree;
using namespace slice_share;

namespace {

// Through rings of a number of slots, which a port's copies fill.
template <class P, class As>
bool products_of_port_right(const Share& s, int slots, std::uint64_t seed, As as) {
  const RingShape shape{slots, slot_bytes<double>(s.shape), kThreads / kSliceRows, true};
  const auto make = [&](P& port) {
    WarpSlices<double> matrix = s.matrix();
    matrix.ring.fast = port.fast_memory();
    matrix.ring.shape = shape;
    return matrix;
  };
  return products_right<P>(s, ring_bytes(shape), seed, make, as);
}
// By one lane's copies in bulk.
template <class As = Everywhere>
bool products_right(const Share& s, int slots, std::uint64_t seed, As as = {}) {
  return products_of_port_right<warp_rig::StreamingPort>(s, slots, seed, as);
}

// On chip.
template <class As = Everywhere>
bool products_on_chip_right(const Share& s, std::uint64_t seed, As as = {}) {
  const auto make = [&](warp_rig::LanesPort& port) {
    return s.matrix().resident(port, port.fast_memory());
  };
  return products_right<warp_rig::LanesPort, SlicesOnChip>(
      s, resident_matrix_bytes(s.shape.size(), sizeof(double)), seed, make, as);
}

std::vector<std::int32_t> mixed_lengths(std::int32_t n) {
  std::vector<std::int32_t> lengths;
  for (std::int32_t i = 0; i < n; ++i)
    lengths.push_back(i % 97 == 5 ? 150 : i % 64 < 32 ? 3 + i % 3 : 17 + i % 5);
  return lengths;
}

}  // namespace

TEST(products_through_rings_are_right_for_any_number_of_slots) {
  const auto local = rows_of(mixed_lengths(310), 1, false);
  for (int slots = 2; slots <= kMostSlots; ++slots)
    CHECK(products_right(share_of(local, 217, true), slots, 40U + static_cast<unsigned>(slots)));
}

TEST(products_through_rings_that_all_lanes_fill_are_right) {
  const auto right = [](const Share& s, int slots, std::uint64_t seed) {
    return products_of_port_right<warp_rig::WarpStreamingPort>(s, slots, seed, Everywhere{});
  };
  for (const int slots : {2, 3, kMostSlots})
    CHECK(right(share_of(rows_of(mixed_lengths(310), 1, false), 217, true), slots, 30));
  CHECK(right(share_of(rows_of(mixed_lengths(200), 9000, false), 70, true), 2, 31));
  std::vector<std::int32_t> lengths(130, 0);
  lengths[40] = 2;
  CHECK(right(share_of(rows_of(lengths, 1, false), 33, true), 2, 32));
}

TEST(products_through_rings_are_right_in_every_code) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(harness::schedules(6)); ++seed) {
    CHECK(products_right(share_of(rows_of(mixed_lengths(200), 1, true), 100, true), 3, seed));
    CHECK(products_right(share_of(rows_of(mixed_lengths(200), 1, false), 100, false), 2, seed));
    // Columns in windows, and too far apart for them.
    CHECK(products_right(share_of(rows_of(mixed_lengths(200), 300, false), 70, true), 2, seed));
    CHECK(products_right(share_of(rows_of(mixed_lengths(200), 9000, false), 70, true), 2, seed));
  }
}

TEST(products_through_rings_are_right_where_columns_come_in_runs) {
  std::vector<std::int32_t> neighbours;
  for (std::int32_t i = 0; i < 60; ++i) neighbours.push_back(i % 25 == 3 ? 70 : i % 9);
  for (const bool alike : {false, true})
    for (const std::int32_t apart : {0, 39'999})
      for (const std::int32_t lanes_log2 : {0, 2}) {
        const auto local = nodes_of(neighbours, apart, alike);
        const Share s = share_of(local, 60, true, {lanes_log2, 0}, {0, 0});
        CHECK(std::ranges::any_of(s.shape.slice,
                                  [](const WarpSlice& slice) { return in_runs(slice.code); }));
        CHECK(products_right(s, 2, 70));
        CHECK(products_right(s, 3, 71, InOneCode{}));
      }
}

TEST(products_in_one_code_for_all_are_right) {
  for (const std::int32_t apart : {1, 300, 9000})
    for (const bool alike : {false, true}) {
      const auto local = rows_of(mixed_lengths(200), apart, alike);
      CHECK(products_right(share_of(local, 70, true, {1, 0}), 2, 50, InOneCode{}));
      CHECK(products_right(share_of(local, 70, true), 3, 51, InOneCode{}));
    }
}

TEST(rows_that_lanes_share_have_the_sums_of_the_lanes) {
  for (std::int32_t lanes_log2 = 1; lanes_log2 <= kMostLanesLog2; ++lanes_log2)
    for (std::int32_t thin = 0; thin <= lanes_log2; ++thin) {
      const auto seed = static_cast<std::uint64_t>(60 + 10 * lanes_log2 + thin);
      const Sharing one{lanes_log2, thin}, other{kMostLanesLog2 - lanes_log2, 0};
      CHECK(products_right(
          share_of(rows_of(mixed_lengths(110), 1, thin == 1), 37, true, one, other), 2, seed));
      // Rows of one length in several turns, columns too far apart for codes.
      const std::vector<std::int32_t> lengths(120, 21);
      CHECK(products_right(share_of(rows_of(lengths, 9000, false), 103, true, one, one), 3, seed));
    }
}

TEST(rows_that_lanes_share_on_chip_have_the_sums_of_the_lanes) {
  const auto local = rows_of(mixed_lengths(110), 1, false);
  for (std::int32_t lanes_log2 = 1; lanes_log2 <= kMostLanesLog2; ++lanes_log2)
    for (std::int32_t thin = 0; thin <= lanes_log2; ++thin) {
      const auto seed = static_cast<std::uint64_t>(80 + 10 * lanes_log2 + thin);
      const Share s =
          simple_share_of(local, 37, {lanes_log2, thin}, {kMostLanesLog2 - lanes_log2, 0});
      CHECK(s.shape.simple() == Simple::columns);
      CHECK(products_on_chip_right(s, seed));
      CHECK(products_on_chip_right(s, seed, InOneCode{}));
    }
}

TEST(runs_that_lanes_share_on_chip_have_the_sums_of_the_lanes) {
  std::vector<std::int32_t> neighbours;
  for (std::int32_t i = 0; i < 60; ++i) neighbours.push_back(1 + i % 25);
  const auto local = nodes_of(neighbours, 0, false);
  for (const std::int32_t lanes_log2 : {1, 2, 3}) {
    const Share s = simple_share_of(local, 60, {lanes_log2, 0}, {lanes_log2, 1});
    CHECK(s.shape.simple() == Simple::runs);
    CHECK(products_on_chip_right(s, 90));
    CHECK(products_on_chip_right(s, 91, InOneCode{}));
  }
}

TEST(each_row_is_called_for_once_by_the_thread_that_has_its_product) {
  const Share s = share_of(rows_of(mixed_lengths(110), 1, false), 37, true, {3, 1}, {1, 1});
  RingShape shape{2, slot_bytes<double>(s.shape), kThreads / kSliceRows, true};
  std::vector<int> by_product(110, -1), by_loop(110, -1);
  std::byte heap[64] = {};
  std::byte* const heaps[] = {heap};
  const std::vector<double> x(110, 1.0);
  CHECK(warp_rig::run<warp_rig::StreamingPort>(
      1, 1, kThreads, ring_bytes(shape), heaps, 5, [&](warp_rig::StreamingPort& port, int) {
        WarpSlices<double> matrix = s.matrix();
        matrix.ring.fast = port.fast_memory();
        matrix.ring.shape = shape;
        matrix.open(port);
        for (const bool of_boundary : {false, true}) {
          const auto rows = s.rows(of_boundary);
          matrix.multiply(
              port, rows, Operand<double>{x.data()},
              [&](std::int32_t row, int, double) { by_product[at(row)] = port.lane(); });
          matrix.each(port, rows, [&](std::int32_t row, int) { by_loop[at(row)] = port.lane(); });
        }
        matrix.close(port);
      }));
  CHECK(by_product == by_loop);
  CHECK(std::ranges::find(by_product, -1) == by_product.end());
}

TEST(rings_stand_rows_without_entries_and_parts_without_rows) {
  std::vector<std::int32_t> lengths(130, 0);
  lengths[40] = 2;
  for (const std::int32_t cut : {0, 33, 130})
    CHECK(products_right(share_of(rows_of(lengths, 1, false), cut, true), 2, 7));
  CHECK(products_right(share_of(rows_of({5}, 1, false), 0, true), 2, 8));
}
