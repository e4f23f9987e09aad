// Which kernel a grid is for on GPUs, and how it is laid out for it.
#pragma once

#include <optional>
#include <vector>

#include "cpufree/launch/gpu/run.hpp"
#include "cpufree/stencils/host/warp_plan.hpp"

namespace cpufree {

// A grid laid out, with the kernel for it.
struct ChosenStencil {
  StencilLayout layout;
  std::optional<TimeTileLayout> time_tiles;  // where values stay in memory
  GpuKernel kernel;
};

// The first way that the spec allows, and the grid. All members of a team find the same. Throws
// InvalidInput, Unsupported.
template <class T>
ChosenStencil choose_cuda_stencil(const Grid& grid, const StencilSpec& spec, const StencilRun& run,
                                  bool source, const std::vector<int>& devices);

}  // namespace cpufree
