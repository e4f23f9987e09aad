// Levels of multigrid as GPUs have them, as far as that is arithmetic of the host.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cpufree/multigrid/host/multigrid_layout.hpp"
#include "cpufree/solvers/gpu/plan/host_layout.hpp"
#include "cpufree/solvers/gpu/plan/page_count.hpp"
#include "cpufree/solvers/host/heap.hpp"

namespace cpufree {

// Rows of a level of multigrid up to which every PE works on all of them: it takes less than the
// exchanges between PEs that are saved.
inline constexpr std::int32_t kMostGathered = 20'000;

// What a GPU that has made levels keeps for other numbers must leave solves and right-hand sides
// room: this many times as much is free, or it is let go.
inline constexpr std::size_t kShareOfKept = 4;

// How matrices of levels are laid out, by GPUs or the host: values as they are, columns one by one,
// which is what LevelSlices is for.
LayoutOptions options_of_levels(int threads);
// The blocks of a layout.
std::vector<BlockPlan> plans_of(const PeLayout& layout);

// Plans the levels of a hierarchy one after the other, and the transfers between them:
// on_level(l, plan), on_transfers(l, plan) from level l to the next. What is planned is no longer
// needed.
template <class OnLevel, class OnTransfers>
void plan_levels(multigrid::Hierarchy& hierarchy, LevelPlan first, const OwnPes& own,
                 OnLevel&& on_level, OnTransfers&& on_transfers) {
  const int blocks = static_cast<int>(first.blocks.front().size());
  LevelPlan fine = std::move(first);
  on_level(std::size_t{0}, fine);
  for (std::size_t l = 1; l < hierarchy.levels.size(); ++l) {
    LevelPlan coarse = plan_of_level(hierarchy, l, own, blocks);
    on_level(l, coarse);
    on_transfers(l - 1, plan_of_transfers(hierarchy, l - 1, fine, coarse, own));
    fine = std::move(coarse);
  }
}

// Which levels' vectors are packets: small ones, from the last one up. `extent` has the rows of the
// levels, and gets the packets.
void choose_packets(const GpuPlace& place, const std::vector<LevelReport>& levels,
                    std::size_t gathered, LevelsExtent& extent);

// What the levels take on the GPU of each PE, in bytes, but for what travels between PEs.
struct LevelsMemory {
  LevelsExtent extent;
  std::vector<double> bytes;
  std::vector<PageCount> pages;  // of their arrays, kept ones among them
  double kept = 0.0;  // what updates are made from, where the GPU of the one PE makes the levels
};
// As the host lays them out; `first`: level 0, `value_bytes`: of A.
LevelsMemory memory_of_levels(const GpuPlace& place, multigrid::Hierarchy& hierarchy,
                              LevelPlan first, int threads, std::size_t value_bytes);

}  // namespace cpufree
