// The processes that work on a system together, one for each PE, as seen from one of them.
//
// All members call the same functions in the same order, and each call returns once all have made
// it. Where a member fails, calls throw in all others: no member waits for one that will not come.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "cpufree/base/bytes.hpp"
#include "cpufree/base/index.hpp"

namespace cpufree {

class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // What all members give, by rank. `what` names the call, for messages.
  virtual std::vector<Bytes> all_gather(const char* what, std::span<const std::byte> mine) = 0;
  // The same, where all members come at about the same time: where one has not come N seconds
  // after the first, it is taken for lost, and the call throws in the others.
  virtual std::vector<Bytes> all_gather_within(const char* what, std::span<const std::byte> mine,
                                               double seconds) {
    static_cast<void>(seconds);
    return all_gather(what, mine);
  }
  // The same as the first for rank 0 alone; the others get nothing.
  virtual std::vector<Bytes> gather(const char* what, std::span<const std::byte> mine) = 0;
  // mine[k] goes to rank k alone; returns what each has sent to this one, by rank.
  virtual std::vector<Bytes> exchange(const char* what, const std::vector<Bytes>& mine) = 0;
  // This member hangs where no error reaches it, as `message` says: all are to end. From any
  // thread.
  virtual void give_up(const std::string& message) { static_cast<void>(message); }
};

// A process that runs all PEs itself.
class Alone final : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<Bytes> all_gather(const char*, std::span<const std::byte> mine) override {
    return {Bytes(mine.begin(), mine.end())};
  }
  std::vector<Bytes> gather(const char* what, std::span<const std::byte> mine) override {
    return all_gather(what, mine);
  }
  std::vector<Bytes> exchange(const char*, const std::vector<Bytes>& mine) override { return mine; }
};

// The PEs that this process runs: all there are, or the one of its rank.
struct OwnPes {
  int first = 0;
  int here = 1;
  int all = 1;

  static OwnPes of(const Team* team, int pes) {
    return team == nullptr ? OwnPes{0, pes, pes} : OwnPes{team->rank(), 1, pes};
  }
  bool speaker() const { return first == 0; }  // PE 0 is here
};

// Lists of values, one behind the other.
template <class V>
std::vector<V> joined(const std::vector<Bytes>& parts) {
  std::vector<V> all;
  for (const Bytes& bytes : parts) {
    const auto more = values_of<V>(bytes);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// The lists of all members.
template <class V>
std::vector<V> join(Team& team, const char* what, const std::vector<V>& mine) {
  return joined<V>(team.all_gather(what, bytes_of(mine)));
}

// One value of each member.
template <class V>
std::vector<V> each(Team& team, const char* what, const V& mine) {
  return join(team, what, std::vector<V>{mine});
}

template <class V>
V most(Team& team, const char* what, V mine) {
  return std::ranges::max(each(team, what, mine));
}

template <class V>
V least(Team& team, const char* what, V mine) {
  return std::ranges::min(each(team, what, mine));
}

// What f() gives, which waits for other members inside of a library. Where that takes longer than
// `limit`, the team is given up: `what` names what f does.
template <class F>
auto within(Team& team, std::chrono::milliseconds limit, const std::string& what, F&& f) {
  std::mutex mutex;
  std::condition_variable_any ended;
  const std::jthread watch([&](const std::stop_token& done) {
    std::unique_lock lock(mutex);
    ended.wait_for(lock, done, limit, [] { return false; });
    if (!done.stop_requested())
      team.give_up(what + " has not come to an end within " +
                   std::to_string(static_cast<double>(limit.count()) / 1e3).substr(0, 5) + " s");
  });
  return f();
}

// Returns once all members have come.
inline void barrier(Team& team, const char* what) { team.all_gather(what, {}); }

}  // namespace cpufree
