#include "cpufree/engines/cpu_threads/port.hpp"

namespace cpufree::cpu_threads {

bool Port::keep_waiting(Wait& wait) {
  const bool slow = seat_ != nullptr && seat_->pass(wait.looks++);
  if (!slow) return true;
  const auto now = Clock::now();
  if (wait.start == Clock::time_point{}) wait.start = now;
  return !shared_.leaves() && now - wait.start <= shared_.wait_limit;
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
