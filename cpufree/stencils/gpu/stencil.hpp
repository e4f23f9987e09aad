// Stencils on the GPU engine.
#pragma once

#include <memory>

#include "cpufree/stencils/host/stencil.hpp"

namespace cpufree {

// A problem laid out on GPUs, to be run more than once: on all of them, or with a team on that of
// this process, where all members make the same calls.
template <class T>
class GpuStencil {
 public:
  // The grid has points to update, and the spec is checked. Keeps nothing of the problem.
  GpuStencil(const StencilProblem<T>& problem, const StencilSpec& spec, const StencilRun& run);
  ~GpuStencil();
  GpuStencil(GpuStencil&&) noexcept;

  // Begins with the first values; where they stay in memory, with those that the last run left.
  StencilResult run(const Progress& progress);
  // Puts the values where the problem has room for them, of which it reads nothing else.
  void download(const StencilProblem<T>& problem) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// run_stencil for grids with points to update, and a checked spec.
template <class T>
StencilResult run_cuda_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                               const StencilRun& run, const Progress& progress);

}  // namespace cpufree
