// Rows sorted by length within windows, where slices shrink by it.
#include <algorithm>
#include <array>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/length_windows.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"
#include "cpufree/solvers/gpu/layout/rows.hpp"

namespace cpufree {

namespace {

using gpu::DeviceArray;
using gpu::OnDevice;
using Int32s = DeviceArray<std::int32_t>;

struct Sorted {
  Int32s order;
  WindowEntries entries{};
};

// Where windows begin, and the last one ends.
template <class T>
std::vector<std::int32_t> windows_of(const GpuRows<T>& mine) {
  const std::int64_t seams = mine.interior > 0 ? (mine.interior - 1) / kLengthWindow : 0;
  const Int32s seam = Int32s::uninitialised(mine.device(), at(seams));
  launch_layout(layout::FindSeams<T>{mine.ptr.data(), mine.col.data(), mine.interior, kLengthWindow,
                                     seams, seam.data()},
                seams, mine.stream);
  std::vector<std::int32_t> begins{0};
  for (const std::int32_t begin : fetch(mine.stream, seam.data(), at(seams)))
    if (begin > begins.back() && begin < mine.interior) begins.push_back(begin);
  if (mine.interior > 0) begins.push_back(mine.interior);
  return begins;
}

template <class T>
Sorted sort_windows(const GpuRows<T>& mine) {
  const auto begins = windows_of(mine);
  const auto windows = static_cast<std::int32_t>(begins.size()) - 1;
  const Int32s begin{mine.stream, begins};
  Sorted sorted{Int32s::uninitialised(mine.device(), at(mine.interior))};
  launch_layout(layout::SortWindows<T>{mine.ptr.data(), begin.data(), windows, kLengthWindow,
                                       mine.interior, sorted.order.data()},
                mine.interior, mine.stream);
  constexpr std::int64_t kParts =
      (kLengthWindow + layout::kMostOfNode + kSliceRows - 1) / kSliceRows;
  const DeviceArray<std::uint64_t> entries(mine.stream, at(4 * windows));
  launch_layout(layout::CountWindows<T>{mine.ptr.data(), sorted.order.data(), begin.data(), windows,
                                        kParts, entries.data()},
                windows * kParts, mine.stream);
  const auto counts = fetch(mine.stream, entries.data(), at(4 * windows));
  for (std::size_t k = 0; k < counts.size(); ++k)
    sorted.entries[k % 4] += static_cast<std::int64_t>(counts[k]);
  return sorted;
}

}  // namespace

template <class T>
void reorder_rows(GpuRows<T>& mine, const Int32s& order, std::int32_t moved) {
  const int device = mine.device();
  const Int32s new_row = Int32s::uninitialised(device, at(moved));
  const Int32s old_row = Int32s::uninitialised(device, at(mine.rows));
  Int32s global_row = Int32s::uninitialised(device, at(mine.rows));
  launch_layout(layout::InvertOrder<T>{order.data(), moved, mine.rows, mine.names(), mine.first,
                                       new_row.data(), old_row.data(), global_row.data()},
                mine.rows, mine.stream);
  const Int32s length = Int32s::uninitialised(device, at(mine.rows));
  launch_layout(layout::RowLengths<T>{mine.ptr.data(), old_row.data(), 0, mine.rows, length.data()},
                mine.rows, mine.stream);
  auto ptr = scan_numbers<T>(mine.stream, length.data(), mine.rows);
  Int32s col = Int32s::uninitialised(device, at(mine.nnz));
  auto val = DeviceArray<T>::uninitialised(device, at(mine.nnz));
  launch_layout(
      layout::MoveRows<T>{mine.ptr.data(), mine.col.data(), mine.val.data(), moved, mine.rows,
                          new_row.data(), old_row.data(), ptr.data(), col.data(), val.data()},
      mine.rows, mine.stream);
  mine.stream.wait();
  mine.ptr = std::move(ptr);
  mine.col = std::move(col);
  mine.val = std::move(val);
  mine.global_row = std::move(global_row);
}

template <class T>
void sort_rows(std::vector<GpuRows<T>>& rows) {
  std::vector<Sorted> sorted(rows.size());
  std::vector<std::int64_t> entries(rows.size());
  const int pes = static_cast<int>(rows.size());
  in_parallel(pes, [&](int k) {
    const GpuRows<T>& mine = rows[at(k)];
    const OnDevice here(mine.device());
    sorted[at(k)] = sort_windows(mine);
    entries[at(k)] = fetch(mine.stream, mine.ptr.data() + mine.interior, 1)[0];
  });
  WindowSums sums;
  for (std::size_t k = 0; k < rows.size(); ++k)
    sums.add(rows[k].interior, entries[k], sorted[k].entries);
  if (!sums.pays()) return;
  in_parallel(pes, [&](int k) {
    const OnDevice here(rows[at(k)].device());
    reorder_rows(rows[at(k)], sorted[at(k)].order, rows[at(k)].interior);
  });
}

template void reorder_rows(GpuRows<float>&, const Int32s&, std::int32_t);
template void reorder_rows(GpuRows<double>&, const Int32s&, std::int32_t);
template void sort_rows(std::vector<GpuRows<float>>&);
template void sort_rows(std::vector<GpuRows<double>>&);

}  // namespace cpufree
