#include "cpufree/simulate/graph.hpp"

#include <limits>
#include <string>

namespace cpufree::simulate {
namespace {

constexpr Picoseconds kLongest = Picoseconds{1} << 60;  // 13 days: sums do not overflow

void check_sizes(const Graph& g) {
  const std::size_t n = g.busy.size();
  require(n < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
          "a round has fewer than 2^31 operations; simulate fewer PEs");
  require(g.resource.size() == n && g.latency.size() == n,
          "resource, busy and latency must be equally long");
  require(g.from.size() == g.to.size() && g.from.size() == g.edge.size(),
          "from, to and edge must be equally long");
  const auto fits = [n](auto list) { return list.empty() || list.size() == n; };
  require(fits(g.role) && g.role.size() == g.operand.size() && g.role.size() == g.nic.size() &&
              g.role.size() == g.threshold.size(),
          "role, operand, nic and threshold must be as long as busy, or empty");
  require(g.rounds >= 1, "a program has at least one round");
  require(g.entries >= 0 && g.spill >= 0, "entries and spill may not be negative");
}

void check_operation(const Graph& g, std::size_t i) {
  const auto name = [i] { return "operation " + std::to_string(i); };
  if (g.busy[i] < 0 || g.busy[i] > kLongest || g.latency[i] < 0 || g.latency[i] > kLongest)
    throw InvalidInput(name() + ": times must be from 0 to 13 days");
  if (g.resource[i] < kNone) throw InvalidInput(name() + ": no such resource");
  if (g.role.empty()) return;
  if (g.role[i] > static_cast<std::uint8_t>(Role::trigger))
    throw InvalidInput(name() + ": no such role");
  if (static_cast<Role>(g.role[i]) == Role::plain) return;
  if (g.operand[i] < 0 || g.operand[i] >= g.size())
    throw InvalidInput(name() + ": what it posts or triggers is not an operation");
  if (g.nic[i] < 0) throw InvalidInput(name() + ": no such network card");
  if (static_cast<Role>(g.role[i]) == Role::post && g.threshold[i] < 0)
    throw InvalidInput(name() + ": a threshold may not be negative");
}

}  // namespace

void check(const Graph& g) {
  check_sizes(g);
  for (std::size_t i = 0; i < g.busy.size(); ++i) check_operation(g, i);
  const auto inside = [n = g.size()](std::int32_t i) { return i >= 0 && i < n; };
  for (std::size_t e = 0; e < g.from.size(); ++e)
    if (!inside(g.from[e]) || !inside(g.to[e]) || g.edge[e] > kEdgeBits)
      throw InvalidInput("edge " + std::to_string(e) + " connects what are not operations");
}

}  // namespace cpufree::simulate
