// Halos of blocks (problem/blocks/block_halo.hpp) of rows that GPUs have.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cpufree/problem/blocks/block_halo.hpp"
#include "cpufree/solvers/gpu/layout/rows.hpp"

namespace cpufree {

// What make_block_halos says of a plan without rows, and the row that each place has been given, on
// the GPU of each PE.
struct HalosOnGpus {
  BlockHalos halos;
  std::vector<gpu::DeviceArray<std::int32_t>> order;
};

// As make_block_halos does for rows in the sequence of the matrix. Rows on GPUs have the numbers of
// their PEs, are renumbered, and have names for kernels. Where the graph of rows is cut, that is
// done by the host.
template <class T>
std::optional<HalosOnGpus> make_block_halos(HaloPlan<T>& plan, std::vector<GpuRows<T>>& rows,
                                            int blocks, std::int64_t most_reads);

// The same for rows of a pattern that has been given such an order and such plans.
template <class T>
void take_block_halos(std::vector<GpuRows<T>>& rows,
                      const std::vector<gpu::DeviceArray<std::int32_t>>& order,
                      const std::vector<std::vector<BlockPlan>>& plans);

}  // namespace cpufree
