// A slice of 32 rows as it lies in memory, and how much a share of slices takes (warp_slices.hpp
// says what they are for).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/port.hpp"
#include "cpufree/formats/slice_codes.hpp"
#include "cpufree/formats/slice_entries.hpp"
#include "cpufree/formats/slice_ring.hpp"

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
