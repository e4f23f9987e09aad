#include "cpufree/base/work_ahead.hpp"

#include <sys/wait.h>

#include <future>

#include "harness.hpp"

using namespace cpufree;
using namespace std::chrono_literals;

TEST(nobody_waits_for_work_before_the_end) {
  WorkAhead ahead;
  std::promise<void> go;
  std::atomic<int> done = 0;
  CHECK(ahead.begin([&] {
    go.get_future().wait();
    ++done;
  }));
  CHECK_EQ(done.load(), 0);  // begin() has returned
  go.set_value();
  CHECK(ahead.finish(300s));
  CHECK_EQ(done.load(), 1);
}

TEST(end_waits_for_all_that_has_begun) {
  WorkAhead ahead;
  std::atomic<int> done = 0;
  for (int k = 0; k < 20; ++k)
    CHECK(ahead.begin([&, k] {
      std::this_thread::sleep_for(std::chrono::milliseconds(k));
      ++done;
    }));
  CHECK(ahead.finish(300s));
  CHECK_EQ(done.load(), 20);
  CHECK(ahead.finish(0ms));
}

TEST(end_does_not_wait_longer_than_it_says) {
  const auto go = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  const auto begin = std::chrono::steady_clock::now();
  {
    WorkAhead ahead;
    CHECK(ahead.begin([go, ended] {
      go->get_future().wait();
      ended->set_value();
    }));
    CHECK(!ahead.finish(50ms));
  }
  const auto passed = std::chrono::steady_clock::now() - begin;
  CHECK(passed >= 50ms);
  go->set_value();  // the thread goes on without what began it
  CHECK(ended->get_future().wait_for(300s) == std::future_status::ready);
}

TEST(nothing_begins_once_the_end_has_come) {
  WorkAhead ahead;
  std::atomic<bool> told = false;
  CHECK(ahead.begin([&] {
    while (!ahead.ending()) std::this_thread::sleep_for(1ms);
    told = true;  // work of several parts stops here
  }));
  CHECK(ahead.finish(300s));
  CHECK(told.load());
  CHECK(!ahead.begin([] { CHECK(false); }));
}

TEST(fork_begins_nothing_and_does_not_wait_for_threads_that_it_has_not) {
  WorkAhead ahead;
  std::promise<void> go;
  CHECK(ahead.begin([&] { go.get_future().wait(); }));
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    if (ahead.begin([] {})) _exit(2);  // it would not be waited for, and locks may be held for ever
    _exit(ahead.finish(800s) ? 7 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  go.set_value();
  CHECK(ahead.finish(300s));
}
