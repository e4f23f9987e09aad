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
#include "cpufree/problem/partition/row_graph.hpp"

namespace cpufree {

namespace {

// Rows are sorted where slices have less than this percentage of their entries left, padding
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

// Of slices of these rows in this order. Those of which lanes share rows have no tails.
std::int64_t taken(const std::vector<std::int64_t>& row_ptr, std::span<const std::int32_t> rows,
                   int lanes) {
  const std::size_t of_slice = at(kSliceRows / lanes);
  std::int64_t all = 0;
  for (std::size_t first = 0; first < rows.size(); first += of_slice) {
    std::int64_t lengths[kSliceRows] = {};
    for (std::size_t k = first; k < std::min(first + of_slice, rows.size()); ++k)
      lengths[k - first] = row_ptr[at(rows[k]) + 1] - row_ptr[at(rows[k])];
    const std::int64_t longest = *std::ranges::max_element(lengths);
    all += lanes > 1 ? (longest + lanes - 1) / lanes * kSliceRows : best_slice_width(lengths).cost;
  }
  return all;
}

// The windows of a PE.
class Windows {
 public:
  template <class T>
  Windows(const LocalSystem<T>& local, std::int32_t window)
      : row_ptr_(local.row_ptr), begins_(windows_of(local, window)), order_(at(local.interior)) {
    std::iota(order_.begin(), order_.end(), 0);
  }
  const std::vector<std::int32_t>& order() const { return order_; }

  // Of their slices.
  WindowEntries entries() const {
    return sum([&](std::size_t k) { return taken_of(k); });
  }
  // Sorts each of them; of their slices then.
  WindowEntries sort() {
    return sum([&](std::size_t k) {
      const std::span rows = rows_of(k);
      const auto length = [&](std::int32_t row) {
        return row_ptr_[at(row) + 1] - row_ptr_[at(row)];
      };
      if (k % 2 == 0)
        std::ranges::stable_sort(rows, std::greater<>(), length);
      else
        std::ranges::stable_sort(rows, std::less<>(), length);
      return taken_of(k);
    });
  }

 private:
  std::span<std::int32_t> rows_of(std::size_t k) {
    return std::span(order_).subspan(at(begins_[k]), at(begins_[k + 1] - begins_[k]));
  }
  WindowEntries taken_of(std::size_t k) const {
    const auto rows = std::span(order_).subspan(at(begins_[k]), at(begins_[k + 1] - begins_[k]));
    return {taken(row_ptr_, rows, 1), taken(row_ptr_, rows, kLongRowLanes)};
  }
  template <class F>
  WindowEntries sum(F&& f) const {
    std::vector<WindowEntries> each(begins_.size() - 1);
    in_parallel(static_cast<int>(each.size()), [&](int k) { each[at(k)] = f(at(k)); });
    WindowEntries all{};
    for (const WindowEntries& one : each) all[0] += one[0], all[1] += one[1];
    return all;
  }

  const std::vector<std::int64_t>& row_ptr_;
  std::vector<std::int32_t> begins_;
  std::vector<std::int32_t> order_;
};

}  // namespace

void WindowSums::add(std::int64_t rows, std::int64_t of_rows, const WindowEntries& in_order) {
  interior += rows;
  nonzeros += of_rows;
  for (std::size_t k = 0; k < before.size(); ++k) before[k] += in_order[k];
}

void WindowSums::add_sorted(const WindowEntries& sorted) {
  for (std::size_t k = 0; k < after.size(); ++k) after[k] += sorted[k];
}

bool WindowSums::pays() const {
  const bool alone = 100 * after[0] < kWorth * before[0];
  const bool shared = nonzeros >= kLongRow * interior && 100 * after[1] < kWorth * before[1];
  return alone || shared;
}

bool WindowSums::may_pay() const {
  WindowSums best = *this;
  best.after = {nonzeros, nonzeros};
  return best.pays();
}

template <class T>
void sort_by_length(HaloPlan<T>& plan, const Peers& peers, std::int32_t window) {
  std::vector<Windows> windows;
  std::vector<std::vector<std::int64_t>> mine;  // of each PE: interior rows, their entries, slices'
  for (const LocalSystem<T>& local : plan.local) {
    const WindowEntries found = windows.emplace_back(local, window).entries();
    mine.push_back({local.interior, local.row_ptr[at(local.interior)], found[0], found[1]});
  }
  WindowSums all;
  for (const auto& of_pe : gather_lists(peers, "entries of slices", mine))
    all.add(of_pe.at(0), of_pe.at(1), {of_pe.at(2), of_pe.at(3)});
  if (!all.may_pay()) return;
  std::vector<std::vector<std::int64_t>> sorted;
  for (Windows& of_pe : windows) {
    const WindowEntries found = of_pe.sort();
    sorted.push_back({found[0], found[1]});
  }
  for (const auto& of_pe : gather_lists(peers, "entries of sorted slices", sorted))
    all.add_sorted({of_pe.at(0), of_pe.at(1)});
  if (!all.pays()) return;
  for (std::size_t k = 0; k < windows.size(); ++k)
    reorder_interior(plan.local[k], windows[k].order());
}

template void sort_by_length(HaloPlan<float>&, const Peers&, std::int32_t);
template void sort_by_length(HaloPlan<double>&, const Peers&, std::int32_t);

}  // namespace cpufree
