#include "cpufree/stencils/host/stencil.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/plugins/gpu/engine_table.hpp"
#include "cpufree/reference/jacobi.hpp"
#include "cpufree/stencils/cpu/cpu_stencil.hpp"
#include "cpufree/stencils/host/stencil_plan.hpp"

namespace cpufree {

namespace {

template <class T>
void check(const StencilProblem<T>& problem) {
  check(problem.grid);
  const std::size_t points = at(problem.grid.points());
  const auto whole = [&](const GridValues<T>& values) {
    return !values.in_memory() || values.all().size() == points;
  };
  require(whole(problem.start) && (problem.source.empty() || whole(problem.source)) &&
              (problem.room || problem.out.size() == points),
          "the grid has " + std::to_string(points) +
              " points, and as many values must be given for the start, the result and the source");
}

// The mean square of the updates, as users see it.
Progress per_point(const Progress& progress, std::int64_t points) {
  if (!progress) return {};
  return [&progress, points](std::int64_t iteration, double squares) {
    return progress(iteration, std::sqrt(squares / static_cast<double>(points)));
  };
}

// The result where no point is updated: the first values, which rank 0 owns.
template <class T>
void keep_all(const StencilProblem<T>& problem, const Team* team) {
  const bool mine = team == nullptr || team->rank() == 0;
  const GridSpan box = mine ? all_of(problem.grid) : GridSpan{{0, 0, 0}, {0, 0, 0}};
  T* const out = problem.room ? problem.room(box) : problem.out.data();
  if (mine) std::ranges::copy(problem.start.copy(problem.grid, box), out);
}

template <class T>
StencilResult run_on_engine(const StencilProblem<T>& problem, const StencilSpec& spec,
                            const StencilRun& run, const Progress& progress) {
  if (on_gpus(spec.engine)) return gpu_engine().of<T>().stencil(problem, spec, run, progress);
  return run_cpu_stencil(problem, spec, run, progress);
}

// Runs that look at no update between do so after the last iteration.
void name_overflow(StencilResult& result) {
  StencilReason& reason = result.outcome.reason;
  const bool to_the_end =
      reason == StencilReason::all_done || reason == StencilReason::not_converged;
  if (to_the_end && !std::isfinite(result.update)) reason = StencilReason::not_finite;
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
    StencilProblem<T> here = problem;
    if (!spec.team && problem.room) here.out = {problem.room(all_of(grid)), at(grid.points())};
    StencilResult result = run_on_engine(here, spec, run, tell);
    name_overflow(result);
    return result;
  }
  keep_all(problem, spec.team.get());
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
  const std::vector<T> start = problem.start.copy(problem.grid, all_of(problem.grid));
  const T* const source = problem.source.empty() ? nullptr : problem.source.all().data();
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
