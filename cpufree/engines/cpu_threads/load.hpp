// What other programs leave of this machine's cores, as far as this process has seen.
//
// A thread that waits for another one waits for the operating system, too, where a third program
// runs on that one's core: milliseconds instead of a microsecond. Fewer threads, which nobody is
// in the way of, are faster then. Whoever finds a thread without its core says so here, and all
// launches of the process use fewer threads for a while; then one more is tried again. The while
// doubles, up to a second, as long as trials fail.
#pragma once

#include <chrono>
#include <mutex>

namespace cpufree::cpu_threads {

class Load {
 public:
  using Clock = std::chrono::steady_clock;

  // The one of this process. Begins with a look at how many threads of the machine want to run now.
  static Load& here();

  // `idle`: cores that nobody uses, as far as is known now.
  explicit Load(int idle) : allowed_(idle) {}

  // Threads that a launch that could use `wanted` of them begins with: one at least.
  int threads_for(int wanted, Clock::time_point now);
  // One of `threads` threads was found without its core.
  void disturbed(int threads, Clock::time_point now);
  // Whether it is time to try one more; if so, the next trial is for later. To be asked often.
  bool may_try_more(Clock::time_point now);

 private:
  std::mutex mutex_;
  int allowed_;
  Clock::duration pause_{0};
  Clock::time_point retry_{};  // nothing is tried before
};

// Cores that are idle, by the kernel's count of threads that run; `cores` where it cannot be told,
// as where this process may use only some of the machine's cores.
int idle_cores(int cores);

}  // namespace cpufree::cpu_threads
