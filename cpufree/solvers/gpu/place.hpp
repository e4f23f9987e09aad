// Which PEs of a System are in this process, and on which GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpufree/device/node_table.hpp"
#include "cpufree/distributed/team.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// What layouts go by of the GPU of a PE.
struct GpuFacts {
  int multiprocessors = 132;
  int sharing = 1;                         // PEs that are on it
  std::size_t shared_bytes = (227 << 10);  // of a block, on chip
  double page_bytes = 2 << 20;             // in which its driver gives memory
};

// Which PEs of a System are in this process, on which devices, and which of all are a node.
struct GpuPlace {
  SystemSpec spec;
  OwnPes own;
  std::vector<int> devices;    // of the PEs of this process
  std::vector<GpuFacts> gpus;  // likewise
  NodeTable nodes;

  Team* team() const { return spec.team.get(); }  // null: all PEs are in this process
  bool several_nodes() const { return nodes.count() > 1; }

  // Of the values of all processes.
  template <class V>
  V most(const char* what, V mine) const {
    return team() == nullptr ? mine : cpufree::most(*team(), what, mine);
  }
  template <class V>
  V least(const char* what, V mine) const {
    return team() == nullptr ? mine : cpufree::least(*team(), what, mine);
  }
  template <class V>
  std::vector<V> join(const char* what, const std::vector<V>& mine) const {
    return team() == nullptr ? mine : cpufree::join(*team(), what, mine);
  }
};

// For a matrix of N rows, whose values have `value_bytes`. Throws InvalidInput, Unsupported,
// EngineError.
GpuPlace place_on_gpus(const SystemSpec& spec, std::int64_t rows, std::size_t value_bytes);

}  // namespace cpufree
