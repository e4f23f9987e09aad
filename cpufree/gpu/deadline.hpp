// The bound of a wait of the host.
#pragma once

#include <atomic>
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

// Set-ups and copies of vectors: seconds that the host waits for any step, of which the longest
// take some. Tests make it shorter.
inline std::atomic<double> setup_limit{kCopyLimit};

// Whether such a step has not ended in time. Then nothing that a GPU may still use is freed,
// which would wait for it: the memory goes with the process.
inline std::atomic<bool> abandoned{false};

// `wait(deadline, what)` throws Stuck where `what` takes longer.
template <class F>
void wait_for_step(int device, const char* what, F&& wait) {
  const Deadline deadline(setup_limit);
  try {
    wait(deadline, what);
  } catch (const Stuck&) {
    abandoned = true;
    throw Stuck("the host waited longer than " + std::to_string(deadline.seconds()) + " s for " +
                what + " on GPU " + std::to_string(device) +
                ", which does not answer. What it has in its memory stays there until this process "
                "ends; look at the GPU (nvidia-smi, dmesg) before you start another one");
  }
}

}  // namespace cpufree::gpu
