#include "cpufree/simulate/waits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cpufree/simulate/edges.hpp"

namespace cpufree::simulate {
namespace {

struct Blocked {
  const Graph& graph;
  std::span<const std::int32_t> missing;

  bool operator()(Instance one) const {
    return one.round >= 0 &&
           missing[static_cast<std::size_t>(one.round * graph.size() + one.operation)] > 0;
  }
};

// What `one` waits for and has not begun either; nothing where that is its network card.
std::optional<Instance> blocker(const Edges& before, const Blocked& blocked, Instance one) {
  for (const End& end : before.of(one.operation)) {
    const Instance other{one.round - ((end.edge & kNextRound) != 0 ? 1 : 0), end.operation};
    if (blocked(other)) return other;
  }
  return {};
}

}  // namespace

WaitChain find_waits(const Graph& graph, std::span<const std::int32_t> missing) {
  const Edges before(graph.size(), graph.to, graph.from, graph.edge);
  const Blocked blocked{graph, missing};
  const auto first = std::ranges::find_if(missing, [](std::int32_t count) { return count > 0; });
  const std::int64_t number = first - missing.begin();
  WaitChain found;
  // Each step adds an operation that has not been there, so the loop ends.
  std::map<std::pair<std::int64_t, std::int32_t>, std::int64_t> place;
  std::optional<Instance> next =
      Instance{number / graph.size(), static_cast<std::int32_t>(number % graph.size())};
  while (next) {
    const auto [there, fresh] = place.try_emplace({next->round, next->operation},
                                                  static_cast<std::int64_t>(found.chain.size()));
    if (!fresh) {
      found.back_to = there->second;
      break;
    }
    found.chain.push_back(*next);
    next = blocker(before, blocked, *next);
  }
  return found;
}

}  // namespace cpufree::simulate
