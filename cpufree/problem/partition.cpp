#include "cpufree/problem/partition.hpp"

#include <algorithm>

namespace cpufree {

std::vector<RowRange> split_rows(std::span<const std::int64_t> row_ptr, RowRange rows, int parts) {
  return split_by([&](std::int32_t i) { return row_ptr[static_cast<std::size_t>(i)]; }, rows,
                  parts);
}

std::vector<std::int32_t> contiguous_partition(std::span<const std::int64_t> row_ptr, int pes) {
  const auto n = static_cast<std::int32_t>(row_ptr.size() - 1);
  std::vector<std::int32_t> part(static_cast<std::size_t>(n));
  const auto ranges = split_rows(row_ptr, {0, n}, pes);
  for (int pe = 0; pe < pes; ++pe) {
    const RowRange range = ranges[static_cast<std::size_t>(pe)];
    std::fill(part.begin() + range.begin, part.begin() + range.end, pe);
  }
  return part;
}

}  // namespace cpufree
