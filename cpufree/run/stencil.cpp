#include "cpufree/run/stencil.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/reference/jacobi.hpp"
#include "cpufree/run/cpu_stencil.hpp"
#include "cpufree/run/cuda_stencil.hpp"
#include "cpufree/run/stencil_plan.hpp"

namespace cpufree {

namespace {

template <class T>
void check(const StencilProblem<T>& problem) {
  check(problem.grid);
  const std::size_t points = at(problem.grid.points());
  require(problem.start.size() == points && problem.out.size() == points &&
              (problem.source.empty() || problem.source.size() == points),
          "the grid has " + std::to_string(points) +
              " points, and as many values must be given for the start, the result and the source");
}

// The mean square of the updates, as users are told.
Progress per_point(const Progress& progress, std::int64_t points) {
  if (!progress) return {};
  return [&progress, points](std::int64_t iteration, double squares) {
    return progress(iteration, std::sqrt(squares / static_cast<double>(points)));
  };
}

}  // namespace

template <class T>
StencilResult run_stencil(const StencilProblem<T>& problem, const StencilSpec& spec,
                          const StencilRun& run, const Progress& progress) {
  const Grid& grid = problem.grid;
  check(problem);
  check(spec);
  check(run);
  check_study(spec, run, !problem.source.empty());
  if (grid.updated() > 0 && run.iterations > 0) {
    const Progress tell = per_point(progress, grid.updated());
    return spec.engine == Engine::cuda_p2p ? run_cuda_stencil(problem, spec, run, tell)
                                           : run_cpu_stencil(problem, spec, run, tell);
  }
  std::ranges::copy(problem.start, problem.out.begin());
  StencilResult result;  // nothing is there to be updated: every iteration leaves the grid as it is
  result.outcome.iterations = run.iterations;
  if (run.tolerance >= 0.0 && run.iterations > 0)
    result.outcome = {std::min<std::int64_t>(run.iterations, 1), 0, 0, StencilReason::converged};
  result.plan.engine = engine_name(spec.engine);
  return result;
}

template <class T>
void run_reference(const StencilProblem<T>& problem, std::int64_t iterations) {
  check(problem);
  require(iterations >= 0, "iterations must not be negative");
  const std::vector<T> start(problem.start.begin(), problem.start.end());
  const T* const source = problem.source.empty() ? nullptr : problem.source.data();
  std::ranges::copy(reference::jacobi(start, source, problem.grid, iterations),
                    problem.out.begin());
}

template void run_reference(const StencilProblem<float>&, std::int64_t);
template void run_reference(const StencilProblem<double>&, std::int64_t);
template StencilResult run_stencil(const StencilProblem<float>&, const StencilSpec&,
                                   const StencilRun&, const Progress&);
template StencilResult run_stencil(const StencilProblem<double>&, const StencilSpec&,
                                   const StencilRun&, const Progress&);

}  // namespace cpufree
