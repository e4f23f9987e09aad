#include "cpufree/problem/length_windows.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/interior_order.hpp"
#include "cpufree/problem/slice_width.hpp"

namespace cpufree {

namespace {

// Rows are sorted where slices have so many per cent of their entries left, padding included, or
// fewer.
constexpr std::int64_t kWorth = 96;

std::int64_t length(const std::vector<std::int64_t>& row_ptr, std::int32_t row) {
  return row_ptr[at(row) + 1] - row_ptr[at(row)];
}

// The interior rows of a PE, window after window.
template <class T>
std::vector<std::int32_t> sorted(const LocalSystem<T>& local, std::int32_t window) {
  std::vector<std::int32_t> order(at(local.interior));
  std::iota(order.begin(), order.end(), 0);
  in_parallel((local.interior + window - 1) / window, [&](int k) {
    const auto first = order.begin() + std::ptrdiff_t{k} * window;
    const auto end = order.end() - first > window ? first + window : order.end();
    const auto by_length = [&](std::int32_t row) { return length(local.row_ptr, row); };
    if (k % 2 == 0)
      std::ranges::stable_sort(first, end, std::greater<>(), by_length);
    else
      std::ranges::stable_sort(first, end, std::less<>(), by_length);
  });
  return order;
}

// What slices take of rows in this order, in entries. Long rows: four lanes share each.
template <class T>
std::int64_t padded(const LocalSystem<T>& local, const std::vector<std::int32_t>& order) {
  const std::int64_t entries = local.row_ptr[at(local.interior)];
  const bool is_long = entries >= kLongRow * local.interior;
  const int rows = is_long ? kSliceRows / kLongRowLanes : kSliceRows;
  std::int64_t all = 0;
  for (std::size_t first = 0; first < order.size(); first += at(rows)) {
    std::array<std::int64_t, kSliceRows> lengths{};
    for (std::size_t k = first; k < std::min(first + at(rows), order.size()); ++k)
      lengths[k - first] = length(local.row_ptr, order[k]);
    const std::int64_t longest = *std::ranges::max_element(lengths);
    all += is_long ? (longest + kLongRowLanes - 1) / kLongRowLanes * kSliceRows
                   : best_slice_width(lengths).cost;
  }
  return all;
}

}  // namespace

template <class T>
void sort_by_length(HaloPlan<T>& plan, const Peers& peers, std::int32_t window) {
  std::vector<std::vector<std::int32_t>> orders;
  std::vector<std::int64_t> before, after;
  for (const LocalSystem<T>& local : plan.local) {
    std::vector<std::int32_t> as_it_is(at(local.interior));
    std::iota(as_it_is.begin(), as_it_is.end(), 0);
    orders.push_back(sorted(local, window));
    before.push_back(padded(local, as_it_is));
    after.push_back(padded(local, orders.back()));
  }
  const std::int64_t now = sum_of_all(peers, "entries of slices", before);
  if (100 * sum_of_all(peers, "entries of sorted slices", after) > kWorth * now) return;
  for (std::size_t k = 0; k < orders.size(); ++k) reorder_interior(plan.local[k], orders[k]);
}

template void sort_by_length(HaloPlan<float>&, const Peers&, std::int32_t);
template void sort_by_length(HaloPlan<double>&, const Peers&, std::int32_t);

}  // namespace cpufree
