// The host threads of a solve: one that drives all GPUs, or one for each.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cpufree {

// Calls work(k) for k < count, each on a thread of its own (the caller's where there is one), all
// beginning together. Returns the seconds from then to the end of the last one. The first exception
// is thrown again, after `failed` was set and all have ended.
inline double run_together(std::size_t count, std::atomic<bool>& failed,
                           const std::function<void(std::size_t)>& work) {
  using Clock = std::chrono::steady_clock;
  std::exception_ptr error;
  std::mutex mutex;
  std::vector<Clock::time_point> end(count);
  const auto guarded = [&](std::size_t k) {
    try {
      work(k);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failed.exchange(true)) error = std::current_exception();
    }
    end[k] = Clock::now();
  };
  enum { kWait, kGo, kCancel };
  std::atomic<int> sign = kWait;
  std::vector<std::jthread> threads;
  Clock::time_point begin;
  if (count == 1) {
    begin = Clock::now();
    guarded(0);
  } else {
    try {
      for (std::size_t k = 0; k < count; ++k)
        threads.emplace_back([&, k] {
          while (sign.load() == kWait) std::this_thread::yield();
          if (sign.load() == kGo) guarded(k);
        });
    } catch (...) {
      sign = kCancel;
      throw;
    }
    begin = Clock::now();
    sign = kGo;
    threads.clear();  // joins
  }
  if (error) std::rethrow_exception(error);
  Clock::time_point last = begin;
  for (const Clock::time_point t : end) last = t > last ? t : last;
  return std::chrono::duration<double>(last - begin).count();
}

}  // namespace cpufree
