// A slice of 32 rows as it lies in memory, and how much a share of slices takes (warp_slices.hpp
// says what they are for).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/port.hpp"
#include "cpufree/formats/slices/slice_codes.hpp"
#include "cpufree/formats/slices/slice_entries.hpp"
#include "cpufree/formats/slices/slice_ring.hpp"

namespace cpufree {

inline constexpr std::int64_t kSliceUnit = 128;  // bytes: slices and chunks begin at multiples
inline constexpr std::size_t kMostValues = 256;  // of a dictionary

// A slice: its chunks begin at `first` units of the share's bytes. A chunk holds kChunkWidth
// entries of each row, the last one what is left, n: 32 n columns, then 32 n values. Plain: entry k
// of the slice's row l is number 32 k + l of the chunk. Coded: entries 2 u and 2 u + 1 are the two
// of pair 32 u + l; of an odd n the last ones follow the pairs, 32 of them. Runs lie one behind the
// other: 32 codes, 32 pairs of values, 32 third values. Values are numbers in the dictionary where
// the share has one and columns are coded. The tail of row l, if `tails` is not negative, is
// [tail_ptr[tails + l], tail_ptr[tails + l + 1]) of the share's tails. The head is what every slice
// needs: one load.
struct alignas(16) SliceHead {
  std::uint32_t first = 0;
  std::int32_t width = 0;  // entries of a row, tail excepted
  std::int32_t tails = -1;
  ColumnCode code = ColumnCode::plain;
};
struct alignas(16) WarpSlice : SliceHead {
  std::int32_t base[kWindows] = {};
};
static_assert(sizeof(WarpSlice) == kSliceHead && kSliceUnit % kFeedGrain == 0);

// Of slices whose values are in single precision the tails of rows are all of their entries
// (SliceHead::tails, a number below -1): where those of a slice begin, and whether rows have some
// beyond its width.
CPUFREE_FN constexpr bool lists_all(std::int32_t tails) { return tails < -1; }
CPUFREE_FN constexpr std::int32_t tails_of_all(std::int32_t place, bool beyond) {
  return -2 - (2 * place + (beyond ? 1 : 0));
}
CPUFREE_FN constexpr std::int32_t place_of_tails(std::int32_t tails) {
  return lists_all(tails) ? (-2 - tails) / 2 : tails;
}
CPUFREE_FN constexpr bool goes_beyond(std::int32_t tails) {
  return lists_all(tails) ? (-2 - tails) % 2 != 0 : tails >= 0;
}
// Entries of a row before the first one that its tail lists.
CPUFREE_FN constexpr std::int32_t before_tail(const SliceHead& slice) {
  return lists_all(slice.tails) ? 0 : slice.width;
}

// Shares all slices of which have 16-bit columns, or runs, as they are (base 0), and no tails.
enum class Simple : std::int32_t { no, columns, runs };

// What a share takes, apart from its values' type.
struct WarpSlicesSize {
  std::int64_t units = 0;
  std::int32_t slices = 0;
  std::int32_t tails = 0;         // entries of tail_ptr
  std::int64_t tail_entries = 0;  // of tail_col and tail_val
  std::int32_t values = 0;        // of the dictionary; 0: values are not coded
  Simple simple = Simple::no;
  SliceKinds kinds = 0;  // of its slices, and what the share is as a whole
};

// A copy of an array in fast memory, at `fast`, which goes on behind it. A barrier is to follow.
template <Port P, class V>
CPUFREE_KERNEL_FN const V* move_on_chip(P& port, const V* from, std::int64_t count,
                                        std::byte*& fast) {
  V* const to = reinterpret_cast<V*>(fast);
  for (std::int64_t k = port.lane(); k < count; k += port.lanes()) to[k] = from[k];
  fast += round_up16(static_cast<std::size_t>(count) * sizeof(V));
  return to;
}

// Bytes of fast memory for a share (WarpSlices::resident).
CPUFREE_FN std::size_t resident_matrix_bytes(const WarpSlicesSize& size, std::size_t value_bytes) {
  const auto bytes = [](std::int64_t count, std::size_t each) {
    return round_up16(static_cast<std::size_t>(count) * each);
  };
  return bytes(size.units, kSliceUnit) + bytes(size.slices, sizeof(WarpSlice)) +
         bytes(size.tails, sizeof(std::int64_t)) + bytes(size.tail_entries, 4) +
         bytes(size.tail_entries, value_bytes) + bytes(size.values, value_bytes);
}

}  // namespace cpufree
