// What a partition of the rows costs, counted on all cores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cpufree {

struct PartitionCost {
  // By PE.
  std::vector<std::int64_t> rows, nnz, boundary_rows;
  // traffic[reader * pes + owner]: distinct rows of `owner` that rows of `reader` read.
  std::vector<std::int64_t> traffic;
  std::int64_t cut = 0;  // entries whose row and column are on different PEs
};

// The cost of a partition: part[i], from 0 to pes - 1, is the PE that owns row i. Columns of a row
// increase.
PartitionCost cost_of(std::span<const std::int64_t> row_ptr, std::span<const std::int32_t> col,
                      std::span<const std::int32_t> part, int pes);

// What slices of `slice` consecutive rows, each as wide as its longest row, hold over the entries
// of the rows; 1 where there are none. A row counts up to `most` entries: longer ones are stored
// apart.
double slice_padding(std::span<const std::int64_t> row_ptr, std::int64_t slice, std::int64_t most);

}  // namespace cpufree
