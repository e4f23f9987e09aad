// How a grid is divided, and how often its tiles talk: decided from what the engine says of itself.
#pragma once

#include "cpufree/stencils/host/stencil.hpp"

namespace cpufree {

// What an engine costs: seconds, bytes. For a simple model: computing, moving and exchanging do not
// overlap.
struct StencilCosts {
  FaceCost face;
  double point = 0.0;             // to compute a point whose neighbours are near
  double byte = 0.0;              // to move a byte between memory and a block, all blocks at work
  double exchange = 0.0;          // from the end of a sweep to the halo being there
  double near_bytes = 0.0;        // memory near a block: what fits needs not be moved
  double front_points = 4096.0;   // of a front: enough to forget what it costs
  std::size_t fast_bytes = 0;     // memory of a block\'s own, for tiles that fit
  std::int64_t most_packets = 0;  // of a tile, in an exchange
};

struct StencilLayout {
  StencilPlan plan;
  Tiling tiling;
  bool packets = false;
};

// Divides the grid for the PEs and `blocks` blocks each, and chooses what the spec leaves open.
// Throws InvalidInput.
StencilLayout lay_out_stencil(const Grid& grid, const StencilSpec& spec, const StencilRun& run,
                              int blocks, std::size_t value_bytes, bool source,
                              const StencilCosts& costs);

// Whether values of a grid of three dimensions stay in registers on N GPUs, each with
// `blocks` multiprocessors like those of an H200; else they stay in memory (registers_3d_plan.cpp).
bool fits_registers_3d(const Grid& grid, int pes, int blocks, std::size_t value_bytes, bool source);

// Iterations between two checks, where an iteration takes `seconds`.
std::int64_t check_period(const StencilRun& run, double seconds, int layers);

// Fills in what a plan tells of its tiling. Returns the most points that a tile receives.
std::int64_t describe_tiling(const StencilSpec& spec, StencilLayout& layout);

// The kernel's arguments that are the same on all PEs.
template <class T>
JacobiArgs<T> arguments_of(const StencilLayout& layout, const StencilRun& run) {
  JacobiArgs<T> args;
  args.iterations = run.iterations;
  args.check_every = layout.plan.check_every;
  args.tolerance = run.tolerance;
  args.layers = layout.plan.layers;
  args.in_fast_memory = layout.plan.in_fast_memory;
  return args;
}

// The largest of the threads' updates and of `largest`; NaN where one of them is.
double largest_update(const std::vector<double>& updates, double largest);

// Throw InvalidInput where a number is out of its range.
void check(const StencilSpec& spec);
void check(const StencilRun& run);
// Throws Unsupported for a study that is not there, InvalidInput for one that would not end.
void check_study(const StencilSpec& spec, const StencilRun& run, bool source);

}  // namespace cpufree
