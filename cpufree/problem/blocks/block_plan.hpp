// How a PE's rows are shared among its blocks, and which blocks wait for which.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/problem/peers.hpp"

namespace cpufree {

// One block's share: some interior rows, some boundary rows, and its partners. Slots are numbered
// pe * blocks + block.
struct BlockPlan {
  RowRange interior;
  RowRange boundary;
  std::vector<std::int32_t> notify;  // PEs that read ghosts of this block, increasing
  std::vector<std::int32_t> await;  // slots of the blocks whose ghosts this block reads, increasing
  // Other blocks of this PE whose rows this block reads, increasing.
  std::vector<std::int32_t> await_local;
  // Halos of blocks (block_halo.hpp): how many boundary rows other PEs read, they come first; where
  // the packets of boundary rows begin; the packets that this block reads, increasing.
  std::int32_t remote = 0;
  std::int32_t first_packet = 0;
  std::vector<std::int32_t> reads;

  std::int32_t rows() const { return interior.size() + boundary.size(); }
};

// Whom a block awaits: the blocks whose rows and ghosts it reads, or, for formats that read beyond
// the columns of a row, all blocks of its PE and of the neighbours.
enum class Awaited { those_read, everybody };

// Boundary rows of the blocks of all PEs, [pe][block].
using BoundaryRanges = std::vector<std::vector<RowRange>>;

// Those of the PEs here, told to all.
BoundaryRanges gather_boundaries(const std::vector<std::vector<BlockPlan>>& plans,
                                 const Peers& peers);

// plans[k][block] of plan.local[k]. As the pattern is symmetric, so are `await` and `await_local`:
// block a awaits block c if and only if c awaits a. (`await_local` is made so even where the
// pattern is not: nothing else has checked it inside a PE.)
// All blocks share the boundary rows, and all share the interior ones; `together` of them, which
// divide the numbers of both, stay in one block.
template <class T>
std::vector<std::vector<BlockPlan>> make_block_plans(const HaloPlan<T>& plan, const Peers& peers,
                                                     int blocks,
                                                     Awaited awaited = Awaited::those_read,
                                                     std::int32_t together = 1);
// The same where all PEs are here.
template <class T>
std::vector<std::vector<BlockPlan>> make_block_plans(const HaloPlan<T>& plan, int blocks,
                                                     Awaited awaited = Awaited::those_read) {
  return make_block_plans(plan, AllHere(plan.local.size()), blocks, awaited);
}

// Every block awaits all blocks of its PE and of the neighbours of this.
template <class T>
void await_everybody(const HaloPlan<T>& plan, std::vector<std::vector<BlockPlan>>& plans,
                     std::int32_t blocks);

// What a block reads of others.
struct BlockReads {
  std::vector<char> local;           // 1 for the blocks of its PE whose rows it reads
  std::vector<std::int32_t> remote;  // slots whose ghosts it reads, in any order
};
// Sets the partners of all blocks of the PEs here, whose reads are reads[k * blocks + block].
void set_partners(std::vector<std::vector<BlockPlan>>& plans, const std::vector<BlockReads>& reads);

// What rows take in slices, of which the costs are given: of interior rows, then of boundary rows.
// Called with i, it is what rows before row i take: those of a slice take equally much.
class PaddedRows {
 public:
  PaddedRows(std::int32_t interior, std::int32_t rows, const std::vector<std::int64_t>& of_interior,
             const std::vector<std::int64_t>& of_boundary);
  std::int64_t operator()(std::int32_t i) const;

 private:
  std::int32_t interior_, rows_;
  std::int64_t boundary_slice_;       // the first one
  std::vector<std::int64_t> before_;  // of each slice, and of all
};

// Shares interior and boundary rows of a PE among its blocks by what they take.
std::vector<BlockPlan> share_rows(const PaddedRows& padded, std::int32_t interior,
                                  std::int32_t rows, int blocks, std::int32_t together = 1);

// The slot of the block that owns each ghost of a PE.
template <class T>
std::vector<std::int32_t> ghost_sources(const LocalSystem<T>& local,
                                        const BoundaryRanges& boundaries);

}  // namespace cpufree
