#include "cpufree/problem/remote_plan.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {

// What the boundary rows `rows` send to PE `to`, collected from entry `from` of the vector of `pe`.
template <class T>
RemoteRun collect(LocalSystem<T>& local, RowRange rows, std::int32_t pe, std::int32_t to,
                  std::int32_t from) {
  RemoteRun run{to, 0, from, 0};
  for (std::int32_t i = rows.begin - local.interior; i < rows.end - local.interior; ++i)
    for (std::int64_t d = local.send_ptr[at(i)]; d < local.send_ptr[at(i) + 1]; ++d) {
      Destination& destination = local.destinations[at(d)];
      if (destination.pe != to) continue;
      if (run.count == 0) run.to = destination.index;
      if (destination.index != run.to + run.count)
        throw EngineError("what a block sends to PE " + std::to_string(to) +
                          " does not land side by side: the halo plan is not sorted");
      destination = {pe, from + run.count++};
    }
  return run;
}

}  // namespace

template <class T>
RemotePlan make_remote_plan(LocalSystem<T>& local, std::vector<BlockPlan>& blocks, std::int32_t pe,
                            std::span<const std::int32_t> node) {
  RemotePlan plan;
  const std::int32_t first = local.rows() + local.ghosts;
  // What all blocks send is no more than all destinations.
  require(
      first + static_cast<std::int64_t>(local.destinations.size()) <=
          std::numeric_limits<std::int32_t>::max(),
      "a PE's rows, its ghosts and what it sends are too many for 32-bit numbers; use more PEs");
  const auto elsewhere = [&](std::int32_t other) { return node[at(other)] != node[at(pe)]; };
  for (BlockPlan& block : blocks) {
    auto& runs = plan.runs.emplace_back();
    for (const std::int32_t to : block.notify) {
      if (!elsewhere(to)) continue;
      runs.push_back(collect(local, block.boundary, pe, to, first + plan.staged));
      plan.staged += runs.back().count;
    }
    std::erase_if(block.notify, elsewhere);
  }
  return plan;
}

template RemotePlan make_remote_plan(LocalSystem<float>&, std::vector<BlockPlan>&, std::int32_t,
                                     std::span<const std::int32_t>);
template RemotePlan make_remote_plan(LocalSystem<double>&, std::vector<BlockPlan>&, std::int32_t,
                                     std::span<const std::int32_t>);

}  // namespace cpufree
