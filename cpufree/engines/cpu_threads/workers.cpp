#include "cpufree/engines/cpu_threads/workers.hpp"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "cpufree/base/words.hpp"
#include "cpufree/engines/cpu_threads/atomic.hpp"
#include "cpufree/engines/cpu_threads/fiber.hpp"

namespace cpufree::cpu_threads {

namespace {
using std::chrono::microseconds;
constexpr std::uint32_t kSpins = 2000, kSpinsInACrowd = 16;  // looks before waiting is slow
constexpr std::uint32_t kYields = 64;                        // in a crowd, before the first sleep
constexpr microseconds kLate{100};         // of slow waiting, before others are looked at
constexpr microseconds kBeforeSleep{400};  // of slow waiting, where every thread has a core
constexpr microseconds kShortestSleep{20}, kLongestSleep{500};
constexpr microseconds kLeastWindow{60}, kMostWindow{5000};  // between two looks at a thread
constexpr microseconds kMissing{1000};      // a program that computes takes a core for some 3 ms
constexpr microseconds kTimeToJudge{5000};  // over which slow waits are added up
constexpr unsigned kWaitsPerTrial =
    16;  // waits between two looks at the clock, to try more threads
}  // namespace

namespace {

// The core on which a thread of this process runs or wants to run; -1 where it cannot be told.
int core_of(pid_t thread) {
  const std::string text = text_of("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::size_t name_end = text.rfind(')');  // names may hold blanks
  if (name_end == std::string::npos) return -1;
  return static_cast<int>(
      number(word(std::string_view(text).substr(name_end + 1), 36)).value_or(-1));
}

// Has the operating system put the calling thread on another core, and leaves it free to go where
// it likes from there.
void step_aside() {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  cpu_set_t others = all;
  CPU_CLR(static_cast<std::size_t>(sched_getcpu()), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace

struct Workers::Worker {
  int number = 0;
  std::atomic<pid_t> id{0};  // for the operating system; 0: has not run yet
  std::thread thread;
  clockid_t clock{};  // its processor time
  Fiber* home = nullptr;
  std::vector<Block*> blocks;
  std::size_t current = 0;
  bool finished = false;     // the block that ran last has ended
  std::uint32_t passes = 0;  // looks in vain since a wait began
  std::uint32_t slow_passes = 0;
  Load::Clock::time_point slow_since{}, slow_until{};  // of the last slow wait
  unsigned waits = 0;
  Load::Clock::duration slow_time{0};  // of slow waits since `judged`
  Load::Clock::time_point judged{};

  std::atomic<bool> called{false};
  std::atomic<unsigned> rests{0};  // odd: it sleeps, or has nothing to do
  // Guarded by the mutex.
  bool active = false;
  bool called_away = false;
  std::size_t count = 0;  // of its blocks, those in the inbox too
  std::vector<Block*> inbox;
  std::condition_variable wake;
  // Of the thread that looks at others: what it saw.
  unsigned seen_rests = 0;
  Load::Clock::time_point seen_at{};
  std::chrono::nanoseconds seen_time{0};
  Load::Clock::time_point missed_since{};  // it was missing at all looks since; 0: not

  std::chrono::nanoseconds processor_time() const {
    timespec t{};
    clock_gettime(clock, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  }
  template <class F>
  void resting(F&& f) {
    rests.fetch_add(1, std::memory_order_relaxed);
    f();
    rests.fetch_add(1, std::memory_order_relaxed);
  }
};

struct Workers::Block final : Seat {
  Block(Workers& workers, int number)
      : all(workers), fiber([this, number] {
          all.body_(number, *this);
          worker->finished = true;
          Fiber::leave_for(fiber, *worker->home);
        }) {}

  Workers& all;
  Worker* worker = nullptr;
  Fiber fiber;

  void sit_at(Worker& w) {
    worker = &w;
    called = &w.called;
  }
  void move() override { Fiber::switch_between(fiber, *worker->home); }

  bool pass(std::uint32_t look) override {
    if (look == 0) begin_wait();
    if (called->load(std::memory_order_relaxed)) {
      move();
      return false;
    }
    const std::size_t blocks = worker->blocks.size();
    if (blocks > 1) {
      worker->current = (worker->current + 1) % blocks;
      Fiber::switch_between(fiber, worker->blocks[worker->current]->fiber);
    } else {
      pause_cpu();
    }
    Worker& me = *worker;  // where it stands now
    const bool slow =
        ++me.passes / me.blocks.size() >= (all.config_.crowded ? kSpinsInACrowd : kSpins);
    if (slow) all.wait_slowly(me);
    return slow || blocks > 1;  // others have run meanwhile, for how long is not known
  }

  // One of the thread's blocks has got on.
  void begin_wait() {
    if (worker->slow_passes > 0) all.judge(*worker);
    worker->passes = worker->slow_passes = 0;
    if (++worker->waits % kWaitsPerTrial != 0) return;
    const bool fewer = all.active_.load(std::memory_order_relaxed) < all.threads();
    if (fewer && worker->blocks.size() > 1 && all.load_.may_try_more(Load::Clock::now()))
      all.call_back(*this);
  }
};

Workers::Workers(const Config& config, std::function<void(int, Seat&)> body, Load& load)
    : config_(config), body_(std::move(body)), load_(load) {
  for (int k = 0; k < config.blocks; ++k) blocks_.push_back(std::make_unique<Block>(*this, k));
  const int most = std::clamp(config.threads, 1, config.blocks);
  // All threads meet the lock before they do anything, and find what is theirs.
  const std::unique_lock lock(mutex_);
  try {
    for (int k = 0; k < most; ++k) {
      auto worker = std::make_unique<Worker>();
      worker->number = k;
      worker->thread = std::thread([this, w = worker.get()] { run(*w); });
      pthread_getcpuclockid(worker->thread.native_handle(), &worker->clock);
      workers_.push_back(std::move(worker));
    }
  } catch (const std::system_error&) {
    if (workers_.empty()) throw;
  }
  const int there = threads();
  const int to_be_had = load.begin(there, Load::Clock::now());
  const int at_first = config.alone ? to_be_had : there;
  for (int k = 0; k < at_first; ++k) workers_[static_cast<std::size_t>(k)]->active = true;
  active_ = at_first;
  unfinished_ = config.blocks;
  for (int k = 0; k < config.blocks; ++k) {
    const auto owner = static_cast<std::size_t>(std::int64_t{k} * at_first / config.blocks);
    workers_[owner]->inbox.push_back(blocks_[static_cast<std::size_t>(k)].get());
    ++workers_[owner]->count;
  }
}

Workers::~Workers() {
  for (const auto& worker : workers_) worker->thread.join();
  load_.end(Load::Clock::now());
}

bool Workers::wait_for(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, patience, [this] { return unfinished_ == 0; });
}

// --- On a thread's own stack, with the lock, but while its blocks run ---

void Workers::run(Worker& me) {
  Fiber home;
  me.home = &home;
  me.id = gettid();
  std::unique_lock lock(mutex_);
  while (true) {
    take_in(me);
    if (std::exchange(me.called_away, false) && active_ > 1) hand_over(me);
    if (unfinished_ == 0) return;
    if (me.blocks.empty()) {
      rest(me, lock);
      continue;
    }
    if (me.current >= me.blocks.size()) me.current = 0;
    lock.unlock();
    Fiber::switch_between(home, me.blocks[me.current]->fiber);
    lock.lock();
    if (std::exchange(me.finished, false)) remove_finished(me);
  }
}

void Workers::take_in(Worker& me) {
  me.called.store(false, std::memory_order_relaxed);
  for (Block* const block : me.inbox) {
    block->sit_at(me);
    me.blocks.push_back(block);
  }
  me.inbox.clear();
}

// All blocks to the active thread that has the fewest.
void Workers::hand_over(Worker& me) {
  me.active = false;
  --active_;
  Worker* to = nullptr;
  for (const auto& other : workers_)
    if (other->active && (to == nullptr || other->count < to->count)) to = other.get();
  to->inbox.insert(to->inbox.end(), me.blocks.begin(), me.blocks.end());
  to->count += std::exchange(me.count, 0);
  me.blocks.clear();
  to->called.store(true, std::memory_order_relaxed);
  to->wake.notify_one();
}

void Workers::rest(Worker& me, std::unique_lock<std::mutex>& lock) {
  const auto woken = [&] { return !me.inbox.empty() || me.called_away || unfinished_ == 0; };
  // Not wake.wait: that of GCC 12 is missing from older libstdc++, which wheels are to run with.
  me.resting([&] {
    while (!me.wake.wait_for(lock, std::chrono::hours(1), woken)) continue;
  });
}

void Workers::remove_finished(Worker& me) {
  me.blocks.erase(me.blocks.begin() + static_cast<std::ptrdiff_t>(me.current));
  --me.count;
  me.passes = me.slow_passes = 0;
  if (--unfinished_ > 0) return;
  for (const auto& worker : workers_) worker->wake.notify_one();
  ended_.notify_all();
}

// --- From blocks ---

void Workers::call_away(int worker) {
  const std::lock_guard lock(mutex_);
  Worker& other = *workers_[static_cast<std::size_t>(worker)];
  if (active_ <= 1 || !other.active || other.called_away) return;
  other.called_away = true;
  other.called.store(true, std::memory_order_relaxed);
  other.wake.notify_one();
  disturbances_.fetch_add(1, std::memory_order_relaxed);
  load_.disturbed(active_, Load::Clock::now());
}

void Workers::call_back(Seat& seat) {
  Worker& me = *static_cast<Block&>(seat).worker;
  if (me.blocks.size() < 2) return;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(workers_, [](const auto& w) { return !w->active; });
  if (found == workers_.end()) return;
  Worker& other = **found;
  other.active = true;
  ++active_;
  std::swap(me.blocks[me.current], me.blocks.front());  // the one that runs stays
  me.current = 0;
  for (std::size_t give = me.blocks.size() / 2; give > 0; --give) {
    other.inbox.push_back(me.blocks.back());
    me.blocks.pop_back();
    --me.count;
    ++other.count;
  }
  other.wake.notify_one();
}

// Sleeps are short at first: who sleeps is late where the wait is about to end.
void Workers::wait_slowly(Worker& me) {
  const auto now = Load::Clock::now();
  const std::uint32_t passed = me.slow_passes++;
  if (passed == 0) me.slow_since = now;
  me.slow_until = now;
  if (config_.crowded && passed < kYields) {
    std::this_thread::yield();
    return;
  }
  const auto waited = now - me.slow_since;
  if (config_.alone && waited > kLate) find_missing(me, now);
  if (!config_.crowded && waited < kBeforeSleep) return;
  const auto doublings = static_cast<unsigned>(std::min<std::int64_t>(5, waited / kBeforeSleep));
  me.resting([&] {
    std::this_thread::sleep_for(std::min(kLongestSleep, kShortestSleep * (1U << doublings)));
  });
  me.slow_until = Load::Clock::now();
}

// Another wait begins: adds up the slow one before it, to its end. What was computed since then is
// no wait, and for memory-bound systems takes milliseconds. Where more than three quarters of the
// time go into slow waits, one thread less is faster, whatever the reason: threads of BLAS that
// spin and yield by turns, say, let all of ours run, but not together.
void Workers::judge(Worker& me) {
  const auto now = Load::Clock::now();
  me.slow_time += me.slow_until - me.slow_since;
  const auto passed = now - me.judged;
  if (passed < kTimeToJudge) return;
  me.judged = now;
  if (4 * std::exchange(me.slow_time, Load::Clock::duration{0}) < 3 * passed || !config_.alone)
    return;
  call_away(me.number);
}

// Finds threads that have wanted to run since the last look and have not, for the most part. Where
// the operating system has put one on the core of this thread, this one is in its way, and steps
// aside. A thread that is missing for long is called away.
void Workers::find_missing(const Worker& me, Load::Clock::time_point now) {
  if (active_.load(std::memory_order_relaxed) <= 1) return;
  const std::unique_lock looking(looking_, std::try_to_lock);
  if (!looking || now - last_look_ < kLeastWindow) return;
  last_look_ = now;
  for (const auto& worker : workers_) {
    Worker& other = *worker;
    if (&other == &me) continue;
    const unsigned rests = other.rests.load(std::memory_order_relaxed);
    const auto time = other.processor_time();
    const auto window = now - std::exchange(other.seen_at, now);
    const auto ran = time - std::exchange(other.seen_time, time);
    const bool busy = std::exchange(other.seen_rests, rests) == rests && rests % 2 == 0;
    const bool missing =
        busy && window >= kLeastWindow && window <= kMostWindow && 4 * ran < window;
    if (!missing) {
      other.missed_since = {};
      continue;
    }
    if (other.missed_since == Load::Clock::time_point{}) other.missed_since = now;
    if (core_of(other.id) == sched_getcpu()) {
      step_aside();
      other.missed_since = {};  // it needs some time to go on
    } else if (now - other.missed_since >= kMissing) {
      call_away(other.number);
    }
  }
}

}  // namespace cpufree::cpu_threads
