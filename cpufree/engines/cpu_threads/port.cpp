#include "cpufree/engines/cpu_threads/port.hpp"

#include <algorithm>

namespace cpufree::cpu_threads {

namespace {
constexpr std::uint32_t kYields = 64;  // offers of the core before the thread sleeps
constexpr std::chrono::microseconds kShortestSleep{20};
constexpr std::chrono::microseconds kLongestSleep{500};
}  // namespace

// Spin, then yield, then sleep ever longer: many more blocks than cores still make progress, and a
// block that waits long burns no core.
bool Port::keep_waiting(Wait& wait) {
  const std::uint32_t look = wait.looks++;
  const auto spins = static_cast<std::uint32_t>(shared_.spins);
  if (look < spins) {
    pause_cpu();
    return true;
  }
  if (look == spins) wait.start = Clock::now();
  if (shared_.leaves()) return false;
  if (Clock::now() - wait.start > shared_.wait_limit) return false;
  if (look - spins < kYields) {
    std::this_thread::yield();
    return true;
  }
  const auto sleep = kShortestSleep * (1U << std::min(5U, (look - spins) / kYields - 1U));
  std::this_thread::sleep_for(std::min(kLongestSleep, std::chrono::microseconds(sleep)));
  return true;
}

void Port::give_up(const Wait& wait, WaitRecord record) {
  record.state = shared_.leaves() ? BlockState::aborted : BlockState::expired;
  const auto waited =
      wait.start == Clock::time_point{} ? Clock::duration{} : Clock::now() - wait.start;
  record.seconds = std::chrono::duration<double>(waited).count();
  if (!this->record().waited()) this->record() = record;  // the first wait is the cause
  shared_.tell_all();
}

}  // namespace cpufree::cpu_threads
