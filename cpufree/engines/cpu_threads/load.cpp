#include "cpufree/engines/cpu_threads/load.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "cpufree/base/cores.hpp"

namespace cpufree::cpu_threads {

namespace {
constexpr std::chrono::milliseconds kShortestPause{20}, kLongestPause{1000};
}  // namespace

int idle_cores(int cores) {
  if (cores != sysconf(_SC_NPROCESSORS_ONLN)) return cores;
  std::ifstream file("/proc/loadavg");  // "0.20 0.18 0.12 1/80 11206": 1 of 80 threads runs, we
  std::string average, counts;
  file >> average >> average >> average >> counts;
  try {
    return std::clamp(cores - (std::stoi(counts) - 1), 1, cores);
  } catch (const std::logic_error&) {
    return cores;
  }
}

Load& Load::here() {
  static Load load(idle_cores(available_cores()));
  return load;
}

int Load::threads_for(int wanted, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (pause_ == Clock::duration{0} && allowed_ < wanted) {  // by the first look: not seen yet
    pause_ = kShortestPause;
    retry_ = now + pause_;
  }
  return std::clamp(allowed_, 1, wanted);
}

void Load::disturbed(int threads, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const bool again = pause_ != Clock::duration{0} && now < retry_ + 4 * pause_;
  pause_ = again ? std::min<Clock::duration>(2 * pause_, kLongestPause) : kShortestPause;
  retry_ = now + pause_;
  allowed_ = std::max(1, threads - 1);
}

bool Load::may_try_more(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (now < retry_) return false;
  ++allowed_;
  retry_ = now + std::max<Clock::duration>(pause_, kShortestPause);
  return true;
}

}  // namespace cpufree::cpu_threads
