#include "cpufree/programs/cpu/cpu_program.hpp"

#include "cpufree/base/index.hpp"
#include "cpufree/launch/cpu/run.hpp"
#include "cpufree/launch/cpu/trace.hpp"

namespace cpufree {

ProgramOutcome run_cpu_program(ProgramKernel kernel, const ProgramPlace& place,
                               const programs::Args& args, double wait_limit,
                               const Progress& progress) {
  const int pes = static_cast<int>(place.heaps.size());
  const OwnPes own = OwnPes::of(place.team, pes);
  cpu_threads::LaunchConfig config;
  config.pes = pes;
  config.blocks = place.blocks;
  config.first = own.first;
  config.here = own.here;
  config.heaps = place.heaps.data();
  if (place.team != nullptr)
    config.leave_flag = reinterpret_cast<Flag*>(place.heaps[at(own.first)] + place.leave);
  Limits limits;
  limits.wait_limit = wait_limit;
  ProgramOutcome outcome;
  const Progress turned = [&](std::int64_t turn, double) {
    if (progress && !outcome.stopped && !progress(turn, 0.0)) outcome.stopped = true;
    return !outcome.stopped;
  };
  std::optional<CpuTrace> trace;
  if (place.trace) trace.emplace(*place.trace, config, place.team);
  const Progress tell = trace ? trace->watched(turned) : turned;
  const auto run_block = [&](cpu_threads::Port& port) {
    programs::Args mine = args;
    if (trace) mine.traces = trace->rings(port.pe() - own.first);
    kernel(port, mine, place.heaps[at(port.pe())]);
  };
  const ThreadsRun run = launch_traced(
      trace, [&] { return run_on_threads(config, limits, run_block, tell, place.team); });
  outcome.seconds = run.seconds;
  if (trace) outcome.trace = trace->report(place.team);
  return outcome;
}

}  // namespace cpufree
