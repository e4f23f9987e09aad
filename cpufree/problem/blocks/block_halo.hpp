// Halos of blocks: every block is to the other blocks, of its own PE and of others, what a PE is to
// other PEs. For systems so small that a barrier among the blocks of a PE costs more than the rows
// between them.
//
// Rows of a PE lie block after block. A block's boundary rows come first: those that read rows of
// other blocks or are read by them, and some more that fill a slice; among these, those that other
// PEs read. Packets land in one array of the PE: first its ghosts, then its blocks' boundary rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

struct BlockHalos {
  // Of the PEs of the plan, [pe][block]; blocks are awaited by packets only.
  std::vector<std::vector<BlockPlan>> plans;
  std::vector<std::int32_t> packets;  // of each of them
};

// Renumbers the rows of all PEs so. Blocks have equal weight and read little of one another
// (cut_graphs); boundary rows that other PEs read, other boundary rows and interior rows each are
// sorted by length, and equally long ones follow one another as in `order` (see make_halo_plan).
// Entries keep their sequence within a row: sums of rows are what they would be without halos of
// blocks, but for rounding where tails (warp_slices.hpp) begin elsewhere. Nothing, and `plan` as it
// was, where some block reads rows of a block that does not read its own: the proof that packets
// are not overwritten too early needs both. Nothing, too, where contiguous pieces of `order` would
// together read more than `most_reads` packets: with those the limits were measured. Afterwards
// `interior` counts the rows that read no ghosts, which no longer come first. The answer is the
// same for all PEs.
//
// `slice`: an interior of fewer rows counts as boundary, and so do those that would begin a slice
// of that number, where the last slice of the boundary has room for them.
template <class T>
std::optional<BlockHalos> make_block_halos(HaloPlan<T>& plan, const Peers& peers,
                                           std::span<const std::int32_t> order, int blocks,
                                           std::int64_t most_reads,
                                           std::int32_t slice = kSliceRows);
// The same where all PEs are here.
template <class T>
std::optional<BlockHalos> make_block_halos(
    HaloPlan<T>& plan, std::span<const std::int32_t> order, int blocks,
    std::int64_t most_reads = std::numeric_limits<std::int64_t>::max(),
    std::int32_t slice = kSliceRows) {
  return make_block_halos(plan, AllHere(plan.local.size()), order, blocks, most_reads, slice);
}

// Rows of a block: those that other PEs read, those of its boundary with these, and all.
struct BlockSize {
  std::int32_t remote = 0;
  std::int32_t boundary = 0;
  std::int32_t rows = 0;
};
// The blocks of a PE with N ghosts, one behind the other, without what they read.
std::vector<BlockPlan> place_blocks(std::int32_t ghosts, const std::vector<BlockSize>& sizes);

// Gives new numbers to the rows that other PEs read: new_row[k][j] is that of row `interior` + j of
// plan.local[k]. Of all PEs, as ghosts and in the order in which they are sent.
template <class T>
void renumber_halos(HaloPlan<T>& plan, const Peers& peers,
                    const std::vector<std::vector<std::int32_t>>& new_row);

// Columns as a block's kernel knows them, for a halo of blocks: its own rows from 0, then what it
// reads of others, in the order of BlockPlan::reads.
struct BlockColumns {
  RowRange own;
  std::int32_t rows = 0;                  // of the PE
  const std::int32_t* packets = nullptr;  // of each row of the PE that has one
  std::span<const std::int32_t> reads;

  std::int32_t operator()(std::int32_t column) const {
    if (column >= own.begin && column < own.end) return column - own.begin;
    const auto place = std::ranges::lower_bound(reads, packet(column));
    return own.size() + static_cast<std::int32_t>(place - reads.begin());
  }
  // Of a column that is another block's: ghosts' packets come first.
  std::int32_t packet(std::int32_t column) const {
    return column >= rows ? column - rows : packets[column];
  }
};

// The packet of each row of a PE; -1 for interior ones.
std::vector<std::int32_t> packets_of_rows(const std::vector<BlockPlan>& blocks);

// The slot of the block that sends each packet of PE `pe`, whose blocks these are.
template <class T>
std::vector<std::int32_t> packet_sources(const LocalSystem<T>& local,
                                         const BoundaryRanges& boundaries,
                                         const std::vector<BlockPlan>& blocks, int pe);

}  // namespace cpufree
