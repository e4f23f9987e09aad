#include "cpufree/problem/warp_balance.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/interior_order.hpp"
#include "cpufree/problem/slice_width.hpp"

namespace cpufree {

namespace {

// What a group of rows costs besides its entries, in entries of each row: its head, its vectors.
constexpr std::int64_t kGroupCost = 8;
// Rows are moved where the slowest warp has so many per cent of its work left, or fewer: on two
// H200 83 and 88 were worth 3 % and 1 % of an iteration (audikw_1, Geo_1438), and 92 cost 2 %
// (Flan_1565).
constexpr std::int64_t kWorth = 90;

// What the 32 rows from each 32nd row of a range on cost.
template <class T>
std::vector<std::int64_t> costs_of(const LocalSystem<T>& local, RowRange rows) {
  const std::int64_t entries = local.row_ptr[at(rows.end)] - local.row_ptr[at(rows.begin)];
  const bool whole = entries >= kLongRow * rows.size();
  std::vector<std::int64_t> costs;
  for (std::int32_t begin = rows.begin; begin < rows.end; begin += kSliceRows) {
    const std::int32_t end = std::min(begin + kSliceRows, rows.end);
    std::array<std::int64_t, kSliceRows> lengths{};
    for (std::int32_t row = begin; row < end; ++row)
      lengths[at(row - begin)] = local.row_ptr[at(row) + 1] - local.row_ptr[at(row)];
    const std::int64_t all = local.row_ptr[at(end)] - local.row_ptr[at(begin)];
    costs.push_back(kSliceRows * kGroupCost + (whole ? all : best_slice_width(lengths).cost));
  }
  return costs;
}

// What the busiest warp has to do, with the groups as they are.
std::int64_t busiest(const std::vector<std::int64_t>& costs,
                     const std::vector<std::int32_t>& at_place, int warps) {
  std::vector<std::int64_t> load(at(warps), 0);
  for (std::size_t k = 0; k < at_place.size(); ++k) load[k % at(warps)] += costs[at(at_place[k])];
  return std::ranges::max(load);
}

// The group at each place, one place after another for warp 0, 1, ..., 0, 1, ...
std::vector<std::int32_t> balanced(const std::vector<std::int64_t>& costs, int warps) {
  const auto groups = static_cast<std::int32_t>(costs.size());
  std::vector<std::int32_t> at_place(costs.size());
  std::iota(at_place.begin(), at_place.end(), 0);
  if (groups <= warps) return at_place;
  // What each warp has to do: what it has been given, and one mean group for its place in the last
  // turn, if it has one and that turn is not full.
  std::vector<std::int64_t> load(at(warps), 0);
  const std::int32_t full = groups / warps * warps;
  const std::int64_t mean = std::accumulate(costs.begin(), costs.end(), std::int64_t{0}) / groups;
  for (std::int32_t k = full; k < groups; ++k) load[at(k - full)] = mean;
  std::vector<std::int32_t> takers(at(warps));
  for (std::int32_t turn = 0; turn < groups; turn += warps) {
    const std::int32_t end = std::min(turn + warps, groups);
    const std::int32_t free = end == groups ? end - 1 : end;  // the last one keeps its place
    takers.resize(at(free - turn));
    std::iota(takers.begin(), takers.end(), 0);
    if (turn == full)
      for (std::int32_t k = turn; k < end; ++k) load[at(k - turn)] -= mean;
    std::ranges::stable_sort(takers, {}, [&](std::int32_t warp) { return load[at(warp)]; });
    std::vector<std::int32_t> heaviest(at_place.begin() + turn, at_place.begin() + free);
    std::ranges::stable_sort(heaviest, std::greater<>(),
                             [&](std::int32_t group) { return costs[at(group)]; });
    for (std::size_t k = 0; k < takers.size(); ++k) {
      at_place[at(turn + takers[k])] = heaviest[k];
      load[at(takers[k])] += costs[at(heaviest[k])];
    }
  }
  return at_place;
}

// The interior rows of a block in a new order, and what that gains.
struct Sequence {
  std::vector<std::int32_t> rows;  // old numbers
  std::int64_t before = 0;         // of the busiest warp
  std::int64_t after = 0;
};

template <class T>
Sequence new_sequence(const LocalSystem<T>& local, RowRange rows, int warps) {
  const auto costs = costs_of(local, rows);
  const auto groups = balanced(costs, warps);
  std::vector<std::int32_t> as_they_are(groups.size());
  std::iota(as_they_are.begin(), as_they_are.end(), 0);
  Sequence sequence{{}, busiest(costs, as_they_are, warps), busiest(costs, groups, warps)};
  for (const std::int32_t group : groups) {
    const std::int32_t begin = rows.begin + kSliceRows * group;
    for (std::int32_t row = begin; row < std::min(begin + kSliceRows, rows.end); ++row)
      sequence.rows.push_back(row);
  }
  return sequence;
}

bool all_in_one_turn(const std::vector<std::vector<BlockPlan>>& blocks, const Peers& peers,
                     int warps) {
  std::vector<std::int64_t> with_more;  // blocks of each PE
  for (const auto& of_this_pe : blocks)
    with_more.push_back(std::ranges::count_if(of_this_pe, [&](const BlockPlan& block) {
      return block.interior.size() > kSliceRows * warps;
    }));
  return sum_of_all(peers, "turns of warps", with_more) == 0;
}

// Whether the slowest warp of all gains. `sequences`: `of_pe` for each PE here.
bool is_worth_it(const std::vector<Sequence>& sequences, int of_pe, const Peers& peers) {
  std::vector<std::vector<std::int64_t>> slowest;  // of each PE: before, after
  for (auto from = sequences.begin(); from != sequences.end(); from += of_pe)
    slowest.push_back({std::ranges::max_element(from, from + of_pe, {}, &Sequence::before)->before,
                       std::ranges::max_element(from, from + of_pe, {}, &Sequence::after)->after});
  std::int64_t before = 0, after = 0;
  for (const auto& of_this_pe : gather_lists(peers, "work of warps", slowest)) {
    before = std::max(before, of_this_pe.at(0));
    after = std::max(after, of_this_pe.at(1));
  }
  return 100 * after <= kWorth * before;
}

}  // namespace

template <class T>
void balance_warps(HaloPlan<T>& plan, const std::vector<std::vector<BlockPlan>>& blocks,
                   const Peers& peers, int warps) {
  const int pes = static_cast<int>(plan.local.size());
  const int of_pe = static_cast<int>(blocks.front().size());
  if (all_in_one_turn(blocks, peers, warps)) return;
  std::vector<Sequence> sequences(at(pes * of_pe));
  in_parallel(pes * of_pe, [&](int k) {
    const std::size_t pe = at(k / of_pe);
    const RowRange rows = blocks[pe][at(k % of_pe)].interior;
    sequences[at(k)] = new_sequence(plan.local[pe], rows, warps);
  });
  if (!is_worth_it(sequences, of_pe, peers)) return;
  for (std::size_t pe = 0; pe < at(pes); ++pe) {
    std::vector<std::int32_t> rows;
    for (int k = 0; k < of_pe; ++k)
      std::ranges::copy(sequences[pe * at(of_pe) + at(k)].rows, std::back_inserter(rows));
    reorder_interior(plan.local[pe], rows);
  }
}

template void balance_warps(HaloPlan<float>&, const std::vector<std::vector<BlockPlan>>&,
                            const Peers&, int);
template void balance_warps(HaloPlan<double>&, const std::vector<std::vector<BlockPlan>>&,
                            const Peers&, int);

}  // namespace cpufree
