#include "cpufree/engines/cpu_threads/fiber.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "cpufree/base/error.hpp"

// The sanitizers' functions for code that switches stacks; nothing without a sanitizer.
#if defined(__SANITIZE_THREAD__)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#else
namespace {
void* __tsan_get_current_fiber() { return nullptr; }
void* __tsan_create_fiber(unsigned) { return nullptr; }
void __tsan_destroy_fiber(void*) {}
void __tsan_switch_to_fiber(void*, unsigned) {}
}  // namespace
#endif
#if defined(__SANITIZE_ADDRESS__)
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* size);
}
#else
namespace {
void __sanitizer_start_switch_fiber(void**, const void*, std::size_t) {}
void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*) {}
}  // namespace
#endif

namespace cpufree::cpu_threads {

namespace {
// Kernels take some kilobytes; pages are touched as they are needed.
constexpr std::size_t kStackBytes = std::size_t{1} << 20;
std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
}  // namespace

Fiber::Fiber() : thread_sanitizer_(__tsan_get_current_fiber()) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* bottom = nullptr;
  pthread_attr_getstack(&attributes, &bottom, &size_);
  bottom_ = bottom;
  pthread_attr_destroy(&attributes);
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  const std::size_t guard = page_bytes();
  size_ = kStackBytes;
  void* const memory = mmap(nullptr, guard + size_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw EngineError("there is no memory for the stack of a block; use fewer PEs or blocks");
  stack_ = memory;
  mprotect(stack_, guard, PROT_NONE);
  bottom_ = static_cast<std::byte*>(stack_) + guard;
  thread_sanitizer_ = __tsan_create_fiber(0);
  getcontext(&context_);
  context_.uc_stack.ss_sp = const_cast<void*>(bottom_);
  context_.uc_stack.ss_size = size_;
  context_.uc_link = nullptr;
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this));
  // makecontext passes ints alone; its type is that of any function.
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
  __tsan_destroy_fiber(thread_sanitizer_);
  munmap(stack_, page_bytes() + size_);
}

void Fiber::enter(unsigned high, unsigned low) {
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
  const std::uint64_t address = (std::uint64_t{high} << 32) | low;
  reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(address))->body_();
  std::abort();  // a body never returns
}

void Fiber::change(Fiber& from, Fiber& to, bool last) {
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack_, to.bottom_, to.size_);
  __tsan_switch_to_fiber(to.thread_sanitizer_, 0);
  swapcontext(&from.context_, &to.context_);
  __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
}

void Fiber::switch_between(Fiber& from, Fiber& to) { change(from, to, false); }

void Fiber::leave_for(Fiber& from, Fiber& to) { change(from, to, true); }

}  // namespace cpufree::cpu_threads
