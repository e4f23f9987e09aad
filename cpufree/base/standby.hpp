// Threads that stand by to make calls at once, where one thread making them one after another would
// be late for the last: launches of kernels that wait for one another.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace cpufree {

// Calls made together, one of them by the caller. Threads begin with the first `wake`, sleep
// between calls, and end with the object. One user at a time.
//
// A call opens a turn: `turn_` grows, then `bell_`. A thread looks at `turn_` (and `end_`) after it
// heard `bell_`, and sleeps only while `bell_` is what it heard: a turn it did not see has rung
// since, and wakes it. The one exception is the turn it has just taken: it hears `bell_` after that
// turn but before it answers, so that no later turn can have rung yet. `work_` is written before
// `turn_`, and not again before all threads have answered in `answers_`.
class Standby {
 public:
  // How long threads look for a turn after they were woken.
  static constexpr std::chrono::milliseconds kAwake{10};

  explicit Standby(std::size_t calls) : calls_(calls) {}
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;
  ~Standby() {
    end_.store(true);
    ring();
  }

  // A call is near: threads wake, and look for it.
  void wake() {
    try {
      while (threads_.size() + 1 < calls_)
        threads_.emplace_back(
            [this, k = threads_.size() + 1, turn = turn_.load()] { stand_by(k, turn); });
    } catch (const std::system_error&) {  // the caller makes the calls of those that are missing
    }
    ring();
  }

  // Calls work(k) for each k, and returns when all calls have: 0 here, the others at the same time
  // on threads of their own. The first exception by k is thrown again. What is awaited is the end
  // of the calls, and nothing else: it takes as long as the longest of them.
  void call(const std::function<void(std::size_t)>& work) {
    wake();
    std::vector<std::exception_ptr> errors(calls_);
    work_ = [&](std::size_t k) {
      try {
        work(k);
      } catch (...) {
        errors[k] = std::current_exception();
      }
    };
    answers_.store(0, std::memory_order_relaxed);
    turn_.fetch_add(1, std::memory_order_release);
    ring();
    if (calls_ > 0) work_(0);
    for (std::size_t k = threads_.size() + 1; k < calls_; ++k) work_(k);
    while (answers_.load(std::memory_order_acquire) < threads_.size()) std::this_thread::yield();
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
  }

 private:
  void ring() {
    bell_.fetch_add(1, std::memory_order_release);
    bell_.notify_all();
  }

  // `taken`: the last turn before mine.
  void stand_by(std::size_t k, unsigned taken) {
    unsigned heard = 0;
    while (true) {
      bell_.wait(heard, std::memory_order_acquire);
      heard = bell_.load(std::memory_order_acquire);
      const auto sleepy = std::chrono::steady_clock::now() + kAwake;
      while (!end_.load() && turn_.load(std::memory_order_acquire) == taken &&
             std::chrono::steady_clock::now() < sleepy)
        std::this_thread::yield();
      if (end_.load()) return;
      if (turn_.load(std::memory_order_acquire) == taken) continue;
      ++taken;
      work_(k);
      heard = bell_.load(std::memory_order_acquire);  // before the answer: after it, the bell may
      answers_.fetch_add(1, std::memory_order_release);  // have rung for the next turn, or the end
    }
  }

  std::size_t calls_;
  std::function<void(std::size_t)> work_;
  std::atomic<unsigned> bell_{0}, turn_{0};
  std::atomic<std::size_t> answers_{0};
  std::atomic<bool> end_{false};
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace cpufree
