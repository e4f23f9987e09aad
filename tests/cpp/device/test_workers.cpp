// Blocks on fewer threads than there are blocks, which change threads while they run: what they
// exchange is right all the same, and every wait is bounded.
#include "cpufree/engines/cpu_threads/workers.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "cpufree/base/cores.hpp"
#include "cpufree/engines/cpu_threads/atomic.hpp"
#include "cpufree/engines/cpu_threads/load.hpp"
#include "harness.hpp"

using namespace cpufree;
using namespace cpufree::cpu_threads;
using namespace std::chrono_literals;

namespace {

constexpr int kRounds = harness::shorter(20'000, 300);

// Blocks in a ring: each waits for the round of the one before it, and looks at a plain value that
// this one wrote.
struct Ring {
  explicit Ring(int blocks) : flags(static_cast<std::size_t>(blocks)), values(flags.size()) {}

  void run(int k, Seat& seat) {
    const auto me = static_cast<std::size_t>(k), before = (me + flags.size() - 1) % flags.size();
    for (Epoch round = 1; round <= kRounds; ++round) {
      values[me][round % 2] = 1000 * k + static_cast<int>(round);
      store_flag(flags[me], round);
      for (std::uint32_t look = 0; load_flag(flags[before]) < round; ++look)
        if (seat.pass(look); stop) return;
      if (values[before][round % 2] != 1000 * static_cast<int>(before) + static_cast<int>(round))
        ++wrong;
      // No thread writes round + 2 before its reader has written round + 1: a lap of all blocks.
      for (std::uint32_t look = 0; load_flag(flags[(me + 1) % flags.size()]) < round; ++look)
        if (seat.pass(look); stop) return;
      seat.check_in();
    }
    ++ended;
  }

  // Rounds that blocks have begun, in all.
  Epoch begun() const {
    Epoch sum = 0;
    for (const Flag& flag : flags) sum += load_flag(flag);
    return sum;
  }

  std::vector<Flag> flags;
  std::vector<int[2]> values;
  std::atomic<int> wrong{0}, ended{0};
  std::atomic<bool> stop{false};
};

// Runs a ring, with `disturb` called again and again meanwhile. It may take as long as it needs:
// only one that no longer gets on is stopped.
void check_ring(int blocks, int threads, Load& load, const std::function<void(Workers&)>& disturb) {
  Ring ring(blocks);
  Workers workers(
      {blocks, threads, true, false}, [&](int k, Seat& seat) { ring.run(k, seat); }, load);
  auto last_step = std::chrono::steady_clock::now();
  for (Epoch before = 0; !workers.wait_for(1ms); disturb(workers)) {
    const auto now = std::chrono::steady_clock::now();
    const Epoch begun = ring.begun();
    if (begun != before) last_step = now;
    if (now - last_step > 100s) ring.stop = true;
    before = begun;
  }
  CHECK_EQ(ring.wrong.load(), 0);
  CHECK_EQ(ring.ended.load(), blocks);
}

}  // namespace

TEST(one_thread_runs_many_blocks_that_wait_for_one_another) {
  Load load(1);
  check_ring(7, 1, load, [](Workers&) {});
}

TEST(blocks_are_right_on_several_threads) {
  for (const int blocks : {2, 3, 8}) {
    Load load(8);
    check_ring(blocks, 3, load, [](Workers&) {});
  }
}

TEST(threads_that_are_called_away_again_and_again_change_nothing) {
  Load load(4);
  int turn = 0, before = 0;
  check_ring(9, 4, load, [&](Workers& workers) {
    workers.call_away(++turn % workers.threads());
    before = workers.disturbances();
  });
  CHECK(before > 0);
}

TEST(the_last_thread_is_not_called_away) {
  Load load(2);
  check_ring(3, 2, load, [](Workers& workers) {
    workers.call_away(0);
    workers.call_away(1);
  });
}

TEST(a_thread_that_was_called_away_gets_blocks_again_after_a_pause) {
  Load load(2);
  std::vector<std::thread::id> on(2);
  std::atomic<int> changes{0};
  std::vector<Flag> flags(2);
  std::atomic<bool> enough{false};
  const auto end = std::chrono::steady_clock::now() + 300s;
  // Two blocks take turns, and note where they run.
  Workers workers(
      {2, 2, true, false},
      [&](int k, Seat& seat) {
        const auto me = static_cast<std::size_t>(k);
        std::thread::id last{};
        for (Epoch round = 1; !enough || round % 2 == 1; ++round) {
          if (last != std::thread::id{} && last != std::this_thread::get_id()) ++changes;
          last = std::this_thread::get_id();
          store_flag(flags[me], round);
          for (std::uint32_t look = 0; load_flag(flags[1 - me]) < round && !enough; ++look)
            seat.pass(look);
          seat.check_in();
          if (changes >= 2 || std::chrono::steady_clock::now() > end) enough = true;
        }
      },
      load);
  workers.call_away(1);
  while (!workers.wait_for(10ms)) {
  }
  CHECK(changes >= 2);  // away, and back
}

TEST(load_asks_for_fewer_threads_after_a_disturbance_and_for_more_after_a_pause) {
  Load load(8);
  const auto start = Load::Clock::now();
  CHECK_EQ(load.begin(4, start), 4);
  load.disturbed(4, start);
  CHECK_EQ(load.begin(4, start), 3);
  CHECK(!load.may_try_more(start + 10ms));
  CHECK(load.may_try_more(start + 30ms));
  CHECK_EQ(load.begin(4, start + 30ms), 4);
}

TEST(pauses_double_while_trials_fail_up_to_a_tenth_of_a_second) {
  Load load(2);
  auto now = Load::Clock::now();
  load.begin(2, now);
  for (int k = 0; k < 10; ++k) {
    load.disturbed(2, now);
    auto pause = 0ms;
    while (!load.may_try_more(now + pause)) pause += 10ms;
    CHECK(pause <= 100ms);
    if (k > 3) CHECK_EQ(pause.count(), 100);
    now += pause;
  }
}

TEST(time_between_launches_does_not_count_for_a_pause) {
  Load load(2);
  const auto start = Load::Clock::now();
  load.begin(2, start);
  load.disturbed(2, start);
  load.end(start + 5ms);
  CHECK_EQ(load.begin(2, start + 1000ms), 1);
  CHECK(!load.may_try_more(start + 1010ms));  // 15 ms of launches
  CHECK(load.may_try_more(start + 1020ms));
}

TEST(one_thread_at_least_is_asked_for) {
  Load load(0);
  CHECK_EQ(load.begin(4, Load::Clock::now()), 1);
  load.disturbed(1, Load::Clock::now());
  CHECK_EQ(load.begin(4, Load::Clock::now()), 1);
}

TEST(idle_cores_are_some_of_the_cores) {
  const int idle = idle_cores(4);
  CHECK(idle >= 1 && idle <= 4);
}

TEST(a_quota_pays_for_whole_cores) {
  CHECK_EQ(cores_of_quota("150000 100000"), 1);
  CHECK_EQ(cores_of_quota("400000 100000"), 4);
  CHECK_EQ(cores_of_quota("50000 100000"), 1);
  CHECK_EQ(cores_of_quota("max 100000"), 0);
  CHECK_EQ(cores_of_quota(""), 0);
  CHECK(available_cores() >= 1);
}
