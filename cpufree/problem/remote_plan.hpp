// Halos between PEs that do not reach one another's memory: a block collects what a PE of another
// node reads behind the ghosts of its own PE's vector, and sends it in one piece.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/base/remote_run.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// What one PE sends to other nodes.
struct RemotePlan {
  std::vector<std::vector<RemoteRun>> runs;  // [block]: by increasing PE
  std::int32_t staged = 0;                   // entries that a vector has behind its ghosts
};

// Makes the plan of `pe`, and turns what belongs to it over to it: destinations on PEs of other
// nodes become entries of the PE's own vector, and these PEs are no longer among those that blocks
// notify. `blocks` are the PE's, of make_block_plans; node[k] is the node of PE k. Who awaits whom
// stays as it is. Throws EngineError where what a block sends to a PE does not land side by side.
template <class T>
RemotePlan make_remote_plan(LocalSystem<T>& local, std::vector<BlockPlan>& blocks, std::int32_t pe,
                            std::span<const std::int32_t> node);

}  // namespace cpufree
