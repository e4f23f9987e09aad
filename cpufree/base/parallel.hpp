// Loops shared among the cores of this process, for set-up. Not for kernels.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "cpufree/base/cores.hpp"

namespace cpufree {

// Calls f(mine, k) for every k in [0, count), by `threads` threads at most; each of them makes what
// it works with once, mine = make(). The first exception is passed on once all calls have ended;
// where no thread can be started, fewer do the work.
template <class Make, class F>
void in_parallel(int count, int threads, Make&& make, F&& f) {
  std::vector<std::exception_ptr> errors(
      static_cast<std::size_t>(std::max(std::min(count, threads), 1)));
  std::atomic<int> next{0};
  const auto work = [&](std::size_t t) {
    try {
      int k = next++;
      if (k >= count) return;
      for (auto&& mine = make(); k < count; k = next++) f(mine, k);
    } catch (...) {
      errors[t] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> team;
    team.reserve(errors.size());
    try {
      for (std::size_t t = 1; t < errors.size(); ++t) team.emplace_back(work, t);
    } catch (const std::system_error&) {  // the threads that there are suffice
    }
    work(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

// Calls f(k) for every k in [0, count), by all cores.
template <class F>
void in_parallel(int count, F&& f) {
  in_parallel(count, available_cores(), [] { return 0; }, [&](int, int k) { f(k); });
}

}  // namespace cpufree
