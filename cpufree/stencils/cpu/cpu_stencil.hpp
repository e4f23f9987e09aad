// Stencils on the CPU engine.
#pragma once

#include "cpufree/stencils/host/stencil.hpp"

namespace cpufree {

// run_stencil for grids with points to update, and a checked spec.
template <class T>
StencilResult run_cpu_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                              const StencilRun& run, const Progress& progress);

}  // namespace cpufree
