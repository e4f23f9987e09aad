#include "cpufree/run/cpu_stencil.hpp"

#include <algorithm>

#include "cpufree/base/parallel.hpp"
#include "cpufree/run/cpu_run.hpp"
#include "cpufree/run/host_stencil.hpp"
#include "cpufree/run/stencil_plan.hpp"
#include "cpufree/stencils/jacobi.hpp"

namespace cpufree {

namespace {

using ThreadPort = cpu_threads::Port;

// A block with fewer points costs more in waiting than it saves in work.
constexpr std::int64_t kPointsPerBlock = 8192;

// Measured on two cores of an EPYC 9004 (Zen 4): see docs/design/stencils.md.
StencilCosts costs_of(std::size_t value_bytes) {
  StencilCosts costs;
  costs.face.axis[2] = 8.0;  // single points instead of rows
  costs.point = value_bytes == 4 ? 0.2e-9 : 0.4e-9;
  costs.byte = 1.0 / 10e9;
  costs.exchange = 1e-6;
  costs.near_bytes = 2.5e6;  // a core's share of the caches
  costs.most_packets = 0;    // threads share caches: plain stores are quicker
  return costs;
}

template <class T>
using Kernel = void (*)(ThreadPort&, const JacobiArgs<T>&);

template <class T>
Kernel<T> kernel_for(const Grid& grid, bool source) {
  if (grid.dims == 2)
    return source ? jacobi_kernel<2, true, ThreadPort, T> : jacobi_kernel<2, false, ThreadPort, T>;
  return source ? jacobi_kernel<3, true, ThreadPort, T> : jacobi_kernel<3, false, ThreadPort, T>;
}

}  // namespace

template <class T>
StencilResult run_cpu_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                              const StencilRun& run, const Progress& progress) {
  const Grid& grid = problem.grid;
  const bool source = !problem.source.empty();
  int blocks = spec.blocks;
  if (blocks == 0) {
    const std::int64_t useful = grid.updated() / kPointsPerBlock / spec.pes;
    blocks = static_cast<int>(
        std::clamp<std::int64_t>(useful, 1, std::max(1, available_cores() / spec.pes)));
  }
  const StencilLayout layout =
      lay_out_stencil(grid, spec, run, blocks, sizeof(T), source, costs_of(sizeof(T)));
  HostStencil<T> stencil(problem, layout, run);
  const auto kernel = kernel_for<T>(grid, source);
  cpu_threads::LaunchConfig config;
  config.pes = layout.plan.pes;
  config.blocks = layout.plan.blocks;
  config.heaps = stencil.heaps();
  const double seconds = run_on_threads(
      config, run.limits, [&](ThreadPort& port) { kernel(port, stencil.args(port.pe())); },
      progress);
  return stencil.result(seconds);
}

template StencilResult run_cpu_stencil(const StencilProblem<float>&, const StencilSpec&,
                                       const StencilRun&, const Progress&);
template StencilResult run_cpu_stencil(const StencilProblem<double>&, const StencilSpec&,
                                       const StencilRun&, const Progress&);

}  // namespace cpufree
