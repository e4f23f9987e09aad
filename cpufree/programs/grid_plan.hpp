// What kernels of many blocks for each PE (grid_runtime.hpp) know of their heaps: plain data.
#pragma once

#include <cstdint>

#include "cpufree/device/types.hpp"

namespace cpufree::programs {

// Offsets in the heap, and what all PEs know.
struct GridPlan {
  std::int64_t rows;                     // of the longest field
  std::int64_t counter, flags, packets;  // one; two; grid_packets()
  std::int64_t stop;                     // a flag: the host asks to leave
  bool ring;                             // the last PE and the first one are neighbours
  int pes = 0;  // known beforehand: compilers leave out what one PE does not need; 0: the port's
};

// Where the values of a field, by number, begin in the heap.
struct FieldPlace {
  std::int64_t offset;
  int number;
};

// Packets of reductions: two slots of two words of each block of all PEs.
CPUFREE_FN std::int64_t grid_packets(int pes, int blocks) { return std::int64_t{4} * pes * blocks; }

// Which of its rows a PE stores to its neighbours' ghosts, and where from there.
struct GhostRows {
  std::int64_t low = 0;       // rows before this one to the PE below
  std::int64_t high = 0;      // rows from this one on to the PE above
  std::int64_t to_below = 0;  // values from the point to its ghost
  std::int64_t to_above = 0;
};

}  // namespace cpufree::programs
