// What the processes of a team put together of a run on a grid.
#pragma once

#include <vector>

#include "cpufree/stencils/host/stencil_plan.hpp"

namespace cpufree {

// Throws InvalidInput where the grid has no points for some of the processes.
void require_all_pes(const StencilSpec& spec, const StencilLayout& layout);

// Gives all members the outcome of rank 0, the largest update of all, and the seconds from the
// start of the last kernel to the end: what a PE waits for one that starts later is no part of the
// run.
void share_end(Team& team, StencilResult& result);

// Puts the values that this process owns, in the order of its box, where the problem has room for
// them; those of all, at rank 0, if they are gathered.
template <class T>
void deliver(const StencilProblem<T>& problem, Team& team, const StencilRun& run,
             const Tiling& tiling, const std::vector<T>& mine);

}  // namespace cpufree
