#include "cpufree/problem/blocks/length_windows.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/interior_order.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/row_graph.hpp"

namespace cpufree {

namespace {

// Rows are sorted where slices have less than so many per cent of their entries left, padding
// included. A threshold by choice: among the look-alikes of suite structured they shrink by 11 % or
// more (Serena, Geo_1438, audikw_1), or by 3 % at most (Flan_1565).
constexpr std::int64_t kWorth = 96;

// Where windows begin, and the last one ends: some `window` rows apart, and not within a node's.
template <class T>
std::vector<std::int32_t> windows_of(const LocalSystem<T>& local, std::int32_t window) {
  constexpr std::int32_t kMostOfNode = 8;
  std::vector<std::int32_t> begins{0};
  for (std::int64_t end = window; end < local.interior; end += window) {
    auto begin = static_cast<std::int32_t>(end);
    for (int k = 1;
         k < kMostOfNode && begin < local.interior && same_columns(local, begin - 1, begin); ++k)
      ++begin;
    if (begin > begins.back() && begin < local.interior) begins.push_back(begin);
  }
  if (local.interior > 0) begins.push_back(local.interior);
  return begins;
}

class Sorting {
 public:
  template <class T>
  Sorting(const LocalSystem<T>& local, std::int32_t window)
      : row_ptr_(local.row_ptr), begins_(windows_of(local, window)), order_(at(local.interior)) {
    const std::size_t windows = begins_.size() - 1;
    std::iota(order_.begin(), order_.end(), 0);
    std::vector<WindowEntries> entries(windows);
    in_parallel(static_cast<int>(windows), [&](int k) { entries[at(k)] = sort(k); });
    for (const WindowEntries& of_window : entries)
      for (std::size_t e = 0; e < entries_.size(); ++e) entries_[e] += of_window[e];
  }
  const std::vector<std::int32_t>& order() const { return order_; }
  const WindowEntries& entries() const { return entries_; }

 private:
  std::int64_t length(std::int32_t row) const { return row_ptr_[at(row) + 1] - row_ptr_[at(row)]; }

  WindowEntries sort(int k) {
    const std::int32_t first = begins_[at(k)];
    const std::span rows = std::span(order_).subspan(at(first), at(begins_[at(k) + 1] - first));
    WindowEntries entries{taken(rows, 1), 0, taken(rows, kLongRowLanes), 0};
    const auto by_length = [&](std::int32_t row) { return length(row); };
    if (k % 2 == 0)
      std::ranges::stable_sort(rows, std::greater<>(), by_length);
    else
      std::ranges::stable_sort(rows, std::less<>(), by_length);
    entries[1] = taken(rows, 1);
    entries[3] = taken(rows, kLongRowLanes);
    return entries;
  }

  // By slices of these rows in this order. Those of which lanes share rows have no tails.
  std::int64_t taken(std::span<const std::int32_t> rows, int lanes) const {
    const std::size_t of_slice = at(kSliceRows / lanes);
    std::int64_t all = 0;
    for (std::size_t first = 0; first < rows.size(); first += of_slice) {
      std::int64_t lengths[kSliceRows] = {};
      for (std::size_t k = first; k < std::min(first + of_slice, rows.size()); ++k)
        lengths[k - first] = length(rows[k]);
      const std::int64_t longest = *std::ranges::max_element(lengths);
      all +=
          lanes > 1 ? (longest + lanes - 1) / lanes * kSliceRows : best_slice_width(lengths).cost;
    }
    return all;
  }

  const std::vector<std::int64_t>& row_ptr_;
  std::vector<std::int32_t> begins_;
  std::vector<std::int32_t> order_;
  WindowEntries entries_{};
};

}  // namespace

void WindowSums::add(std::int64_t rows, std::int64_t of_rows, const WindowEntries& taken) {
  interior += rows;
  nonzeros += of_rows;
  for (std::size_t k = 0; k < entries.size(); ++k) entries[k] += taken[k];
}

bool WindowSums::pays() const {
  const bool alone = 100 * entries[1] < kWorth * entries[0];
  const bool shared = nonzeros >= kLongRow * interior && 100 * entries[3] < kWorth * entries[2];
  return alone || shared;
}

template <class T>
void sort_by_length(HaloPlan<T>& plan, const Peers& peers, std::int32_t window) {
  std::vector<Sorting> sortings;
  std::vector<std::vector<std::int64_t>> mine;  // of each PE: interior rows, their entries, slices'
  for (const LocalSystem<T>& local : plan.local) {
    const WindowEntries& taken = sortings.emplace_back(local, window).entries();
    mine.push_back({local.interior, local.row_ptr[at(local.interior)]});
    mine.back().insert(mine.back().end(), taken.begin(), taken.end());
  }
  WindowSums all;
  for (const auto& of_pe : gather_lists(peers, "entries of slices", mine))
    all.add(of_pe.at(0), of_pe.at(1), {of_pe.at(2), of_pe.at(3), of_pe.at(4), of_pe.at(5)});
  if (!all.pays()) return;
  for (std::size_t k = 0; k < sortings.size(); ++k)
    reorder_interior(plan.local[k], sortings[k].order());
}

template void sort_by_length(HaloPlan<float>&, const Peers&, std::int32_t);
template void sort_by_length(HaloPlan<double>&, const Peers&, std::int32_t);

}  // namespace cpufree
