// What other programs leave of this machine's cores, as far as this process has seen.
//
// A thread that waits for another one waits for the operating system, too, where a third program
// runs on that one's core: milliseconds instead of a microsecond. Fewer threads, which have cores
// to themselves, are faster then. A thread that lost its core says so here, and all
// launches of the process use fewer threads for a while; then one more is tried again. The while
// doubles, up to a tenth of a second, as long as trials fail. All times are of launches: what goes
// on between them tells nothing, and a trial costs a short solve as much as a long one.
#pragma once

#include <chrono>
#include <mutex>

namespace cpufree::cpu_threads {

class Load {
 public:
  using Clock = std::chrono::steady_clock;

  // The one of this process. Begins with a look at how many threads of the machine want to run now.
  static Load& here();

  // `idle`: unused cores, as far as is known now.
  explicit Load(int idle) : allowed_(idle) {}

  // A launch that could use `wanted` threads begins: with how many, one at least. And ends.
  int begin(int wanted, Clock::time_point now);
  void end(Clock::time_point now);
  // One of `threads` threads was found without its core.
  void disturbed(int threads, Clock::time_point now);
  // Whether it is time to try one more; if so, the next trial is for later. To be asked often.
  bool may_try_more(Clock::time_point now);

 private:
  Clock::duration active(Clock::time_point now) const;

  std::mutex mutex_;
  int allowed_;
  int launches_ = 0;           // under way
  Clock::time_point since_{};  // when the first of them began
  Clock::duration before_{0};  // time of launches before
  Clock::duration pause_{0};   // between a disturbance and a trial
  Clock::duration retry_{0};   // time of launches at which more may be tried
};

// Cores that are idle, by the kernel's count of threads that run; `cores` where it cannot be told,
// as where this process may use only some of the machine's cores.
int idle_cores(int cores);

}  // namespace cpufree::cpu_threads
