// Simulation of a graph, event by event.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/simulate/graph.hpp"

namespace cpufree::simulate {

struct Run {
  Picoseconds end = 0;
  std::vector<Picoseconds> round_end;  // when the last operation of each round has ended
  std::int64_t operations = 0;
  std::int64_t spilled = 0;       // entries of network cards that found the table full
  std::int64_t most_entries = 0;  // of one card at once

  // Where asked for: by round and operation. `cause`: the number, as round * size + operation, of
  // what it waited for last, or -1; a resource that was taken counts as what took it.
  std::vector<Picoseconds> start, finish;
  std::vector<std::int64_t> cause;
};

// Throws InvalidInput for what is not a graph, and Deadlock where it cannot end. The same graph
// gives the same run, to the picosecond.
Run run(const Graph& graph, bool record);

}  // namespace cpufree::simulate
