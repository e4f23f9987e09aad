// A team whose members are processes, forked by a test, which talk through memory that they share.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/engines/cpu_processes/memory.hpp"
#include "gathered_exchange.hpp"

namespace cpufree {

// What a member leaves for the others.
struct Seat {
  static constexpr std::size_t kMost = std::size_t{1} << 18;
  std::atomic<std::uint64_t> come{0}, gone{0};  // rounds
  std::atomic<bool> failed{false};
  std::size_t size = 0;
  std::byte data[kMost];
  char message[1000];
};

class ProcessTeam final : public Team {
 public:
  ProcessTeam(Seat* seats, int rank, int size) : seats_(seats), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<Bytes> all_gather(const char* what, std::span<const std::byte> mine) override {
    Seat& seat = seats_[rank_];
    await(what, &Seat::gone, round_);  // all have read what was there
    ++round_;
    if (mine.size() > Seat::kMost) throw std::runtime_error("too much for a test");
    seat.size = mine.size();
    if (!mine.empty()) std::memcpy(seat.data, mine.data(), mine.size());
    seat.come = round_;
    await(what, &Seat::come, round_);
    std::vector<Bytes> all;
    for (int k = 0; k < size_; ++k)
      all.emplace_back(seats_[k].data, seats_[k].data + seats_[k].size);
    seat.gone = round_;
    return all;
  }
  std::vector<Bytes> gather(const char* what, std::span<const std::byte> mine) override {
    auto all = all_gather(what, mine);
    return rank_ == 0 ? all : std::vector<Bytes>();
  }
  std::vector<Bytes> exchange(const char* what, const std::vector<Bytes>& mine) override {
    return exchange_by_gather(*this, what, mine);
  }
  void give_up(const std::string& message) override { leave(seats_[rank_], message); }

  // Ends this process, with a message for its parent.
  [[noreturn]] static void leave(Seat& seat, const std::string& message) {
    std::strncpy(seat.message, message.c_str(), sizeof(Seat::message) - 1);
    seat.failed = true;
    _exit(1);
  }

 private:
  void await(const char* what, std::atomic<std::uint64_t> Seat::* count, std::uint64_t round) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    for (int k = 0; k < size_; ++k)
      while ((seats_[k].*count) < round) {
        if (seats_[k].failed || std::chrono::steady_clock::now() > end)
          throw std::runtime_error("rank " + std::to_string(k) + " has not come to " + what);
        std::this_thread::yield();
      }
  }

  Seat* seats_;
  int rank_;
  int size_;
  std::uint64_t round_ = 0;
};

// Runs `work(team)` in as many processes; returns what each threw, "" where it did not. This
// process must have no other threads.
inline std::vector<std::string> run_processes(
    int size, const std::function<void(const std::shared_ptr<Team>&)>& work) {
  const auto memory = cpu_processes::Segment::make(sizeof(Seat) * at(size));
  auto* const seats = reinterpret_cast<Seat*>(memory.data());  // zeros are a seat that is free
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no more processes");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // no child outlives a test that is ended
    try {
      work(std::make_shared<ProcessTeam>(seats, rank, size));
      _exit(0);
    } catch (const std::exception& error) {
      ProcessTeam::leave(seats[rank], error.what());
    }
  }
  std::vector<std::string> said;
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    waitpid(children[rank], &status, 0);
    const bool told = !WIFEXITED(status) || WEXITSTATUS(status) > 1;
    said.push_back(told ? "ended with status " + std::to_string(status)
                        : std::string(seats[rank].message));
  }
  return said;
}

}  // namespace cpufree
