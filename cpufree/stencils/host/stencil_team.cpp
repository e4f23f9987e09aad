#include "cpufree/stencils/host/stencil_team.hpp"

#include <algorithm>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree {

void require_all_pes(const StencilSpec& spec, const StencilLayout& layout) {
  require(layout.plan.pes == spec.pes, "the grid has rows for " + std::to_string(layout.plan.pes) +
                                           " PEs, and there are " + std::to_string(spec.pes) +
                                           " processes, one for each: start no more than it has");
}

namespace {
struct End {
  StencilOutcome outcome;
  double update = 0.0, seconds = 0.0;
};
}  // namespace

void share_end(Team& team, StencilResult& result) {
  const auto ends = each(team, "outcome", End{result.outcome, result.update, result.seconds});
  result.outcome = ends.front().outcome;
  for (const End& end : ends) {
    result.update = largest_update({end.update}, result.update);
    result.seconds = std::min(result.seconds, end.seconds);
  }
}

template <class T>
void deliver(const StencilProblem<T>& problem, Team& team, const StencilRun& run,
             const Tiling& tiling, const std::vector<T>& mine) {
  const auto all =
      run.gather ? team.gather("gathering the grid", bytes_of(mine)) : std::vector<Bytes>();
  if (all.empty()) {
    std::ranges::copy(mine, problem.room(span_of(tiling.tiles[at(team.rank())], false)));
    return;
  }
  T* const out = problem.room(all_of(problem.grid));
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const auto values = values_of<T>(all[pe]);
    const GridSpan box = span_of(tiling.tiles[pe], false);
    if (values.size() != at(box.points()))
      throw EngineError("rank " + std::to_string(pe) + " has given " +
                        std::to_string(values.size()) + " values of the grid, not the " +
                        std::to_string(box.points()) + " that it owns");
    box.each(problem.grid, [&](std::size_t from, std::size_t to) { out[to] = values[from]; });
  }
}

template void deliver(const StencilProblem<float>&, Team&, const StencilRun&, const Tiling&,
                      const std::vector<float>&);
template void deliver(const StencilProblem<double>&, Team&, const StencilRun&, const Tiling&,
                      const std::vector<double>&);

}  // namespace cpufree
