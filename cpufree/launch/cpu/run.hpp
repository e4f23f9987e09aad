// Runs one kernel on all threads of the CPU engine to its end, listening to the host meanwhile.
#pragma once

#include <functional>

#include "cpufree/distributed/team.hpp"
#include "cpufree/engines/cpu_threads/launch.hpp"
#include "cpufree/launch/engine.hpp"

namespace cpufree {

struct ThreadsRun {
  double seconds = 0.0;  // from the first thread's start to the last one's end
  int disturbances = 0;  // how often a thread was found without a core, as others ran there
};

// The kernel asks for notes whenever it reduces; `progress` is called every 50 ms, with the
// iteration reached and the square of the residual's norm. Throws WaitTimeout, EngineError, and
// what `progress` throws, each after all threads have ended. A single block runs on the calling
// thread.
//
// With a team, each process runs its own PE; all start once the channels of all are clear, and
// WaitTimeout, thrown in all of them, tells of the blocks of all.
ThreadsRun run_on_threads(cpu_threads::LaunchConfig config, const Limits& limits,
                          const std::function<void(cpu_threads::Port&)>& kernel,
                          const Progress& progress, Team* team = nullptr);

}  // namespace cpufree
