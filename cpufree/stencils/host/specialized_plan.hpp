// Specialized thread blocks, after Baydamirli 2023 ("Autonomous Execution for Multi-GPU Systems",
// sections 3.1.3 and 4.1.2): some blocks compute the points that other PEs need, and the others the
// rest. To be compared with tiles of which none is special (warp_plan.hpp).
#pragma once

#include "cpufree/stencils/host/warp_plan.hpp"

namespace cpufree {

// Blocks that compute the `layers` planes which one neighbour needs, of a PE with as many planes:
// the same share of the blocks as of the points, and one at least.
int boundary_share(int blocks, std::int64_t planes, int layers);

// Values in memory, slabs along axis 0: the first `boundary_blocks` blocks of a PE (of the plan)
// have its first and its last planes. The kernel is that of the tiles, which exchange with those
// around them: blocks differ in which points they have, and in nothing else. Throws InvalidInput
// for a grid, or a spec, that this is not for.
TimeTileLayout lay_out_specialized(const Grid& grid, const StencilSpec& spec, const StencilRun& run,
                                   int blocks, std::size_t value_bytes, bool source,
                                   const WarpKernels& kernels);

}  // namespace cpufree
