// How long a thread has waited.
#pragma once

#include <chrono>
#include <mutex>

namespace cpufree {

// Seconds in which threads wait for the same thing, those of several threads at a time once.
class WaitedTime {
 public:
  // The caller waits for as long as this lives.
  class [[nodiscard]] Wait {
   public:
    explicit Wait(WaitedTime& all) : all_(all) { all_.change(1); }
    ~Wait() { all_.change(-1); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    WaitedTime& all_;
  };

  // Up to now.
  double seconds() const {
    const std::lock_guard lock(mutex_);
    return seconds_ + (waiting_ > 0 ? passed() : 0.0);
  }

 private:
  using Clock = std::chrono::steady_clock;

  double passed() const { return std::chrono::duration<double>(Clock::now() - since_).count(); }
  void change(int by) {
    const std::lock_guard lock(mutex_);
    if (waiting_ > 0) seconds_ += passed();
    waiting_ += by;
    since_ = Clock::now();
  }

  mutable std::mutex mutex_;
  int waiting_ = 0;
  Clock::time_point since_;
  double seconds_ = 0.0;
};

}  // namespace cpufree
