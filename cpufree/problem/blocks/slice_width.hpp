// How wide a slice of 32 rows is best stored ("sliced ELL"): as its longest rows, or narrower, with
// tails for what these have beyond that (formats/warp_slices.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/problem/blocks/slice_rows.hpp"
#include "cpufree/problem/csr.hpp"

namespace cpufree {

// Entries of a row from which on lanes may share rows: a slice then has fewer of them, and no
// tails.
inline constexpr std::int64_t kLongRow = 64;
inline constexpr int kLongRowLanes = 4;  // that share it, or eight

struct SliceWidth {
  std::int64_t width = 0;  // entries of a row that are in the slice
  std::int64_t cost = 0;   // of the slice and its tails, in entries, padding included
};

// The cheapest width for rows of these lengths.
SliceWidth best_slice_width(std::array<std::int64_t, kSliceRows> lengths);

// Adds to `padded`, which ends with what rows before `rows` take (it begins with 0), what these
// take in slices of their own: the sums, row by row, of the costs above, equal for the rows of a
// slice. To be split like a row_ptr.
void append_padded(std::span<const std::int64_t> row_ptr, RowRange rows,
                   std::vector<std::int64_t>& padded);

}  // namespace cpufree
