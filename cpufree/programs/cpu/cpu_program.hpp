// Runs a generated kernel on the CPU engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/launch/engine.hpp"
#include "cpufree/launch/live_waits.hpp"
#include "cpufree/programs/args.hpp"
#include "cpufree/trace/report.hpp"

namespace cpufree {

namespace cpu_threads {
class Port;
}

// The one function that the shared object of a program has, "cpufree_program".
using ProgramKernel = void (*)(cpu_threads::Port& port, const programs::Args& args,
                               std::byte* heap);

// Where the PEs of a program are.
struct ProgramPlace {
  std::vector<std::byte*> heaps;  // of all PEs
  int blocks = 1;                 // of each
  Team* team = nullptr;           // a PE in each of its processes; null: all in this one
  std::int64_t leave = 0;         // with a team, the offset of a flag in each heap, 0 at the begin
  std::optional<TraceSpec> trace = {};  // none: the run is not traced
};

// Runs a kernel on threads to its end; returns the seconds that it took. Throws WaitTimeout,
// EngineError, and what `progress` throws. The kernel leaves early where `progress` returns false;
// `stopped` tells, of this process.
struct ProgramOutcome {
  double seconds = 0.0;
  bool stopped = false;
  std::optional<TraceReport> trace = {};  // of all PEs
};
ProgramOutcome run_cpu_program(ProgramKernel kernel, const ProgramPlace& place,
                               const programs::Args& args, double wait_limit,
                               const Progress& progress);

}  // namespace cpufree
