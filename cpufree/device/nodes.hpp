// PEs that do not all reach one another's memory by loads and stores. Those that do are a node: the
// GPUs of a machine, say. Between nodes there is one operation, `put_signal` (RemotePort,
// port.hpp).
#pragma once

#include <cstdint>

#include "cpufree/base/remote_run.hpp"
#include "cpufree/device/types.hpp"

namespace cpufree {

// Which PE is in which node. Nodes are numbered in the order of their first PEs, and so are the PEs
// of a node: `place` is a PE's number there.
struct Nodes {
  std::int32_t count = 1;
  const std::int32_t* of_pe = nullptr;  // node of each PE
  const std::int32_t* place = nullptr;  // of each PE in its node
  const std::int32_t* first = nullptr;  // count + 1: where a node's PEs begin in `pes`
  const std::int32_t* pes = nullptr;    // node after node

  CPUFREE_FN int size(int node) const { return first[node + 1] - first[node]; }
  CPUFREE_FN int pe(int node, int at) const { return pes[first[node] + at]; }
};

// What a block sends to other nodes.
struct RemoteRuns {
  const RemoteRun* runs = nullptr;
  std::int32_t count = 0;
};

// Where nodes tell one another their sums (node_reduce.hpp). Symmetric.
struct NodeBoard {
  double* in = nullptr;   // two parities x nodes x kNodeValues
  double* out = nullptr;  // two parities x kNodeValues
  Flag* flags = nullptr;  // two parities x nodes
};

// What a port with remote PEs knows of them: one for each PE.
struct Remote {
  Nodes nodes;
  NodeBoard board;
  const RemoteRuns* runs = nullptr;  // one per block
};

}  // namespace cpufree
