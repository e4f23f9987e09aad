// A team whose members are threads of one process, each with a system of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "gathered_exchange.hpp"

namespace cpufree {

class Meeting {
 public:
  explicit Meeting(int size) : size_(size), calls_(at(size), 0) {}

  std::vector<Bytes> meet(int rank, const std::string& what, std::span<const std::byte> mine) {
    std::unique_lock lock(mutex_);
    Round& round = rounds_[calls_[at(rank)]++];
    if (round.given.empty()) {
      round.what = what;
      round.given.resize(at(size_));
    }
    if (round.what != what) fail("'" + what + "' meets '" + round.what + "'");
    round.given[at(rank)] = Bytes(mine.begin(), mine.end());
    if (++round.came == size_) changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(300),
                      [&] { return failed_ || round.came == size_; });
    // Who has met has met, whatever came after.
    if (round.came < size_) throw std::runtime_error("the team failed: " + why_);
    return round.given;
  }

  // The next calls throw, and those under way.
  void fail(const std::string& why) {
    failed_ = true;
    why_ = why;
    changed_.notify_all();
  }
  void fail_from_outside(const std::string& why) {
    const std::lock_guard lock(mutex_);
    fail(why);
  }
  int size() const { return size_; }

 private:
  struct Round {
    std::string what;
    std::vector<Bytes> given;
    int came = 0;
  };
  int size_;
  std::vector<std::size_t> calls_;  // of each member
  std::map<std::size_t, Round> rounds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool failed_ = false;
  std::string why_;
};

class ThreadTeam final : public Team {
 public:
  ThreadTeam(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return meeting_.size(); }
  std::vector<Bytes> all_gather(const char* what, std::span<const std::byte> mine) override {
    return meeting_.meet(rank_, what, mine);
  }
  std::vector<Bytes> gather(const char* what, std::span<const std::byte> mine) override {
    auto all = meeting_.meet(rank_, what, mine);
    return rank_ == 0 ? all : std::vector<Bytes>();
  }
  std::vector<Bytes> exchange(const char* what, const std::vector<Bytes>& mine) override {
    return exchange_by_gather(*this, what, mine);
  }

 private:
  Meeting& meeting_;
  int rank_;
};

// Runs `work(team)` for each member, on threads; returns what each threw, by rank.
inline std::vector<std::exception_ptr> run_team(
    int size, const std::function<void(const std::shared_ptr<Team>&)>& work) {
  Meeting meeting(size);
  std::vector<std::exception_ptr> thrown(at(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          work(std::make_shared<ThreadTeam>(meeting, rank));
        } catch (const std::exception& error) {
          thrown[at(rank)] = std::current_exception();
          meeting.fail_from_outside(error.what());
        }
      });
  }
  return thrown;
}

}  // namespace cpufree
