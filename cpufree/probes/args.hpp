// What a probe of communication is told, and what it finds. Plain data, for host and device code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/types.hpp"

namespace cpufree {

// How a message goes from one PE to another.
enum class ProbeWay : std::int32_t {
  store_thread,  // values stored by one thread, then a flag
  store_warp,    // by the threads that run in lockstep
  store_block,   // by all threads of the block
  bulk,          // by the hardware's bulk copies, out of the block's fast memory, then a flag
  packets,       // values that carry their own flag
  get            // loads from the memory of the other PE
};
inline constexpr int kProbeWays = 6;

// What of it is timed. Of a pair, the PE of even number is the one that keeps the time.
enum class ProbeMode : std::int32_t {
  single,     // round trips, or gets
  window,     // several messages one way, and one value back; several gets, and one of a value
  send,       // the sender's part of a message alone
  receive,    // the receiver's part, where the message is there already
  flag,       // round trips of flags without values
  allreduce,  // sums over all blocks of all PEs
  fence       // what orders the stores before it: they are unordered with what follows without
};

// Times of a block's clock, and of one in nanoseconds, at the first and last moment of a run.
struct ProbeClock {
  std::uint64_t ticks[2] = {};
  std::uint64_t now[2] = {};
  std::uint64_t look = 0;  // ticks that a look at the clock takes

  double seconds_per_tick() const {
    const auto passed = static_cast<double>(ticks[1] - ticks[0]);
    return passed > 0.0 ? 1e-9 * static_cast<double>(now[1] - now[0]) / passed : 0.0;
  }
};

struct ProbeArgs {
  ProbeMode mode = ProbeMode::single;
  std::int64_t values = 1;    // of 8 bytes, of a message; of a sum: 1, 2, 4 or 8
  std::int32_t messages = 1;  // of a window
  std::int32_t rounds = 1;    // that are timed together: round trips, gets, sums
  std::int32_t warm_ups = 0;  // exchanges before the first that is timed
  std::int32_t repeats = 1;   // exchanges that are timed
  bool reads = true;          // whether who gets a message reads its values, and checks them
  Epoch epoch = 0;            // the last one of the run before
  // Symmetric. A flag for each block; `probe_stride` values, and packets, for each.
  Flag* flags = nullptr;
  double* buffer = nullptr;
  Packet* packets = nullptr;
  Packet* slots = nullptr;  // of sums, see AllReduce
  // Private to a PE.
  std::uint64_t* ticks = nullptr;  // of each repeat, of block 0
  ProbeClock* clock = nullptr;     // of block 0
  std::int64_t* wrong = nullptr;   // values that were not what was sent, of each thread
};

// Values that a block has room for in either direction: those of all messages, and behind them, on
// lines of its own, the value that answers a window.
CPUFREE_FN std::int64_t probe_stride(std::int64_t values, std::int64_t messages) {
  return (values * messages + 15) / 16 * 16 + 16;
}

// Epochs that a run uses at most.
CPUFREE_FN Epoch probe_epochs(const ProbeArgs& args) {
  const Epoch exchanges = static_cast<Epoch>(args.warm_ups) + static_cast<Epoch>(args.repeats);
  return exchanges * (2 * static_cast<Epoch>(args.rounds) + static_cast<Epoch>(args.messages) + 1);
}

// Value i of the message of an epoch. Other ones at the same place, before and after, differ.
CPUFREE_FN double probe_value(Epoch epoch, std::int64_t i) {
  return static_cast<double>(epoch) + static_cast<double>(static_cast<std::int32_t>(i));
}

}  // namespace cpufree
