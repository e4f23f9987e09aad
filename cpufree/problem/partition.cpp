#include "cpufree/problem/partition.hpp"

#include <algorithm>

namespace cpufree {

namespace {

// Weight of rows [0, i).
std::int64_t weight_before(std::span<const std::int64_t> row_ptr, std::int32_t i) {
  return row_weight(row_ptr[static_cast<std::size_t>(i)]) - row_weight(0) +
         row_weight(0) * static_cast<std::int64_t>(i);
}

}  // namespace

std::vector<RowRange> split_rows(std::span<const std::int64_t> row_ptr, RowRange rows, int parts) {
  std::vector<RowRange> ranges(static_cast<std::size_t>(parts));
  const std::int64_t low = weight_before(row_ptr, rows.begin);
  const std::int64_t all = weight_before(row_ptr, rows.end) - low;
  std::int32_t cut = rows.begin;
  for (int part = 0; part < parts; ++part) {
    const std::int64_t goal = low + all / parts * (part + 1) + all % parts * (part + 1) / parts;
    std::int32_t first = cut;  // smallest cut that reaches the goal, by bisection
    std::int32_t last = rows.end;
    while (first < last) {
      const std::int32_t middle = first + (last - first) / 2;
      if (weight_before(row_ptr, middle) < goal)
        first = middle + 1;
      else
        last = middle;
    }
    if (first > cut &&
        goal - weight_before(row_ptr, first - 1) < weight_before(row_ptr, first) - goal)
      --first;  // the cut before is nearer
    const std::int32_t end = part + 1 == parts ? rows.end : first;
    ranges[static_cast<std::size_t>(part)] = {cut, end};
    cut = end;
  }
  return ranges;
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
