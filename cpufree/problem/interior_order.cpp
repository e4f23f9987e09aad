#include "cpufree/problem/interior_order.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition.hpp"

namespace cpufree {

template <class T>
void reorder_interior(LocalSystem<T>& local, std::span<const std::int32_t> order) {
  constexpr int kPieces = 64;  // for threads
  std::vector<std::int32_t> new_row(order.size()), names(order.size());
  std::vector<std::int64_t> ptr = local.row_ptr;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::size_t old = at(order[k]);
    new_row[old] = static_cast<std::int32_t>(k);
    names[k] = local.global_row[old];
    ptr[k + 1] = ptr[k] + local.row_ptr[old + 1] - local.row_ptr[old];
  }
  PageVector<std::int32_t> col(local.col.size());
  PageVector<T> val(local.val.size());
  const auto pieces = split_rows(ptr, {0, local.rows()}, kPieces);
  in_parallel(kPieces, [&](int piece) {
    for (std::int32_t row = pieces[at(piece)].begin; row < pieces[at(piece)].end; ++row) {
      const auto from = local.row_ptr[row < local.interior ? at(order[at(row)]) : at(row)];
      const std::int64_t to = ptr[at(row)], count = ptr[at(row) + 1] - to;
      std::transform(local.col.begin() + from, local.col.begin() + from + count, col.begin() + to,
                     [&](std::int32_t c) { return c < local.interior ? new_row[at(c)] : c; });
      std::copy_n(local.val.begin() + from, count, val.begin() + to);
    }
  });
  local.row_ptr = std::move(ptr);
  local.col = std::move(col);
  local.val = std::move(val);
  std::ranges::copy(names, local.global_row.begin());
}

template void reorder_interior(LocalSystem<float>&, std::span<const std::int32_t>);
template void reorder_interior(LocalSystem<double>&, std::span<const std::int32_t>);

}  // namespace cpufree
