// Rows sorted by length within windows, where slices shrink by it.
#include <vector>

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

// The windows of a PE.
template <class T>
class Windows {
 public:
  explicit Windows(const GpuRows<T>& rows) : mine_(rows) {}

  // Of their slices.
  WindowEntries entries() {
    const auto begins = windows_of(mine_);
    count_ = static_cast<std::int32_t>(begins.size()) - 1;
    begin_ = {mine_.stream, begins};
    return counted();
  }
  // Sorts each of them; of their slices then.
  WindowEntries sort() {
    order = Int32s::uninitialised(mine_.device(), at(mine_.interior));
    launch_layout(layout::SortWindows<T>{mine_.ptr.data(), begin_.data(), count_, kLengthWindow,
                                         mine_.interior, order.data()},
                  mine_.interior, mine_.stream);
    return counted();
  }
  Int32s order;  // once they are sorted

 private:
  WindowEntries counted() const {
    constexpr std::int64_t kParts =
        (kLengthWindow + layout::kMostOfNode + kSliceRows - 1) / kSliceRows;
    const DeviceArray<std::uint64_t> entries(mine_.stream, at(2 * count_));
    launch_layout(
        layout::CountWindows<T>{mine_.ptr.data(), order.size() == 0 ? nullptr : order.data(),
                                begin_.data(), count_, kParts, entries.data()},
        count_ * kParts, mine_.stream);
    WindowEntries sums{};
    const auto counts = fetch(mine_.stream, entries.data(), at(2 * count_));
    for (std::size_t k = 0; k < counts.size(); ++k)
      sums[k % 2] += static_cast<std::int64_t>(counts[k]);
    return sums;
  }

  const GpuRows<T>& mine_;
  std::int32_t count_ = 0;
  Int32s begin_;
};

// Calls f(k, windows of PE k) for all PEs, each with its GPU current, side by side.
template <class T, class F>
std::vector<WindowEntries> entries_of(std::vector<Windows<T>>& windows,
                                      const std::vector<GpuRows<T>>& rows, F&& f) {
  std::vector<WindowEntries> found(rows.size());
  in_parallel(static_cast<int>(rows.size()), [&](int k) {
    const OnDevice here(rows[at(k)].device());
    found[at(k)] = f(windows[at(k)]);
  });
  return found;
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
  mine.stream.wait("rows that are sorted by length");
  mine.ptr = std::move(ptr);
  mine.col = std::move(col);
  mine.val = std::move(val);
  mine.global_row = std::move(global_row);
}

template <class T>
void sort_rows(std::vector<GpuRows<T>>& rows) {
  std::vector<Windows<T>> windows(rows.begin(), rows.end());
  const auto found = entries_of(windows, rows, [](Windows<T>& w) { return w.entries(); });
  WindowSums sums;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto* const end = rows[k].ptr.data() + rows[k].interior;
    sums.add(rows[k].interior, fetch(rows[k].stream, end, 1)[0], found[k]);
  }
  if (!sums.may_pay()) return;
  for (const auto& sorted : entries_of(windows, rows, [](Windows<T>& w) { return w.sort(); }))
    sums.add_sorted(sorted);
  if (!sums.pays()) return;
  in_parallel(static_cast<int>(rows.size()), [&](int k) {
    const OnDevice here(rows[at(k)].device());
    reorder_rows(rows[at(k)], windows[at(k)].order, rows[at(k)].interior);
  });
}

template void reorder_rows(GpuRows<float>&, const Int32s&, std::int32_t);
template void reorder_rows(GpuRows<double>&, const Int32s&, std::int32_t);
template void sort_rows(std::vector<GpuRows<float>>&);
template void sort_rows(std::vector<GpuRows<double>>&);

}  // namespace cpufree
