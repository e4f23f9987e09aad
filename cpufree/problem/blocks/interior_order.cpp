#include "cpufree/problem/blocks/interior_order.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

namespace {

constexpr int kPieces = 64;  // for threads, about

// Ranges of rows that change places among themselves alone.
std::vector<RowRange> closed_ranges(std::span<const std::int32_t> order) {
  const auto rows = static_cast<std::int32_t>(order.size());
  std::vector<RowRange> ranges;
  std::int32_t begin = 0, last = -1;
  for (std::int32_t k = 0; k < rows; ++k) {
    last = std::max(last, order[at(k)]);
    if (last > k || (k + 1 < rows && k - begin < rows / kPieces)) continue;
    ranges.push_back({begin, k + 1});
    begin = k + 1;
  }
  return ranges;
}

}  // namespace

template <class T>
void reorder_interior(LocalSystem<T>& local, std::span<const std::int32_t> order) {
  std::vector<std::int32_t> new_row(order.size()), names(order.size());
  std::vector<std::int64_t> ptr = local.row_ptr;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::size_t old = at(order[k]);
    new_row[old] = static_cast<std::int32_t>(k);
    names[k] = local.global_row[old];
    ptr[k + 1] = ptr[k] + local.row_ptr[old + 1] - local.row_ptr[old];
  }
  const auto renumber = [&](std::int32_t& column) {
    if (column < local.interior) column = new_row[at(column)];
  };
  // Range by range, so that only their entries are there twice.
  const auto ranges = closed_ranges(order);
  in_parallel(static_cast<int>(ranges.size()), [&](int k) {
    const RowRange rows = ranges[at(k)];
    const std::int64_t first = ptr[at(rows.begin)], end = ptr[at(rows.end)];
    std::vector<std::int32_t> col(local.col.begin() + first, local.col.begin() + end);
    const std::vector<T> val(local.val.begin() + first, local.val.begin() + end);
    std::ranges::for_each(col, renumber);
    for (std::int32_t row = rows.begin; row < rows.end; ++row) {
      const std::int64_t from = local.row_ptr[at(order[at(row)])] - first;
      const std::int64_t count = ptr[at(row) + 1] - ptr[at(row)];
      std::copy_n(col.begin() + from, count, local.col.begin() + ptr[at(row)]);
      std::copy_n(val.begin() + from, count, local.val.begin() + ptr[at(row)]);
    }
  });
  const auto boundary = split_rows(ptr, {local.interior, local.rows()}, kPieces);
  in_parallel(kPieces, [&](int k) {
    const RowRange rows = boundary[at(k)];
    std::for_each(local.col.begin() + ptr[at(rows.begin)], local.col.begin() + ptr[at(rows.end)],
                  renumber);
  });
  local.row_ptr = std::move(ptr);
  std::ranges::copy(names, local.global_row.begin());
}

template void reorder_interior(LocalSystem<float>&, std::span<const std::int32_t>);
template void reorder_interior(LocalSystem<double>&, std::span<const std::int32_t>);

}  // namespace cpufree
