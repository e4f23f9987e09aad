#include "cpufree/engines/cpu_threads/load.hpp"

#include <unistd.h>

#include <algorithm>

#include "cpufree/base/cores.hpp"
#include "cpufree/base/words.hpp"

namespace cpufree::cpu_threads {

namespace {
constexpr std::chrono::milliseconds kShortestPause{20}, kLongestPause{100};
}  // namespace

int idle_cores(int cores) {
  if (cores != sysconf(_SC_NPROCESSORS_ONLN)) return cores;
  // "0.20 0.18 0.12 1/80 11206": 1 of 80 threads runs, we
  const auto running = number(word(text_of("/proc/loadavg"), 3));
  if (!running) return cores;
  return static_cast<int>(std::clamp(cores - (*running - 1), 1LL, static_cast<long long>(cores)));
}

Load& Load::here() {
  static Load load(idle_cores(available_cores()));
  return load;
}

Load::Clock::duration Load::active(Clock::time_point now) const {
  return before_ + (launches_ > 0 ? now - since_ : Clock::duration{0});
}

int Load::begin(int wanted, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (launches_++ == 0) since_ = now;
  if (pause_ == Clock::duration{0} && allowed_ < wanted) {  // by the first look: not seen yet
    pause_ = kShortestPause;
    retry_ = active(now) + pause_;
  }
  return std::clamp(allowed_, 1, wanted);
}

void Load::end(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const Clock::duration reached = active(now);
  if (--launches_ == 0) before_ = reached;
}

void Load::disturbed(int threads, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const Clock::duration reached = active(now);
  const bool again = pause_ != Clock::duration{0} && reached < retry_ + 4 * pause_;
  pause_ = again ? std::min<Clock::duration>(2 * pause_, kLongestPause) : kShortestPause;
  retry_ = reached + pause_;
  allowed_ = std::max(1, threads - 1);
}

bool Load::may_try_more(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const Clock::duration reached = active(now);
  if (reached < retry_) return false;
  ++allowed_;
  retry_ = reached + std::max<Clock::duration>(pause_, kShortestPause);
  return true;
}

}  // namespace cpufree::cpu_threads
