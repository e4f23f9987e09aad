// Threads that stand by: no call is missed, awake or asleep; run under ThreadSanitizer.
#include "cpufree/base/standby.hpp"

#include <stdexcept>

#include "harness.hpp"

using namespace cpufree;

namespace {

// Calls made by each of `calls` in one turn, each once or not.
bool each_once(Standby& standby, std::size_t calls) {
  std::vector<int> made(calls);  // no atomics: a call ends before the turn does
  standby.call([&](std::size_t k) { ++made[k]; });
  for (const int count : made)
    if (count != 1) return false;
  return true;
}

}  // namespace

TEST(every_call_of_many_turns_is_made_once) {
  for (const std::size_t calls : {0U, 1U, 2U, 8U}) {
    Standby standby(calls);
    int wrong = 0;
    for (int turn = 0; turn < 200; ++turn) wrong += each_once(standby, calls) ? 0 : 1;
    CHECK_EQ(wrong, 0);
  }
}

// A thread may be stopped right after it has answered, and must not miss the turn after.
TEST(turns_that_follow_at_once_are_not_missed) {
  Standby standby(3);
  std::atomic<int> made{0};
  int turns = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (turns < 100'000 && std::chrono::steady_clock::now() < end) {
    standby.call([&](std::size_t) { ++made; });
    ++turns;
  }
  CHECK_EQ(made.load(), 3 * turns);
}

TEST(threads_that_fell_asleep_make_their_calls) {
  Standby standby(4);
  standby.wake();
  for (int turn = 0; turn < 3; ++turn) {
    std::this_thread::sleep_for(3 * Standby::kAwake);
    CHECK(each_once(standby, 4));
  }
}

TEST(calls_are_made_at_the_same_time) {
  Standby standby(3);
  std::atomic<int> there{0};
  standby.call([&](std::size_t) {  // ends only if all three are in it together
    ++there;
    while (there < 3) std::this_thread::yield();
  });
  CHECK_EQ(there.load(), 3);
}

TEST(exception_of_a_call_reaches_the_caller_when_all_are_made) {
  for (std::size_t bad = 0; bad < 4; ++bad) {
    Standby standby(4);
    std::atomic<int> made{0};
    CHECK_THROWS(std::runtime_error, standby.call([&](std::size_t k) {
      if (k == bad) throw std::runtime_error("no");
      ++made;
    }));
    CHECK_EQ(made.load(), 3);
    CHECK(each_once(standby, 4));  // it is fit for the next turn
  }
}

TEST(ends_right_after_a_call) {
  std::atomic<int> made{0};
  for (int turn = 0; turn < 500; ++turn) Standby(3).call([&](std::size_t) { ++made; });
  CHECK_EQ(made.load(), 1500);
}

TEST(ends_without_a_call_and_without_threads) {
  {
    const Standby never(5);
  }
  {
    Standby(5).wake();
  }
  CHECK(true);  // it ends
}
