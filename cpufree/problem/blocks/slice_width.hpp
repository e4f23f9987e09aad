// What rows take in slices (slice_cost.hpp), for who shares them out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/problem/blocks/slice_cost.hpp"
#include "cpufree/problem/csr.hpp"

namespace cpufree {

// Entries of a row from which on lanes may share rows: a slice then has fewer of them, and no
// tails.
inline constexpr std::int64_t kLongRow = 64;
inline constexpr int kLongRowLanes = 4;  // that share it, or eight

inline SliceWidth best_slice_width(const std::array<std::int64_t, kSliceRows>& of_rows) {
  std::int64_t lengths[kSliceRows];
  std::copy_n(of_rows.begin(), kSliceRows, lengths);
  return best_slice_width(lengths);
}

// Adds to `padded`, which ends with what rows before `rows` take (it begins with 0), what these
// take in slices of their own: the sums, row by row, of the costs above, equal for the rows of a
// slice. To be split like a row_ptr.
void append_padded(std::span<const std::int64_t> row_ptr, RowRange rows,
                   std::vector<std::int64_t>& padded);

}  // namespace cpufree
