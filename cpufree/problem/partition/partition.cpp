#include "cpufree/problem/partition/partition.hpp"

#include <algorithm>
#include <numeric>

#include "cpufree/base/index.hpp"

namespace cpufree {

std::vector<RowRange> split_rows(std::span<const std::int64_t> row_ptr, RowRange rows, int parts) {
  return split_by([&](std::int32_t i) { return row_ptr[static_cast<std::size_t>(i)]; }, rows,
                  parts);
}

std::vector<std::int64_t> contiguous_cuts(std::span<const std::int64_t> row_ptr, int pes) {
  const std::size_t n = row_ptr.size() - 1;
  std::vector<std::int64_t> rows(row_ptr.back() == 0 ? n + 1 : 0);
  std::iota(rows.begin(), rows.end(), 0);
  const std::span<const std::int64_t> before = rows.empty() ? row_ptr : rows;
  const auto at_cut = [&](std::size_t cut) { return static_cast<double>(before[cut]); };
  std::vector<std::int64_t> cuts{0};
  for (int pe = 1; pe < pes; ++pe) {
    const double ideal = static_cast<double>(before.back() * pe) / pes;
    const auto above = std::ranges::lower_bound(before, ideal);
    std::size_t cut =
        std::clamp<std::size_t>(static_cast<std::size_t>(above - before.begin()), 1, n);
    if (ideal - at_cut(cut - 1) < at_cut(cut) - ideal) --cut;
    cuts.push_back(static_cast<std::int64_t>(cut));
  }
  cuts.push_back(static_cast<std::int64_t>(n));
  return cuts;
}

std::vector<std::int32_t> contiguous_partition(std::span<const std::int64_t> row_ptr, int pes) {
  const auto cuts = contiguous_cuts(row_ptr, pes);
  std::vector<std::int32_t> part(row_ptr.size() - 1);
  for (int pe = 0; pe < pes; ++pe)
    std::fill(part.begin() + cuts[at(pe)], part.begin() + cuts[at(pe) + 1], pe);
  return part;
}

}  // namespace cpufree
