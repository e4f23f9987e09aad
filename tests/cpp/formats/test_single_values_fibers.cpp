// Values in single precision for products, and in full for accurate ones, thread by thread under
// random schedules.
#include <cmath>
#include <vector>

#include "slice_share.hpp"

using namespace cpufree;
using namespace slice_share;

namespace {

constexpr SliceKinds kAll = (kAllKinds & ~(kSimpleColumns | kSimpleRuns)) | kSingleValues;

std::vector<std::int32_t> lengths_of(std::int32_t n) {
  std::vector<std::int32_t> lengths;
  for (std::int32_t i = 0; i < n; ++i)
    lengths.push_back(i % 97 == 5 ? 150 : i % 41 == 7 ? 0 : 3 + i % 9);
  return lengths;
}

Codes codes_of(bool coded) {
  Codes codes{coded, coded};
  codes.single = true;
  return codes;
}

template <class Format, class As>
bool where_they_are(const Share& s, As as) {
  return products_right<warp_rig::LanesPort, Format>(
      s, 64, 3, [&](warp_rig::LanesPort&) { return s.matrix(); }, as);
}
template <class Format, class As>
bool through_rings(const Share& s, As as) {
  const RingShape shape{3, slot_bytes<double>(s.shape), kThreads / kSliceRows, true};
  const auto make = [&](warp_rig::StreamingPort& port) {
    WarpSlices<double> matrix = s.matrix();
    matrix.ring.fast = port.fast_memory();
    matrix.ring.shape = shape;
    return matrix;
  };
  return products_right<warp_rig::StreamingPort, Format>(s, ring_bytes(shape), 4, make, as);
}

// As packets are read: not accurate, but a few entries at a time.
template <class X>
struct Pieces : X {
  static constexpr bool in_pieces = true;
};
struct InPieces {
  static constexpr auto right = sums_right;
  template <class X>
  Pieces<X> operator()(const X& x) const {
    return {x};
  }
};

// Plain products are those of the rounded matrix, accurate ones those of the matrix.
void check_share(const Share& s) {
  CHECK((where_they_are<SlicesOf<kAll>>(s, Everywhere{})));
  CHECK((where_they_are<SlicesOf<kAll>>(s, InPieces{})));
  CHECK((where_they_are<SlicesOf<kAll>>(s, InOneCode{})));
  CHECK((through_rings<SlicesOf<kAll>>(s, Everywhere{})));
  CHECK((through_rings<SlicesOf<kAll>>(s, InPieces{})));
  CHECK((through_rings<SlicesOf<kAll>>(s, InOneCode{})));
}

}  // namespace

TEST(single_values_of_single_columns_are_right_in_every_code) {
  for (const std::int32_t step : {1, 300, 9000})
    for (const bool coded : {true, false}) {
      const auto local = rows_of(lengths_of(200), step, false);
      const Share s = share_of(local, 70, codes_of(coded));
      CHECK(has_kind(s.shape.kinds(), kSingleValues));
      CHECK(s.shape.tail_entries > 0);
      check_share(s);
    }
}

TEST(single_values_of_columns_in_runs_are_right) {
  std::vector<std::int32_t> neighbours;
  for (std::int32_t i = 0; i < 96; ++i) neighbours.push_back(1 + i % 12);
  const auto local = nodes_of(neighbours, 39'999, false);
  check_share(share_of(local, 96, codes_of(true)));
}

TEST(single_values_of_rows_that_lanes_share_are_right) {
  const auto local = rows_of(lengths_of(300), 7, false);
  for (const Sharing sharing : {Sharing{1, 0}, Sharing{2, 1}, Sharing{3, 3}}) {
    const Share s = share_of(local, 120, codes_of(true), sharing, sharing);
    CHECK((through_rings<SlicesOf<kAll>>(s, Everywhere{})));
    CHECK((through_rings<SlicesOf<kAll>>(s, InOneCode{})));
    CHECK((where_they_are<SharedSlicesOf<kAll>>(s, InOneCode{})));
  }
}

TEST(few_values_stay_numbers_in_a_dictionary) {
  const auto local = rows_of(lengths_of(200), 1, true);
  const Share s = share_of(local, 70, codes_of(true));
  CHECK(!s.shape.dictionary.empty());
  CHECK(!has_kind(s.shape.kinds(), kSingleValues));
  check_share(s);
}

TEST(single_values_take_half_of_the_bytes_of_values) {
  std::vector<std::int32_t> lengths(256, 40);
  const auto local = rows_of(lengths, 1, false);
  const Share full = share_of(local, 256, true), single = share_of(local, 256, codes_of(true));
  CHECK_EQ(full.shape.units * kSliceUnit, std::int64_t{256} * 40 * 10);
  CHECK_EQ(single.shape.units * kSliceUnit, std::int64_t{256} * 40 * 6);
  CHECK_EQ(single.shape.tail_entries, std::int64_t{256} * 40);
}
