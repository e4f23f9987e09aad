// Shares the interior rows of a block more evenly among its warps.
//
// Warps take 32 rows at a time, in turn (solvers/warp_slices.hpp): of a block with 83 times 32 rows
// and 16 warps, the first three take six times 32 and the others five, whatever these have to do.
#pragma once

#include <vector>

#include "cpufree/problem/block_plan.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/problem/peers.hpp"

namespace cpufree {

// Renumbers interior rows of all PEs so: 32 rows change places with 32 others of the same turn, and
// the most work of a turn goes to the warp that has had, and will have, the least. Rows that a warp
// sums together stay together, in their order, and those that a block sums at a time stay the same
// but for the last 32 of a range, which may be fewer and keep their place: the lines of the operand
// that they share are still read at the same time. A row's entries keep their sequence, and so the
// row its sum. Ranges of blocks and boundary rows stay where they are. Where the slowest warp of
// all PEs would gain next to nothing, nothing is done on any: which rows a warp has decides about
// the bits of dot products, which are the same however PEs are divided among processes.
//
// `blocks`: of the PEs here, whose plan this is. All processes call it together.
template <class T>
void balance_warps(HaloPlan<T>& plan, const std::vector<std::vector<BlockPlan>>& blocks,
                   const Peers& peers, int warps);

}  // namespace cpufree
