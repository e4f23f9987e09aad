// Sharing rows among parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/problem/csr.hpp"

namespace cpufree {

// Bytes that one iteration moves for a row: a value and a column index for each nonzero, and some
// twelve passes over vectors. The weight by which rows are shared among blocks and PEs.
constexpr std::int64_t row_weight(std::int64_t nnz) { return 12 * nnz + 96; }

// Splits `rows` into `parts` contiguous ranges of about equal weight. `row_ptr` is indexed by row.
// Every row lies in exactly one range; ranges may be empty; no cut is further than half a row from
// the ideal one.
std::vector<RowRange> split_rows(std::span<const std::int64_t> row_ptr, RowRange rows, int parts);

// Contiguous partition of all rows: part[i] is the PE that owns row i.
std::vector<std::int32_t> contiguous_partition(std::span<const std::int64_t> row_ptr, int pes);

}  // namespace cpufree
