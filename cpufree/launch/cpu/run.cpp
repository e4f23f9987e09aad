#include "cpufree/launch/cpu/run.hpp"

#include <algorithm>
#include <chrono>

#include "cpufree/launch/waits.hpp"

namespace cpufree {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kPatience{50};  // between two looks of the host

std::chrono::milliseconds patience_of(const Limits& limits) {
  if (limits.time_limit <= 0.0) return kPatience;
  return std::chrono::milliseconds(1 + static_cast<int>(std::min(49.0, 100.0 * limits.time_limit)));
}

}  // namespace

ThreadsRun run_on_threads(cpu_threads::LaunchConfig config, const Limits& limits,
                          const std::function<void(cpu_threads::Port&)>& kernel,
                          const Progress& progress, Team* team) {
  config.wait_limit =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(limits.wait_limit));
  const auto patience = patience_of(limits);
  const auto start = Clock::now();
  const auto elapsed = [&] { return Seconds(Clock::now() - start).count(); };
  const auto listen = [&](std::int64_t iteration, double residual) {
    unsigned notes = kNoteNone;
    if (progress && !progress(iteration, residual)) notes |= kNoteInterrupt;
    if (limits.time_limit > 0.0 && elapsed() > limits.time_limit) notes |= kNoteTimeLimit;
    return notes;
  };
  if (config.pes * config.blocks == 1 && team == nullptr) {
    auto next = start + patience;
    cpu_threads::run_here(config.heaps, kernel, [&](std::int64_t iteration, double residual) {
      const auto now = Clock::now();
      if (now < next) return static_cast<unsigned>(kNoteNone);
      next = now + patience;
      return listen(iteration, residual);
    });
    return {elapsed(), 0};
  }
  cpu_threads::Launch launch(config, kernel);
  while (!launch.wait_for(patience)) launch.note(listen(launch.iteration(), launch.residual()));
  const ThreadsRun run{elapsed(), launch.disturbances()};
  report_waits(team, launch.records(), config.blocks, launch.gave_up(), limits.wait_limit);
  return run;
}

}  // namespace cpufree
