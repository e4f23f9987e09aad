// Where the time of a set-up or a solve goes.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace cpufree {

// Seconds by name, in the order in which they passed.
using Laps = std::vector<std::pair<std::string, double>>;

class LapTimer {
 public:
  // What has passed since the lap before, or since this was made.
  void lap(const char* name) {
    const auto now = Clock::now();
    laps_.emplace_back(name, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  // The same, where what is named last took N seconds of it, up to now or a little before.
  void lap(const char* name, const char* within, double seconds) {
    lap(name);
    laps_.back().second = std::max(0.0, laps_.back().second - seconds);
    laps_.emplace_back(within, seconds);
  }
  const Laps& laps() const { return laps_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  Laps laps_;
};

}  // namespace cpufree
