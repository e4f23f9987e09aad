// Kernels for what occurs in a matrix, and for nothing else: their products are those of kernels
// for any matrix.
#include <vector>

#include "slice_share.hpp"

using namespace cpufree;
using namespace slice_share;

namespace {

std::vector<std::int32_t> lengths_of(std::int32_t n) {
  std::vector<std::int32_t> lengths;
  for (std::int32_t i = 0; i < n; ++i) lengths.push_back(i % 97 == 5 ? 90 : 3 + i % 9);
  return lengths;
}
std::vector<std::int32_t> neighbours_of(std::int32_t nodes) {
  std::vector<std::int32_t> neighbours;
  for (std::int32_t i = 0; i < nodes; ++i) neighbours.push_back(1 + i % 12);
  return neighbours;
}

// Read where they are; `resident`: by simple shares on chip.
template <class Format>
bool right(const Share& s, bool resident) {
  const auto make = [&](warp_rig::LanesPort& port) {
    return resident ? s.matrix().resident(port, port.fast_memory()) : s.matrix();
  };
  const std::size_t bytes = resident ? resident_matrix_bytes(s.shape.size(), sizeof(double)) : 64;
  return products_right<warp_rig::LanesPort, Format>(s, bytes, 3, make, Everywhere{});
}

template <class Format>
bool right_through_rings(const Share& s) {
  const RingShape shape{3, slot_bytes<double>(s.shape), kThreads / kSliceRows, true};
  const auto make = [&](warp_rig::StreamingPort& port) {
    WarpSlices<double> matrix = s.matrix();
    matrix.ring.fast = port.fast_memory();
    matrix.ring.shape = shape;
    return matrix;
  };
  return products_right<warp_rig::StreamingPort, Format>(s, ring_bytes(shape), 4, make,
                                                         Everywhere{});
}

// `kKinds`: what is to be found in the share.
template <SliceKinds kKinds>
void check_kinds(const Share& s) {
  constexpr SliceKinds kSimple = kSimpleColumns | kSimpleRuns;
  CHECK_EQ(s.shape.kinds(), kKinds);
  CHECK(right<SlicesOf<kKinds>>(s, false));
  CHECK(right_through_rings<SlicesOf<(kKinds & ~kSimple)>>(s));
  if constexpr (has_kind(kKinds, kSimple)) {
    CHECK(right<SlicesOf<kKinds>>(s, true));
    if constexpr (has_kind(kKinds, kPlainValues))
      CHECK(right<SlicesOnChipOf<(kKinds & kSimple)>>(s, true));
  }
}

}  // namespace

TEST(kernels_for_single_columns_are_right) {
  const auto few = rows_of(lengths_of(200), 300, true), many = rows_of(lengths_of(200), 300, false);
  check_kinds<kSingles | kCodedValues>(share_of(few, 70, true));
  check_kinds<kSingles | kPlainValues>(share_of(many, 70, true));
  check_kinds<kSingles | kPlainValues>(share_of(many, 70, false));
}

TEST(kernels_for_columns_in_runs_are_right) {
  const auto few = nodes_of(neighbours_of(96), 39'999, true);
  const auto many = nodes_of(neighbours_of(96), 39'999, false);
  check_kinds<kRuns | kCodedValues>(share_of(few, 96, true));
  check_kinds<kRuns | kPlainValues>(share_of(many, 96, true));
}

TEST(kernels_for_runs_beside_single_columns_are_right) {
  LocalSystem<double> local = nodes_of(neighbours_of(96), 39'999, false);
  local.col[at(local.row_ptr[40]) + 1] += 40'000;  // a row that is no run any more
  check_kinds<kSingles | kRuns | kPlainValues>(share_of(local, 96, true));
}

TEST(kernels_for_simple_shares_are_right) {
  const Codes few{true, true, true, false}, many{true, false, true, false};
  const std::vector<std::int32_t> lengths(130, 7);
  check_kinds<kSingles | kCodedValues | kSimpleColumns>(
      share_of(rows_of(lengths, 1, true), 70, few));
  check_kinds<kSingles | kPlainValues | kSimpleColumns>(
      share_of(rows_of(lengths, 1, false), 70, many));
  check_kinds<kRuns | kPlainValues | kSimpleRuns>(
      share_of(nodes_of(neighbours_of(64), 0, false), 96, many));
}
