// Stencils on the GPU engine. Compiled, and not yet called by run_stencil: they are to pass
// tests/cuda/run_stencils.cu on GPUs first.
#pragma once

#include "cpufree/run/stencil.hpp"

namespace cpufree {

// run_stencil for grids with points to update, and a checked spec.
template <class T>
StencilResult run_cuda_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                               const StencilRun& run, const Progress& progress);

}  // namespace cpufree
