// Runs a generated kernel on the CPU engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/programs/args.hpp"
#include "cpufree/systems/system.hpp"

namespace cpufree {

// The one function that the shared object of a program has, "cpufree_program".
using ProgramKernel = void (*)(cpu_threads::Port& port, const programs::Args& args,
                               std::byte* heap);

// Runs a kernel on `blocks` threads for each heap, to its end; returns the seconds that it took.
// Throws WaitTimeout, EngineError, and what `progress` throws. The kernel leaves early where
// `progress` returns false; `stopped` tells.
struct ProgramOutcome {
  double seconds = 0.0;
  bool stopped = false;
};
ProgramOutcome run_cpu_program(ProgramKernel kernel, const std::vector<std::byte*>& heaps,
                               const programs::Args& args, double wait_limit,
                               const Progress& progress, int blocks = 1);

}  // namespace cpufree
