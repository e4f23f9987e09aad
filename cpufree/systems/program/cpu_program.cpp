#include "cpufree/systems/program/cpu_program.hpp"

#include "cpufree/systems/cpu/run.hpp"

namespace cpufree {

ProgramOutcome run_cpu_program(ProgramKernel kernel, const std::vector<std::byte*>& heaps,
                               const programs::Args& args, double wait_limit,
                               const Progress& progress, int blocks) {
  cpu_threads::LaunchConfig config;
  config.pes = static_cast<int>(heaps.size());
  config.blocks = blocks;
  config.heaps = heaps.data();
  Limits limits;
  limits.wait_limit = wait_limit;
  ProgramOutcome outcome;
  const Progress tell = [&](std::int64_t turn, double) {
    if (progress && !outcome.stopped && !progress(turn, 0.0)) outcome.stopped = true;
    return !outcome.stopped;
  };
  const ThreadsRun run = run_on_threads(
      config, limits,
      [&](cpu_threads::Port& port) {
        kernel(port, args, heaps[static_cast<std::size_t>(port.pe())]);
      },
      tell);
  outcome.seconds = run.seconds;
  return outcome;
}

}  // namespace cpufree
