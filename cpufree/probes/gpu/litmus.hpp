// The litmus test of what goes between nodes (probes/litmus.hpp), by all processes of a team.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cpufree/distributed/team.hpp"
#include "cpufree/engines/remote/library.hpp"

namespace cpufree {

struct LitmusSpec {
  std::shared_ptr<Team> team;
  remote::Choice library;
  std::string kernels;  // path of those that call it
  int gpu = 0;
  int node_size = 0;  // PEs that are treated as a node; 0: as the library says
  double wait_limit = 20.0;
};

struct Litmus {
  int nodes = 1;  // 1: nothing goes between nodes, and nothing was sent
  std::int64_t messages = 0;
  std::int64_t wrong = 0;  // values that were not there when their flag was
};

// All members call it together; each gets the numbers of all. Throws InvalidInput, Unsupported,
// OutOfMemory, WaitTimeout, EngineError.
Litmus run_litmus(const LitmusSpec& spec);

}  // namespace cpufree
