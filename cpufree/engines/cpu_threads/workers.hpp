// The threads on which the blocks of a launch run: no more than there are usable cores, fewer
// while other programs take them. Each block has a stack of its own (fiber.hpp), so that a thread
// with several blocks goes on with another one where one waits, and blocks change threads.
//
// Who waits for a block whose thread has lost its core to another program waits for milliseconds,
// again and again. So a thread that waits for long looks at the processor time of the others: one
// that wants to run and does not is called away. At the next place where it may, it hands its
// blocks to another thread, and rests. After a pause (load.hpp) it gets some of them back.
//
// Nothing of a result depends on which thread runs a block, or when.
//
// What is guarded by `mutex_`: who is active, inboxes, counts. A thread's list of blocks belongs to
// it alone; others put blocks into its inbox, and `called` asks it to look there. A block is put
// into an inbox by the thread that has run it, once it stands still: from a thread's own stack, or
// from another of its blocks.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cpufree/engines/cpu_threads/load.hpp"
#include "cpufree/engines/cpu_threads/port.hpp"

namespace cpufree::cpu_threads {

class Workers {
 public:
  struct Config {
    int blocks = 1;
    int threads = 1;       // at most
    bool alone = true;     // blocks wait for none of other processes
    bool crowded = false;  // with those of other processes there are more threads than cores
  };
  // Runs body(k, seat) for every k in [0, blocks). Throws std::system_error where not one thread
  // can be had; goes on with fewer where there is one.
  Workers(const Config& config, std::function<void(int, Seat&)> body, Load& load);
  // Waits for the end of all blocks, who must have been told to end.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // True once all blocks have ended.
  bool wait_for(std::chrono::milliseconds patience);
  // How often a thread was found without its core, and called away.
  int disturbances() const { return disturbances_.load(std::memory_order_relaxed); }
  int threads() const { return static_cast<int>(workers_.size()); }

  // Has a thread hand over its blocks, unless it is the last one that is active; has one that rests
  // take some from those of the block with this seat. For tests, too.
  void call_away(int worker);
  void call_back(Seat& seat);

 private:
  struct Worker;
  struct Block;

  void run(Worker& me);
  void take_in(Worker& me);
  void hand_over(Worker& me);
  void rest(Worker& me, std::unique_lock<std::mutex>& lock);
  void remove_finished(Worker& me);
  void wait_slowly(Worker& me);
  void judge(Worker& me);
  void find_missing(const Worker& me, Load::Clock::time_point now);

  Config config_;
  std::function<void(int, Seat&)> body_;
  Load& load_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int unfinished_ = 0;
  std::atomic<int> active_{0};
  std::atomic<int> disturbances_{0};
  std::mutex looking_;  // held by the one thread that looks at others
  Load::Clock::time_point last_look_{};
};

}  // namespace cpufree::cpu_threads
