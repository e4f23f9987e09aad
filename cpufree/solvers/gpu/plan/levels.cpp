#include "cpufree/solvers/gpu/plan/levels.hpp"

#include <algorithm>

#include "cpufree/base/index.hpp"
#include "cpufree/multigrid/cycle_args.hpp"
#include "cpufree/multigrid/rules.hpp"
#include "cpufree/solvers/gpu/plan/scratch_blocks.hpp"

namespace cpufree {

namespace {

// Entries of a level up to which its vectors are packets; and of one whose rows are short, so that
// neighbouring rows read neighbouring packets. Products fetch each packet by itself, past the L1
// cache. One H200: where level 0 has packets, too, poisson2d 400^2 takes 112 us an iteration and
// 141 where it has not; where level 1, of 31 entries a row, has, poisson3d 64^3 takes 238 and 206.
constexpr double kPacketEntries = 1e5, kPacketShort = 1.5e6;
constexpr double kShortRow = 16.0;

// Partners of the blocks of a PE, in bytes.
double partners_of(const std::vector<BlockPlan>& blocks) {
  std::size_t count = 0;
  for (const BlockPlan& plan : blocks)
    count += plan.notify.size() + plan.await.size() + plan.await_local.size();
  return 4.0 * static_cast<double>(count);
}

// What GpuMultigrid has of a level besides slices, and the blocks' views.
double bytes_of_part(const LocalSystem<float>& local, const PeLayout& layout, PageCount& pages) {
  double all = pages.array(local.send_ptr) + pages.array(local.destinations);
  for (int k = 0; k < 2; ++k)
    all += pages.array(sizeof(float) * static_cast<double>(layout.private_rows));
  return all + pages.array(partners_of(plans_of(layout))) +
         static_cast<double>(layout.shares.size() * sizeof(CycleLevel<WarpSlices<float>>));
}

// What Setup of multigrid/gpu/hierarchy.cpp and LevelPacker leave in memory that is kept, in their
// sequence; without the pattern of long rows.
double bytes_kept(const multigrid::Hierarchy& h, PageCount& pages) {
  const auto nonzeros = [](const multigrid::SparseMatrix& a) {
    return static_cast<std::int64_t>(a.col.size());
  };
  const auto rows = [&](std::size_t l) {
    return static_cast<std::int64_t>(h.levels[l].matrix.row_ptr.size()) - 1;
  };
  ScratchBlocks kept(24.0 * static_cast<double>(nonzeros(h.levels.front().matrix)));
  const auto take = [&](std::int64_t count, std::int64_t each) { kept.take(at(count * each)); };
  const auto take_matrix = [&](std::int64_t of_rows, std::int64_t entries) {
    take(of_rows + 1, 8), take(entries, 4), take(entries, 8);
  };
  take(nonzeros(h.levels.front().matrix), 8);
  for (int k = 0; k < 3; ++k) take(rows(0), 8);
  for (std::size_t l = 0; l + 1 < h.levels.size(); ++l) {
    const auto& level = h.levels[l];
    const std::int64_t entries = nonzeros(level.matrix), transfers = nonzeros(level.prolongator);
    take(multigrid::byte_of_row(rows(l) + 1, entries), 1);
    take(rows(l), 4);
    take_matrix(rows(l), transfers);
    take_matrix(rows(l + 1), transfers);
    take(rows(l) + 1, 8);  // of A P
    take_matrix(rows(l + 1), nonzeros(h.levels[l + 1].matrix));
    for (int k = 0; k < 3; ++k) take(rows(l + 1), 8);
  }
  if (!h.inverse.empty())
    take_matrix(rows(h.levels.size() - 1), static_cast<std::int64_t>(h.inverse.size()));
  for (std::size_t l = 1; l < h.levels.size(); ++l) take(rows(l), 4), take(rows(l), 4);
  for (const std::size_t block : kept.sizes()) pages.array(static_cast<double>(block));
  return static_cast<double>(kept.bytes());
}

}  // namespace

LayoutOptions options_of_levels(int threads) {
  LayoutOptions options;
  options.codes = {true, false, false};
  options.threads = threads;
  options.spread = true;
  return options;
}

std::vector<BlockPlan> plans_of(const PeLayout& layout) {
  std::vector<BlockPlan> plans;
  for (const ShareLayout& share : layout.shares) plans.push_back(share.plan);
  return plans;
}

void choose_packets(const GpuPlace& place, const std::vector<LevelReport>& levels,
                    std::size_t gathered, LevelsExtent& extent) {
  extent.packets.assign(levels.size(), 0);
  for (std::size_t l = levels.size(); l-- > 0;) {
    const bool alone = place.own.all == 1 || (gathered > 0 && l >= gathered);
    const double rows = static_cast<double>(extent.rows_and_ghosts[l]);
    const bool solves = levels[l].inverted;
    const double entries = solves ? rows * rows : static_cast<double>(levels[l].nonzeros);
    const std::int32_t most = place.spec.factors.gathered;  // of rows, where that is given
    const bool small = solves || entries <= kPacketEntries ||
                       (entries <= kPacketShort && entries <= kShortRow * rows);
    if (!alone || !small || (most >= 0 && rows > most)) return;
    extent.packets[l] = at(kCycleExchanges) * extent.rows_and_ghosts[l];
  }
}

LevelsMemory memory_of_levels(const GpuPlace& place, multigrid::Hierarchy& hierarchy,
                              LevelPlan first, int threads, std::size_t value_bytes) {
  const std::size_t pes = at(place.own.here), gathered = hierarchy.gathered;
  LevelsMemory memory;
  memory.bytes.assign(pes, 0.0);
  for (const GpuFacts& gpu : place.gpus) memory.pages.emplace_back(gpu.page_bytes);
  if (gathered > 0) memory.extent.gathered = hierarchy.levels[gathered].owner.size();
  std::vector<BlockPlans> blocks;  // of each level
  const auto add_slices = [&](const HaloPlan<float>& plan, const BlockPlans& of) {
    auto layouts = lay_out_shares(plan, of, options_of_levels(threads));
    for (std::size_t k = 0; k < pes; ++k)
      each_array_of<float>(layouts[k],
                           [&](double array) { memory.bytes[k] += memory.pages[k].array(array); });
    return layouts;
  };
  plan_levels(
      hierarchy, std::move(first), place.own,
      [&](std::size_t l, const LevelPlan& plan) {
        memory.extent.rows_and_ghosts.push_back(plan.rows_and_ghosts);
        const auto layouts = add_slices(plan.plan, plan.blocks);
        blocks.emplace_back();
        for (std::size_t k = 0; k < pes; ++k) {
          memory.bytes[k] += bytes_of_part(plan.plan.local[k], layouts[k], memory.pages[k]);
          if (l == 0)
            memory.bytes[k] += memory.pages[k].array(static_cast<double>(value_bytes) *
                                                     static_cast<double>(layouts[k].private_rows));
          blocks.back().push_back(plans_of(layouts[k]));
        }
      },
      [&](std::size_t l, const TransferPlan& plan) {
        add_slices(plan.restriction, plan.restriction_blocks);
        add_slices(plan.prolongation, blocks[l]);
        for (std::size_t k = 0; k < pes; ++k) {
          if (l + 1 == gathered)
            for (int array = 0; array < 2; ++array)  // rows, and their values
              memory.bytes[k] += memory.pages[k].array(plan.restriction.local[k].global_row);
        }
      });
  if (pes == 1 && gpu_makes_hierarchy(place, std::ssize(hierarchy.levels.front().matrix.col)))
    memory.kept = bytes_kept(hierarchy, memory.pages.front());
  return memory;
}

}  // namespace cpufree
