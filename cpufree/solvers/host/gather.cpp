#include "cpufree/solvers/host/gather.hpp"

#include <limits>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"

namespace cpufree {

template <class T>
Gathering::Gathering(std::shared_ptr<Team> team, const HaloPlan<T>& plan)
    : team_(std::move(team)), rows_(plan.local.size()) {
  for (std::size_t pe = 0; pe < rows_.size(); ++pe)
    if (team_->rank() == 0 || pe == at(team_->rank())) rows_[pe] = plan.local[pe].global_row;
}

template <class T>
void Gathering::gather(std::span<T> x, bool at_first) const {
  const auto& own = rows_[at(team_->rank())];
  std::vector<T> mine;
  mine.reserve(own.size());
  for (const std::int32_t row : own) mine.push_back(x[at(row)]);
  const auto all = at_first ? team_->gather("gathering x", bytes_of(mine)) : std::vector<Bytes>();
  if (all.empty()) {
    std::ranges::fill(x, std::numeric_limits<T>::quiet_NaN());
    for (std::size_t i = 0; i < own.size(); ++i) x[at(own[i])] = mine[i];
    return;
  }
  for (std::size_t pe = 1; pe < rows_.size(); ++pe) {
    const auto values = values_of<T>(all[pe]);
    for (std::size_t i = 0; i < values.size(); ++i) x[at(rows_[pe][i])] = values[i];
  }
}

Given given_in_all(Team& team, const Given& mine) {
  Given all;
  for (const Given& part : each(team, "largest entry of b", mine)) {
    all.largest = std::max(all.largest, part.largest);
    all.guess = all.guess || part.guess;
  }
  return all;
}

namespace {
struct End {
  Outcome outcome;
  double seconds = 0.0;
  std::int32_t finite = 1;
};
}  // namespace

void share_end(Team& team, SolveResult& result, bool& finite) {
  const auto ends = each(team, "outcome", End{result.outcome, result.seconds, finite ? 1 : 0});
  result.outcome = ends.front().outcome;
  for (const End& end : ends) {
    result.seconds = std::min(result.seconds, end.seconds);
    finite = finite && end.finite != 0;
  }
  result.history = join(team, "history", team.rank() == 0 ? result.history : std::vector<double>{});
}

double sum(Team& team, const char* what, double mine) {
  const auto all = each(team, what, mine);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

template Gathering::Gathering(std::shared_ptr<Team>, const HaloPlan<float>&);
template Gathering::Gathering(std::shared_ptr<Team>, const HaloPlan<double>&);
template void Gathering::gather(std::span<float>, bool) const;
template void Gathering::gather(std::span<double>, bool) const;

}  // namespace cpufree
