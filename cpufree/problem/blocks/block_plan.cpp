#include "cpufree/problem/blocks/block_plan.hpp"

#include <algorithm>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/partition.hpp"

namespace cpufree {

namespace {

using Plans = std::vector<std::vector<BlockPlan>>;

void sort_unique(std::vector<std::int32_t>& v) {
  std::ranges::sort(v);
  v.erase(std::ranges::unique(v).begin(), v.end());
}

// The blocks share a range of rows by weight. `padded`: see append_padded.
void share(const std::vector<std::int64_t>& padded, RowRange rows, std::vector<BlockPlan>& blocks,
           RowRange BlockPlan::* kind) {
  const auto ranges = split_rows(padded, rows, static_cast<int>(blocks.size()));
  for (std::size_t b = 0; b < blocks.size(); ++b) blocks[b].*kind = ranges[b];
}

// Which of some ranges has a row. Remembers the last answer: columns of a row lie close together.
class RangeOfRow {
 public:
  explicit RangeOfRow(const std::vector<RowRange>& ranges) : ranges_(ranges) {}

  std::int32_t operator()(std::int32_t row) {
    if (row < last_.begin || row >= last_.end) {
      const auto found = std::ranges::upper_bound(ranges_, row, {}, &RowRange::end);
      range_ = static_cast<std::int32_t>(found - ranges_.begin());
      last_ = *found;
    }
    return range_;
  }

 private:
  const std::vector<RowRange>& ranges_;
  RowRange last_;
  std::int32_t range_ = 0;
};

std::vector<RowRange> ranges_of(const std::vector<BlockPlan>& blocks, RowRange BlockPlan::* kind) {
  std::vector<RowRange> ranges;
  for (const BlockPlan& block : blocks) ranges.push_back(block.*kind);
  return ranges;
}

// The remote partners of one block.
template <class T>
void find_remote(const LocalSystem<T>& local, const std::vector<std::int32_t>& sources,
                 BlockPlan& block, int blocks) {
  std::vector<char> met(local.ghosts > 0 ? at(local.ghosts) : 0, 0);
  for (std::int64_t k = local.row_ptr[at(block.boundary.begin)];
       k < local.row_ptr[at(block.boundary.end)]; ++k) {
    const std::int32_t ghost = local.columns()[k] - local.rows();
    if (ghost < 0 || met[at(ghost)] != 0) continue;
    met[at(ghost)] = 1;
    block.await.push_back(sources[at(ghost)]);
  }
  sort_unique(block.await);
  for (const std::int32_t slot : block.await) block.notify.push_back(slot / blocks);
  sort_unique(block.notify);
}

// reads[c] = 1 for all blocks c of the PE whose rows this block reads.
template <class T>
std::vector<char> find_local(const LocalSystem<T>& local, const std::vector<BlockPlan>& blocks,
                             const BlockPlan& block) {
  std::vector<char> reads(blocks.size(), 0);
  const auto interior = ranges_of(blocks, &BlockPlan::interior);
  const auto boundary = ranges_of(blocks, &BlockPlan::boundary);
  RangeOfRow of_interior(interior), of_boundary(boundary);
  for (const RowRange range : {block.interior, block.boundary})
    for (std::int64_t k = local.row_ptr[at(range.begin)]; k < local.row_ptr[at(range.end)]; ++k) {
      const std::int32_t column = local.columns()[k];
      if (column < local.rows())
        reads[at(column < local.interior ? of_interior(column) : of_boundary(column))] = 1;
    }
  return reads;
}

// Partners of all blocks of the PEs here, a block at a time.
template <class T>
void find_partners(const HaloPlan<T>& plan, const BoundaryRanges& boundaries, Plans& plans,
                   int blocks) {
  const int pes = static_cast<int>(plans.size());
  std::vector<std::vector<std::int32_t>> sources(at(pes));
  for (std::size_t pe = 0; pe < at(pes); ++pe)
    sources[pe] = ghost_sources(plan.local[pe], boundaries);
  std::vector<std::vector<char>> reads(at(pes) * at(blocks));
  std::int64_t entries = 0;
  for (const auto& local : plan.local) entries += local.row_ptr.back();
  // A small system is done before a second thread has started.
  const int jobs = entries < 200'000 ? 1 : pes * blocks;
  in_parallel(jobs, [&](int job) {
    for (int slot = job; slot < pes * blocks; slot += jobs) {
      const std::size_t pe = at(slot / blocks);
      BlockPlan& block = plans[pe][at(slot % blocks)];
      find_remote(plan.local[pe], sources[pe], block, blocks);
      reads[at(slot)] = find_local(plan.local[pe], plans[pe], block);
    }
  });
  for (int slot = 0; slot < pes * blocks; ++slot) {
    const int pe = slot / blocks;
    const int mine = slot % blocks;
    auto& partners = plans[at(pe)][at(mine)].await_local;
    for (int other = 0; other < blocks; ++other)
      if (other != mine && (reads[at(slot)][at(other)] != 0 ||
                            reads[at(pe) * at(blocks) + at(other)][at(mine)] != 0))
        partners.push_back(other);
  }
}

// All blocks of a PE and of its neighbours, for every block.
template <class T>
void await_everybody(const HaloPlan<T>& plan, Plans& plans, std::int32_t blocks) {
  for (std::size_t pe = 0; pe < plans.size(); ++pe)
    for (std::int32_t mine = 0; mine < blocks; ++mine) {
      BlockPlan& block = plans[pe][at(mine)];
      for (std::int32_t other = 0; other < blocks; ++other)
        if (other != mine) block.await_local.push_back(other);
      for (const Neighbour& neighbour : plan.local[pe].neighbours) {
        block.notify.push_back(neighbour.pe);
        for (std::int32_t other = 0; other < blocks; ++other)
          block.await.push_back(neighbour.pe * blocks + other);
      }
    }
}

}  // namespace

template <class T>
Plans make_block_plans(const HaloPlan<T>& plan, const Peers& peers, int blocks, Awaited awaited) {
  Plans plans(plan.local.size());
  for (std::size_t pe = 0; pe < plan.local.size(); ++pe) {
    const auto& local = plan.local[pe];
    plans[pe].resize(at(blocks));
    const RowRange interior{0, local.interior}, boundary{local.interior, local.rows()};
    // The slowest block is waited for: what counts is what slices take, not the entries.
    std::vector<std::int64_t> padded{0};
    append_padded(local.row_ptr, interior, padded);
    append_padded(local.row_ptr, boundary, padded);
    share(padded, interior, plans[pe], &BlockPlan::interior);
    share(padded, boundary, plans[pe], &BlockPlan::boundary);
  }
  if (awaited == Awaited::everybody)
    await_everybody(plan, plans, blocks);
  else
    find_partners(plan, gather_boundaries(plans, peers), plans, blocks);
  return plans;
}

BoundaryRanges gather_boundaries(const Plans& plans, const Peers& peers) {
  BoundaryRanges mine;
  for (const auto& blocks : plans) mine.push_back(ranges_of(blocks, &BlockPlan::boundary));
  return gather_lists(peers, "rows of the blocks", mine);
}

template <class T>
std::vector<std::int32_t> ghost_sources(const LocalSystem<T>& local,
                                        const BoundaryRanges& boundaries) {
  std::vector<std::int32_t> sources(at(local.ghosts));
  for (const Neighbour& neighbour : local.neighbours) {
    const auto& blocks = boundaries[at(neighbour.pe)];
    RangeOfRow owner(blocks);
    const std::int32_t first = neighbour.pe * static_cast<std::int32_t>(blocks.size());
    const std::int32_t end = neighbour.first_ghost + neighbour.received;
    for (std::int32_t g = neighbour.first_ghost; g < end; ++g)
      sources[at(g)] = first + owner(local.ghost_row[at(g)]);
  }
  return sources;
}

template Plans make_block_plans(const HaloPlan<float>&, const Peers&, int, Awaited);
template Plans make_block_plans(const HaloPlan<double>&, const Peers&, int, Awaited);
template std::vector<std::int32_t> ghost_sources(const LocalSystem<float>&, const BoundaryRanges&);
template std::vector<std::int32_t> ghost_sources(const LocalSystem<double>&, const BoundaryRanges&);

}  // namespace cpufree
