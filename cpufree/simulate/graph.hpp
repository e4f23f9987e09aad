// A parallel program as a graph: operations on processors, network cards and links, and what waits
// for what. Plain data; times are in picoseconds, so that sums are exact.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"

namespace cpufree::simulate {

using Picoseconds = std::int64_t;
inline constexpr std::int32_t kNone = -1;

// How an edge connects two operations; the bits may be combined.
enum EdgeBit : std::uint8_t {
  kFromStart = 1,  // the second may begin `latency` of the first after the first has begun
  kNextRound = 2,  // the second is that of the next round
};
inline constexpr std::uint8_t kEdgeBits = kFromStart | kNextRound;

// What an operation is to the network card of its PE.
enum class Role : std::uint8_t { plain, post, trigger };

// One round of a program, which is done `rounds` times. An operation begins when all that it waits
// for has ended and its resource is free; a resource serves operations one by one, in the order in
// which they could begin, those of the same moment in the order of their numbers.
struct Graph {
  std::span<const std::int32_t> resource;  // by operation; kNone: no operation to wait for
  std::span<const Picoseconds> busy;       // how long it takes, and keeps the resource
  std::span<const Picoseconds> latency;    // of its edges from the start
  std::span<const std::int32_t> from, to;  // edges
  std::span<const std::uint8_t> edge;      // EdgeBit
  // Triggered operations; empty where there are none. A post or a trigger names the operation that
  // it posts or triggers: that one waits for its network card, too. The threshold is a post's.
  std::span<const std::uint8_t> role;  // Role
  std::span<const std::int32_t> operand, nic, threshold;
  std::int64_t rounds = 1;
  // Of the network cards: entries in the associative table, and what an entry beyond them costs.
  std::int64_t entries = 0;  // 0: any number
  Picoseconds spill = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(busy.size()); }
};

// Throws InvalidInput, naming the operation or edge, where a graph is not one.
void check(const Graph& graph);

// One operation of one round.
struct Instance {
  std::int64_t round = 0;
  std::int32_t operation = kNone;
  bool operator==(const Instance&) const = default;
};

// Operations that wait for one another: each for the next in line, the last for the one at
// `back_to`, or, where that is negative, for its network card, which will not start it.
struct WaitChain {
  std::vector<Instance> chain;
  std::int64_t back_to = -1;
  std::string card;  // of the last: what its network card has and lacks
};

// The program cannot end.
class Deadlock : public Error {
 public:
  Deadlock(const std::string& message, WaitChain waits)
      : Error(message), waits_(std::move(waits)) {}
  const WaitChain& waits() const { return waits_; }

 private:
  WaitChain waits_;
};

}  // namespace cpufree::simulate
