// Speculative work in background threads, whose results may turn out not to be needed.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace cpufree {

// Threads that go on by themselves. Who needs what one makes waits for that; the process waits for
// the rest before it ends (finish), and no longer than it says.
class WorkAhead {
 public:
  WorkAhead() = default;
  WorkAhead(const WorkAhead&) = delete;
  WorkAhead& operator=(const WorkAhead&) = delete;
  ~WorkAhead() { finish({}); }

  // Begins `work`, which must not throw, in a thread of its own. False: no thread can be started,
  // or the process is about to end, or is a fork, in which locks may be held forever; nothing has
  // been done.
  bool begin(std::function<void()> work) {
    if (ending() || getpid() != process_) return false;
    const std::lock_guard lock(mutex_);
    if (ending()) return false;
    join_ended();
    try {
      threads_.reserve(threads_.size() + 1);
      auto ended = std::make_shared<bool>(false);
      threads_.emplace_back(ended, std::thread([state = state_, ended, work = std::move(work)] {
                              work();
                              const std::lock_guard own(state->mutex);
                              *ended = true;
                              state->one_ended.notify_all();
                            }));
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  // Whether work of several parts should not begin the next one.
  bool ending() const { return state_->ending; }

  // Begins nothing more, and waits for what has begun. False: it goes on after so long, and no
  // caller waits for it any more.
  bool finish(std::chrono::milliseconds most) {
    state_->ending = true;
    if (getpid() != process_) {                          // a fork, which has none of these threads
      static_cast<void>(new auto(std::move(threads_)));  // they can be neither joined nor detached
      return true;
    }
    const std::lock_guard lock(mutex_);
    {
      std::unique_lock own(state_->mutex);
      state_->one_ended.wait_for(own, most, [&] {
        return std::ranges::all_of(threads_, [](const auto& one) { return *one.first; });
      });
    }
    join_ended();
    for (auto& [ended, thread] : threads_) thread.detach();
    const bool all = threads_.empty();
    threads_.clear();
    return all;
  }

 private:
  // What threads have in common, which the last of them frees.
  struct State {
    std::atomic<bool> ending = false;
    std::mutex mutex;  // of what follows, and of what has ended
    std::condition_variable one_ended;
  };

  void join_ended() {
    const std::lock_guard own(state_->mutex);
    std::erase_if(threads_, [](auto& one) {
      if (*one.first) one.second.join();  // it has nothing left to do
      return *one.first;
    });
  }

  const pid_t process_ = getpid();
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::mutex mutex_;
  std::vector<std::pair<std::shared_ptr<bool>, std::thread>> threads_;
};

}  // namespace cpufree
