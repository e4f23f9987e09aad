// How a PE's rows are shared among its blocks, and which blocks wait for which.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// One block's share: some interior rows, some boundary rows, and its partners. Slots are numbered
// pe * blocks + block.
struct BlockPlan {
  RowRange interior;
  RowRange boundary;
  std::vector<std::int32_t> notify;  // PEs that read ghosts of this block, increasing
  std::vector<std::int32_t> await;  // slots of the blocks whose ghosts this block reads, increasing
};

// plans[pe][block]. As the pattern is symmetric, so is `await`: block a awaits block c if and only
// if c awaits a.
template <class T>
std::vector<std::vector<BlockPlan>> make_block_plans(const HaloPlan<T>& plan, int blocks);

}  // namespace cpufree
