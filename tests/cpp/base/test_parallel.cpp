#include "cpufree/base/parallel.hpp"

#include <stdexcept>

#include "harness.hpp"

using namespace cpufree;

TEST(every_index_is_visited_once) {
  for (const int count : {0, 1, 2, 17, 1000}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count) + 1);
    in_parallel(count, [&](int k) { ++visits[static_cast<std::size_t>(k)]; });
    int wrong = 0;
    for (int k = 0; k < count; ++k) wrong += visits[static_cast<std::size_t>(k)] == 1 ? 0 : 1;
    CHECK_EQ(wrong, 0);
  }
}

TEST(exception_of_any_thread_reaches_the_caller) {
  for (int bad = 0; bad < 8; ++bad)
    CHECK_THROWS(std::runtime_error, in_parallel(8, [&](int k) {
                   if (k == bad) throw std::runtime_error("no");
                 }));
}
