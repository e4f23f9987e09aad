#include "cpufree/run/stencil.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/run/cpu_stencil.hpp"
#include "cpufree/run/stencil_plan.hpp"

namespace cpufree {

template <class T>
StencilResult run_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                          const StencilRun& run, const Progress& progress) {
  const Grid& grid = problem.grid;
  check(grid);
  check(spec);
  check(run);
  const std::size_t points = at(grid.points());
  require(problem.start.size() == points && problem.out.size() == points &&
              (problem.source.empty() || problem.source.size() == points),
          "the grid has " + std::to_string(points) +
              " points, and as many values must be given for the start, the result and the source");
  if (spec.engine != Engine::cpu_threads)
    throw Unsupported(
        "stencils run on the engine cpu_threads only in this version of cpufree: choose that, or "
        "leave the engine out");
  if (grid.updated() > 0 && run.iterations > 0)
    return run_cpu_stencil(problem, spec, run, progress);
  std::ranges::copy(problem.start, problem.out.begin());
  StencilResult result;  // nothing is there to be updated: every iteration leaves the grid as it is
  result.outcome.iterations = run.iterations;
  if (run.tolerance >= 0.0 && run.iterations > 0)
    result.outcome = {std::min<std::int64_t>(run.iterations, 1), 0, 0, StencilReason::converged};
  result.plan.engine = engine_name(spec.engine);
  return result;
}

template StencilResult run_stencil(const StencilProblem<float>&, const StencilSpec&,
                                   const StencilRun&, const Progress&);
template StencilResult run_stencil(const StencilProblem<double>&, const StencilSpec&,
                                   const StencilRun&, const Progress&);

}  // namespace cpufree
