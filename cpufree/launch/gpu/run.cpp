#include "cpufree/launch/gpu/run.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <thread>

#include "cpufree/base/index.hpp"

namespace cpufree {

namespace {
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kSpin{30e-3};      // solves are watched closely: a nap may last a millisecond
constexpr Seconds kPatience{20e-3};  // between two calls of the caller's progress function
constexpr std::chrono::microseconds kNap{50};
// From a wait given up to the end of the kernel: less than the other members wait for its report.
constexpr std::chrono::seconds kGrace{6};
static_assert(Seconds(kGrace).count() < kAnswerSeconds);
// Seconds. Kernels count their looks in 32 bits, which at two looks a microsecond last longer.
constexpr double kLongestWait = 1800.0;
}  // namespace

GpuRunner::GpuRunner(const std::vector<int>& devices, int blocks)
    : launch_(devices), blocks_(blocks), records_(devices.size() * at(blocks)) {}

void GpuRunner::synchronize() const {
  for (std::size_t pe = 0; pe * at(blocks_) < records_.size(); ++pe)
    stream(pe).wait("what is queued before a solve");
}

void GpuRunner::reset(std::vector<gpu_p2p::Shared>& shared, const Limits& limits) {
  words().leave.value = 0;
  words().notes.value = kNoteNone;
  words().reached.iteration = 0;
  words().reached.residual = 0.0;
  for (std::size_t k = 0; k < records_.size(); ++k) records_[k] = {};
  for (std::size_t pe = 0; pe < shared.size(); ++pe) {
    shared[pe].host_leave = &words().leave.value;
    shared[pe].notes = &words().notes.value;
    shared[pe].iteration = &words().reached.iteration;
    shared[pe].residual = &words().reached.residual;
    shared[pe].records = records_.data() + pe * at(blocks_);
    const double seconds = std::min(limits.wait_limit, kLongestWait);
    shared[pe].wait_limit_ns = static_cast<std::uint64_t>(1e9 * seconds);
  }
}

bool GpuRunner::gave_up() const {
  return std::ranges::any_of(std::span(records_.data(), records_.size()),
                             [](const WaitRecord& record) { return record.waited(); });
}

// Until all kernels have ended: passes notes on, and tells the caller how far they are. A kernel
// that has given up a wait and does not end, because puts to another node never arrive or a library
// waits for a PE that has left, ends the team.
void GpuRunner::listen(const Limits& limits, const Progress& progress, Team* team) const {
  const auto start = Clock::now();
  std::optional<Clock::time_point> end;  // of patience with a kernel that has given up
  Seconds next = kPatience;
  while (!launch_.ended()) {
    const Seconds now = Clock::now() - start;
    if (limits.time_limit > 0.0 && now.count() > limits.time_limit)
      words().notes.value = words().notes.value | kNoteTimeLimit;
    if (progress && now > next) {
      if (!progress(words().reached.iteration, words().reached.residual))
        words().notes.value = words().notes.value | kNoteInterrupt;
      next = Clock::now() - start + kPatience;
    }
    if (team != nullptr && now > kSpin && gave_up()) {
      if (!end) end = Clock::now() + kGrace;
      if (Clock::now() > *end) {
        team->give_up(
            "a wait for another rank was given up, and the kernel has not ended: what it sent "
            "never "
            "arrived, or it waits in a library");
        end = Clock::time_point::max();
      }
    }
    if (now < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
  }
}

// Makes the kernels that run leave, and waits for them: their memory must not be freed before.
void GpuRunner::stop() noexcept {
  words().leave.value = 1;               // ends waits, and
  words().notes.value = kNoteInterrupt;  // solves that wait for no other PE
  launch_.drain();
}

void GpuRunner::report_waits(Team* team, double wait_limit) {
  for (std::size_t k = 0; k < records_.size(); ++k)
    if (!records_[k].waited()) records_[k].state = BlockState::finished;  // all kernels have ended
  const std::vector<WaitRecord> records(records_.data(), records_.data() + records_.size());
  cpufree::report_waits(team, records, blocks_, gave_up(), wait_limit);
}

double GpuRunner::run(const GpuKernel& kernel, std::vector<gpu_p2p::Shared> shared,
                      const std::vector<const void*>& args, const Limits& limits,
                      const Progress& progress, Team* team) {
  reset(shared, limits);
  const auto start = Clock::now();
  try {
    launch_.start(kernel.function, kernel.blocks, kernel.threads, shared, args,
                  kernel.dynamic_bytes);
    listen(limits, progress, team);
  } catch (...) {
    stop();
    throw;
  }
  const double seconds = Seconds(Clock::now() - start).count();
  report_waits(team, limits.wait_limit);
  return seconds;
}

}  // namespace cpufree
