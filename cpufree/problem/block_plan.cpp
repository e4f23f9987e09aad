#include "cpufree/problem/block_plan.hpp"

#include <algorithm>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition.hpp"

namespace cpufree {

namespace {

void sort_unique(std::vector<std::int32_t>& v) {
  std::ranges::sort(v);
  v.erase(std::ranges::unique(v).begin(), v.end());
}

// The block that owns a boundary row.
std::int32_t block_of(const std::vector<BlockPlan>& blocks, std::int32_t row) {
  const auto found =
      std::ranges::upper_bound(blocks, row, {}, [](const BlockPlan& b) { return b.boundary.end; });
  return static_cast<std::int32_t>(found - blocks.begin());
}

template <class T>
void find_partners(const HaloPlan<T>& plan, std::vector<std::vector<BlockPlan>>& plans,
                   std::size_t pe) {
  const auto& local = plan.local[pe];
  const auto blocks = static_cast<std::int32_t>(plans[pe].size());
  std::vector<std::int32_t> slot_of_ghost(at(local.ghosts));
  for (std::int32_t g = 0; g < local.ghosts; ++g) {
    const std::int32_t owner = local.ghost_owner[at(g)];
    slot_of_ghost[at(g)] = owner * blocks + block_of(plans[at(owner)], local.ghost_row[at(g)]);
  }
  for (BlockPlan& block : plans[pe]) {
    for (std::int32_t i = block.boundary.begin; i < block.boundary.end; ++i)
      for (std::int64_t k = local.row_ptr[at(i)]; k < local.row_ptr[at(i) + 1]; ++k)
        if (local.col[at(k)] >= local.rows())
          block.await.push_back(slot_of_ghost[at(local.col[at(k)] - local.rows())]);
    sort_unique(block.await);
    for (const std::int32_t slot : block.await) block.notify.push_back(slot / blocks);
    sort_unique(block.notify);
  }
}

}  // namespace

template <class T>
std::vector<std::vector<BlockPlan>> make_block_plans(const HaloPlan<T>& plan, int blocks) {
  std::vector<std::vector<BlockPlan>> plans(plan.local.size());
  for (std::size_t pe = 0; pe < plan.local.size(); ++pe) {
    const auto& local = plan.local[pe];
    const auto interior = split_rows(local.row_ptr, {0, local.interior}, blocks);
    const auto boundary = split_rows(local.row_ptr, {local.interior, local.rows()}, blocks);
    for (std::size_t b = 0; b < at(blocks); ++b)
      plans[pe].push_back({interior[b], boundary[b], {}, {}});
  }
  for (std::size_t pe = 0; pe < plan.local.size(); ++pe) find_partners(plan, plans, pe);
  return plans;
}

template std::vector<std::vector<BlockPlan>> make_block_plans(const HaloPlan<float>&, int);
template std::vector<std::vector<BlockPlan>> make_block_plans(const HaloPlan<double>&, int);

}  // namespace cpufree
