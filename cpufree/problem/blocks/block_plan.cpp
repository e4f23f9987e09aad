#include "cpufree/problem/blocks/block_plan.hpp"

#include <algorithm>
#include <string>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

namespace {

using Plans = std::vector<std::vector<BlockPlan>>;

void sort_unique(std::vector<std::int32_t>& v) {
  std::ranges::sort(v);
  v.erase(std::ranges::unique(v).begin(), v.end());
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

// The slots whose ghosts one block reads.
template <class T>
std::vector<std::int32_t> find_remote(const LocalSystem<T>& local,
                                      const std::vector<std::int32_t>& sources,
                                      const BlockPlan& block) {
  std::vector<std::int32_t> slots;
  std::vector<char> met(local.ghosts > 0 ? at(local.ghosts) : 0, 0);
  for (std::int64_t k = local.row_ptr[at(block.boundary.begin)];
       k < local.row_ptr[at(block.boundary.end)]; ++k) {
    const std::int32_t ghost = local.columns()[k] - local.rows();
    if (ghost < 0 || met[at(ghost)] != 0) continue;
    met[at(ghost)] = 1;
    slots.push_back(sources[at(ghost)]);
  }
  return slots;
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
  std::vector<BlockReads> reads(at(pes) * at(blocks));
  std::int64_t entries = 0;
  for (const auto& local : plan.local) entries += local.row_ptr.back();
  // A small system is done before a second thread has started.
  const int jobs = entries < 200'000 ? 1 : pes * blocks;
  in_parallel(jobs, [&](int job) {
    for (int slot = job; slot < pes * blocks; slot += jobs) {
      const std::size_t pe = at(slot / blocks);
      const BlockPlan& block = plans[pe][at(slot % blocks)];
      reads[at(slot)] = {find_local(plan.local[pe], plans[pe], block),
                         find_remote(plan.local[pe], sources[pe], block)};
    }
  });
  set_partners(plans, reads);
}

}  // namespace

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

template <class T>
Plans make_block_plans(const HaloPlan<T>& plan, const Peers& peers, int blocks, Awaited awaited,
                       std::int32_t together) {
  Plans plans(plan.local.size());
  for (std::size_t pe = 0; pe < plan.local.size(); ++pe) {
    const auto& local = plan.local[pe];
    // The slowest block is waited for: what counts is what slices take, not the entries.
    const PaddedRows padded(local.interior, local.rows(),
                            slice_costs(local.row_ptr, {0, local.interior}),
                            slice_costs(local.row_ptr, {local.interior, local.rows()}));
    plans[pe] = share_rows(padded, local.interior, local.rows(), blocks, together);
  }
  if (awaited == Awaited::everybody)
    await_everybody(plan, plans, blocks);
  else
    find_partners(plan, gather_boundaries(plans, peers), plans, blocks);
  return plans;
}

void set_partners(Plans& plans, const std::vector<BlockReads>& reads) {
  const std::size_t blocks = plans.front().size();
  for (std::size_t slot = 0; slot < reads.size(); ++slot) {
    const std::size_t first = slot / blocks * blocks, mine = slot % blocks;
    BlockPlan& block = plans[slot / blocks][mine];
    block.await = reads[slot].remote;
    sort_unique(block.await);
    for (const std::int32_t from : block.await)
      block.notify.push_back(from / static_cast<std::int32_t>(blocks));
    sort_unique(block.notify);
    for (std::size_t other = 0; other < blocks; ++other)
      if (other != mine && (reads[slot].local[other] != 0 || reads[first + other].local[mine] != 0))
        block.await_local.push_back(static_cast<std::int32_t>(other));
  }
}

PaddedRows::PaddedRows(std::int32_t interior, std::int32_t rows,
                       const std::vector<std::int64_t>& of_interior,
                       const std::vector<std::int64_t>& of_boundary)
    : interior_(interior),
      rows_(rows),
      boundary_slice_(static_cast<std::int64_t>(of_interior.size())),
      before_{0} {
  for (const auto* costs : {&of_interior, &of_boundary})
    for (const std::int64_t cost : *costs) before_.push_back(before_.back() + cost);
}

std::int64_t PaddedRows::operator()(std::int32_t i) const {
  const bool outer = i >= interior_;
  const std::int32_t begin = outer ? interior_ : 0;
  const std::int32_t end = outer ? rows_ : interior_;
  const std::int32_t slice = (i - begin) / kSliceRows, k = (i - begin) % kSliceRows;
  const std::size_t s = at((outer ? boundary_slice_ : 0) + slice);
  if (k == 0) return before_[s];
  const std::int32_t count = std::min(kSliceRows, end - begin - slice * kSliceRows);
  return before_[s] + (before_[s + 1] - before_[s]) * k / count;
}

std::vector<BlockPlan> share_rows(const PaddedRows& padded, std::int32_t interior,
                                  std::int32_t rows, int blocks, std::int32_t together) {
  const auto whole = [&](RowRange range) {  // all cuts at multiples
    return RowRange{range.begin / together * together, range.end / together * together};
  };
  std::vector<BlockPlan> plans(at(blocks));
  const auto inner = split_by(padded, {0, interior}, blocks);
  const auto outer = split_by(padded, {interior, rows}, blocks);
  for (std::size_t b = 0; b < plans.size(); ++b) {
    plans[b].interior = whole(inner[b]);
    plans[b].boundary = whole(outer[b]);
  }
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

template Plans make_block_plans(const HaloPlan<float>&, const Peers&, int, Awaited, std::int32_t);
template Plans make_block_plans(const HaloPlan<double>&, const Peers&, int, Awaited, std::int32_t);
template void await_everybody(const HaloPlan<float>&, Plans&, std::int32_t);
template void await_everybody(const HaloPlan<double>&, Plans&, std::int32_t);
template std::vector<std::int32_t> ghost_sources(const LocalSystem<float>&, const BoundaryRanges&);
template std::vector<std::int32_t> ghost_sources(const LocalSystem<double>&, const BoundaryRanges&);

}  // namespace cpufree
