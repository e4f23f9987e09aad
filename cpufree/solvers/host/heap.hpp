// The symmetric memory of a System, the same on every engine: the channels, which every launch
// starts from zero, then the vectors that travel. Solves of several columns have one of their own.
#pragma once

#include <cstddef>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/device/channel.hpp"
#include "cpufree/device/reduction.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/solvers/args.hpp"
#include "cpufree/solvers/host/setup.hpp"

namespace cpufree {

// Lengths of what PEs exchange in a cycle of multigrid.
struct LevelsExtent {
  std::vector<std::size_t> rows_and_ghosts;  // of each level, most of a PE
  std::vector<std::size_t> packets;  // of each level, for all exchanges; 0: by flags. Empty: all 0
  std::size_t gathered = 0;  // rows of the first level that all PEs have whole; 0: there is none
};

// What blocks exchange on a level of multigrid: an arrival board, and vectors.
struct LevelHeap {
  Symmetric<Flag> flags;
  Symmetric<SmallPacket> packets;  // none: the level has flags
  Symmetric<float> scratch[2];
};

template <class T>
struct Heap {
  Symmetric<Flag> leave;  // for engines that tell PEs to leave through their memory
  Symmetric<Flag> flags;
  Symmetric<Flag> factor_flags;  // of a preconditioner that has factors
  Symmetric<Packet> slots, halo[3];
  Symmetric<double> node_in, node_out;  // of NodeBoard, where there are several nodes
  Symmetric<Flag> node_flags;
  Symmetric<T> p, scratch[2];
  std::vector<LevelHeap> levels;
  Symmetric<Flag> gather_flags;  // of the level that is gathered
  Symmetric<float> gathered;
  std::size_t channel_bytes = 0;  // of the beginning
  std::size_t bytes = 0;
  bool packets = false;

  Heap() = default;
  // `most_packets`: of a PE, for one vector of one column. 0: halos are stores.
  Heap(int pes, int blocks, const Extent& extent, std::size_t most_packets, int nodes = 1,
       bool factors = false, std::size_t columns = 1, const LevelsExtent& cycle = {})
      : levels(cycle.rows_and_ghosts.size()), packets(most_packets > 0) {
    SymmetricLayout layout;
    leave = layout.reserve<Flag>(1);
    flags = layout.reserve<Flag>(at(arrival_flag_count(pes, blocks, nodes)));
    if (factors) factor_flags = layout.reserve<Flag>(at(arrival_flag_count(pes, blocks, 1)));
    const int sums = most_sums(static_cast<int>(columns));
    slots = layout.reserve<Packet>(at(reduce_slot_count(pes, blocks, sums)));
    if (packets)
      for (auto& array : halo) array = layout.reserve<Packet>(most_packets * columns);
    if (nodes > 1) {
      node_in = layout.reserve<double>(at(node_in_count(nodes)));
      node_out = layout.reserve<double>(at(node_out_count()));
      node_flags = layout.reserve<Flag>(at(node_flag_count(nodes)));
    }
    for (LevelHeap& level : levels)
      level.flags = layout.reserve<Flag>(at(arrival_flag_count(pes, blocks, 1)));
    for (std::size_t l = 0; l < cycle.packets.size(); ++l)
      levels[l].packets = layout.reserve<SmallPacket>(cycle.packets[l]);
    if (cycle.gathered > 0)
      gather_flags = layout.reserve<Flag>(at(arrival_flag_count(pes, blocks, 1)));
    channel_bytes = layout.bytes();
    p = layout.reserve<T>(extent.rows_and_ghosts * columns);
    for (auto& array : scratch) array = layout.reserve<T>(extent.rows_and_ghosts * columns);
    for (std::size_t l = 0; l < levels.size(); ++l)
      for (auto& array : levels[l].scratch) array = layout.reserve<float>(cycle.rows_and_ghosts[l]);
    if (cycle.gathered > 0) gathered = layout.reserve<float>(cycle.gathered);
    bytes = layout.bytes();
  }

  NodeBoard node_board(std::byte* base) const {
    return {node_in.at(base), node_out.at(base), node_flags.at(base)};
  }

  // Points a PE's arguments at its heap.
  template <class M, int K>
  void place(SolveArgs<M, K>& args, std::byte* base) const {
    using Values = ValuesOf<T, K>;
    args.slots = slots.at(base);
    args.flags = flags.at(base);
    args.factor_flags = factor_flags.at(base);
    args.vectors.p = reinterpret_cast<Values*>(p.at(base));
    for (int k = 0; k < 2; ++k)
      args.vectors.scratch[k] = reinterpret_cast<Values*>(scratch[k].at(base));
    for (int k = 0; k < 3; ++k) args.halo[k] = packets ? halo[k].at(base) : nullptr;
  }
};

}  // namespace cpufree
