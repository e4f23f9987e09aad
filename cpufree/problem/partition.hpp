// Sharing rows among parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/problem/csr.hpp"

namespace cpufree {

// What a row costs in one iteration, in bytes: a value and a column index for each nonzero; some
// twelve passes over vectors, and as much again for the time that short rows take whatever their
// length. The weight by which rows are shared among blocks and PEs. (Geo_1438 begins with thousands
// of rows of one entry: with passes alone, the block that has them is the last one to be done.)
constexpr std::int64_t row_weight(std::int64_t nnz) { return 12 * nnz + 192; }

// Splits `rows` into `parts` contiguous ranges of about equal weight. `row_ptr` is indexed by row.
// Every row lies in exactly one range; ranges may be empty; no cut is further than half a row from
// the ideal one.
std::vector<RowRange> split_rows(std::span<const std::int64_t> row_ptr, RowRange rows, int parts);

// Contiguous partition of all rows: part[i] is the PE that owns row i.
std::vector<std::int32_t> contiguous_partition(std::span<const std::int64_t> row_ptr, int pes);

}  // namespace cpufree
