#include "cpufree/stencils/cpu/cpu_stencil.hpp"

#include <algorithm>

#include "cpufree/base/parallel.hpp"
#include "cpufree/launch/cpu/run.hpp"
#include "cpufree/launch/cpu/trace.hpp"
#include "cpufree/plugins/cpu/find_kernel.hpp"
#include "cpufree/stencils/host/host_stencil.hpp"
#include "cpufree/stencils/host/stencil_plan.hpp"
#include "cpufree/stencils/host/stencil_team.hpp"

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

// As many blocks as there are cores, where there is work for them.
int blocks_for(const Grid& grid, const StencilSpec& spec) {
  int blocks = spec.blocks;
  if (blocks == 0) {
    const int cores = spec.cores > 0 ? spec.cores : available_cores();
    const std::int64_t useful = grid.updated() / kPointsPerBlock / spec.pes;
    blocks = static_cast<int>(std::clamp<std::int64_t>(useful, 1, std::max(1, cores / spec.pes)));
  }
  return spec.team ? least(*spec.team, "number of blocks", blocks) : blocks;
}

}  // namespace

template <class T>
StencilResult run_cpu_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                              const StencilRun& run, const Progress& progress) {
  const Grid& grid = problem.grid;
  const bool source = !problem.source.empty();
  Team* const team = spec.team.get();
  const StencilLayout layout = lay_out_stencil(grid, spec, run, blocks_for(grid, spec), sizeof(T),
                                               source, costs_of(sizeof(T)));
  if (team != nullptr) require_all_pes(spec, layout);
  HostStencil<T> stencil(problem, layout, run, team);
  const auto run_block = find_cpu_stencil_kernel<T>(grid, source, spec.study);
  cpu_threads::LaunchConfig config;
  config.pes = layout.plan.pes;
  config.blocks = layout.plan.blocks;
  config.first = stencil.own().first;
  config.here = stencil.own().here;
  config.heaps = stencil.heaps();
  std::optional<CpuTrace> trace;
  if (spec.study == Study::trace) {
    trace.emplace(spec.trace, config, team);
    for (int k = 0; k < config.here; ++k) stencil.args(config.first + k).traces = trace->rings(k);
  }
  if (team != nullptr) {
    config.leave_flag = stencil.leave_flag();
    // Reading a part of the grid takes each its time, and a kernel that runs waits for the others.
    barrier(*team, "grids are there");
  }
  const Progress tell = trace ? trace->watched(progress) : progress;
  const ThreadsRun ran = launch_traced(trace, [&] {
    return run_on_threads(
        config, run.limits, [&](ThreadPort& port) { run_block(port, stencil.args(port.pe())); },
        tell, team);
  });
  StencilResult result = stencil.result(ran.seconds);
  if (trace) result.trace = trace->report(team);
  if (team != nullptr) {
    share_end(*team, result);
    deliver(problem, *team, run, layout.tiling, stencil.values());
  }
  return result;
}

template StencilResult run_cpu_stencil(const StencilProblem<float>&, const StencilSpec&,
                                       const StencilRun&, const Progress&);
template StencilResult run_cpu_stencil(const StencilProblem<double>&, const StencilSpec&,
                                       const StencilRun&, const Progress&);

}  // namespace cpufree
