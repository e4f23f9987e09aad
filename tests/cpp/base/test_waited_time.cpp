#include "cpufree/base/waited_time.hpp"

#include <latch>
#include <thread>
#include <vector>

#include "harness.hpp"

using namespace cpufree;
using namespace std::chrono_literals;

TEST(who_has_not_waited_has_waited_for_no_time) {
  const WaitedTime waited;
  CHECK_EQ(waited.seconds(), 0.0);
}

TEST(waits_add_up_and_what_lies_between_them_does_not_count) {
  WaitedTime waited;
  for (int k = 0; k < 2; ++k) {
    const double before = waited.seconds();
    {
      const WaitedTime::Wait wait(waited);
      std::this_thread::sleep_for(10ms);
      CHECK(waited.seconds() >= before + 0.01);  // while it waits, too
    }
    const double after = waited.seconds();
    CHECK(after >= before + 0.01);
    std::this_thread::sleep_for(5ms);
    CHECK_EQ(waited.seconds(), after);
  }
}

TEST(threads_that_wait_at_the_same_time_count_once) {
  WaitedTime waited;
  const auto begin = std::chrono::steady_clock::now();
  {
    std::latch all(4);
    std::vector<std::jthread> threads;
    for (int k = 0; k < 4; ++k)
      threads.emplace_back([&] {
        const WaitedTime::Wait wait(waited);
        all.arrive_and_wait();
        std::this_thread::sleep_for(20ms);
      });
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  CHECK(waited.seconds() >= 0.02);
  CHECK(waited.seconds() <= passed.count());
}
