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

// What each slice of these rows costs, from the first on; the last one may have fewer rows.
std::vector<std::int64_t> slice_costs(std::span<const std::int64_t> row_ptr, RowRange rows);

}  // namespace cpufree
