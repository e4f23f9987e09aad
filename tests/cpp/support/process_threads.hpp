// Processes of a baseline, for tests: threads of this one.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

// Calls work(k) for k < count, each on a thread of its own. Throws what one of them has thrown.
inline void each_process(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  {
    std::vector<std::jthread> threads;
    for (std::size_t k = 0; k < count; ++k)
      threads.emplace_back([&, k] {
        try {
          work(k);
        } catch (...) {
          errors[k] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}
