// The bound of a wait of the host.
#pragma once

#include <chrono>
#include <string>

#include "cpufree/base/error.hpp"

namespace cpufree::gpu {

// The end of a wait.
class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds), start_(Clock::now()) {}
  double seconds() const { return seconds_; }
  bool over() const {
    return std::chrono::duration<double>(Clock::now() - start_).count() > seconds_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_;
  Clock::time_point start_;
};

inline constexpr double kCopyLimit = 600.0;  // seconds for set-up copies, far beyond any

// A wait of the host outlasted its bound: what had been launched may never end.
class Stuck : public EngineError {
 public:
  using EngineError::EngineError;
};
[[noreturn]] inline void give_up(const Deadline& deadline, const std::string& what) {
  throw Stuck("the host waited longer than " + std::to_string(deadline.seconds()) + " s for " +
              what + "; a GPU or a peer does not answer. If it was merely slow, raise wait_limit");
}

}  // namespace cpufree::gpu
