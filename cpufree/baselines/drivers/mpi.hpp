// The baseline of MPI: one process for each GPU, all of which make the same calls.
#pragma once

#include <string>

#include "cpufree/baselines/drivers/solvers.hpp"

namespace cpufree {

// This process among those that mpirun has started. The first call starts MPI; it ends with the
// process.
struct MpiPlace {
  int rank = 0;
  int size = 1;
};
MpiPlace mpi_place();

// What rank 0 says, to all of them.
std::string mpi_broadcast(const std::string& text);

// Ends all processes: for errors after which they no longer make the same calls.
[[noreturn]] void mpi_abort(int status);

}  // namespace cpufree
