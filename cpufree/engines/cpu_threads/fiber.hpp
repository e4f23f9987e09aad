// A stack of its own, on which code goes on when a thread switches to it, and stops when the thread
// switches away; another thread may switch to it next.
//
// Code on a fiber must not keep addresses of thread-local objects across a switch, nor be inside a
// handler of an exception.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace cpufree::cpu_threads {

class Fiber {
 public:
  // The calling thread itself: something to switch back to.
  Fiber();
  // `body` begins with the first switch to it, and never returns: it ends with a last switch away.
  // Throws EngineError where there is no memory for its stack.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Stops here, as `from`, and goes on at `to`. Returns when another fiber switches to `from`.
  static void switch_between(Fiber& from, Fiber& to);
  // The same for a fiber that will not be switched to again.
  static void leave_for(Fiber& from, Fiber& to);

 private:
  static void enter(unsigned high, unsigned low);
  static void change(Fiber& from, Fiber& to, bool last);

  ucontext_t context_{};
  std::function<void()> body_;
  void* stack_ = nullptr;  // with a guard page below; null: the thread's own
  // For sanitizers, which follow stacks: what they know this one by.
  void* thread_sanitizer_ = nullptr;
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cpufree::cpu_threads
