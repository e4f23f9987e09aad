// What a block writes down while its kernel runs: records of 16 bytes in rings that hold the last
// of them. Plain data, for host and device code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/device/types.hpp"

namespace cpufree {

// `peer` and `body` of each, where a slot is the place of a flag or packet in symmetric memory, in
// units of 16 bytes, and an epoch has its lower 32 bits.
enum class TraceKind : std::uint8_t {
  phase,      // 0; the Phase that ends now
  payload,    // receiver; bytes stored there since the last signal to it
  signal,     // receiver; slot and epoch of a flag that is set there
  packet,     // receiver; the same of a packet, the first of several that are put in one go
  partial,    // receiver; the same of packets with partial sums of a reduction
  wait,       // whom for; block, channel, and the epoch that is waited for
  wait_end,   // who came last; slot, and the epoch seen
  found,      // whom for; the same of what had come before it was asked for
  gave_up,    // whom for; block, channel, and the epoch last seen
  reduce,     // 0; 1 where the sums of a reduction are collected, 0 once they are there
  section,    // 0; the level of multigrid, or the line of a program, that begins; -1: none does
  iteration,  // 0; its number
  left_out    // 0; iterations not recorded so far: there begins a gap, or ends
};

inline constexpr std::uint32_t kAllTraceKinds = 0xffffffffU;

struct alignas(16) TraceRecord {
  std::uint64_t head;  // time << 24 | kind << 16 | peer
  std::uint64_t body;
};

inline constexpr int kTraceTimeBits = 40;  // of nanoseconds: 18 minutes, then it wraps
inline constexpr int kTracePeers = 1 << 16;

CPUFREE_FN TraceRecord trace_record(TraceKind kind, std::uint64_t time, int peer,
                                    std::uint64_t body) {
  const auto what = static_cast<std::uint64_t>(kind) << 16;
  return {time << 24 | what | static_cast<std::uint16_t>(peer), body};
}
// A slot or a site, and an epoch, a number of bytes, or nothing.
CPUFREE_FN std::uint64_t trace_body(std::uint64_t upper, std::uint64_t lower) {
  return upper << 32 | (lower & 0xffffffffU);
}
CPUFREE_FN std::uint64_t trace_site(int block, std::uint32_t channel) {
  return (static_cast<std::uint64_t>(channel) & 0xffffU) << 16 | static_cast<std::uint16_t>(block);
}

// What a thread does, in memory that hosts read while its kernel runs: whom a long wait is for.
// Each word has one writer. `body` is as that of a record of kind `wait`; `state` changes whenever
// it does.
struct Published {
  Flag state;  // number << 24 | BlockState << 16 | peer
  Flag body;
};

CPUFREE_FN std::uint64_t published_state(std::uint64_t number, BlockState state, int peer) {
  return number << 24 | static_cast<std::uint64_t>(state) << 16 | static_cast<std::uint16_t>(peer);
}

// Where the threads of one block that trace write, each into a ring of its own. The first one
// records what the block does, the others what they themselves send and wait for: their rings are
// smaller.
inline constexpr std::uint32_t kTraceShare = 16;

struct TraceRing {
  Published* told = nullptr;         // one for each thread that traces; null: nobody looks on
  TraceRecord* records = nullptr;    // `trace_records` of them
  std::uint64_t* written = nullptr;  // by each of these, 0 before the first kernel, at its end
  // Of each thread of the block: payload bytes to each PE, all of them and those up to the last
  // signal.
  std::uint64_t* bytes = nullptr;
  const std::byte* base = nullptr;       // of the symmetric memory of the PE: slots count from here
  std::uint64_t start = 0;               // the time of the port that is 0
  std::uint32_t kinds = kAllTraceKinds;  // which are written down: bit k for kind k
  std::uint32_t capacity = 0;  // of the first thread: a power of two, at least kTraceShare
  std::uint32_t every = 1;     // iterations, of which one is recorded
};

// Of the ring of a thread: where it begins, and how many records it holds.
CPUFREE_FN std::uint64_t trace_first(std::uint32_t capacity, int thread) {
  return thread == 0 ? 0
                     : capacity + std::uint64_t{capacity / kTraceShare} *
                                      static_cast<std::uint64_t>(thread - 1);
}
CPUFREE_FN std::uint32_t trace_capacity(std::uint32_t capacity, int thread) {
  return thread == 0 ? capacity : capacity / kTraceShare;
}

}  // namespace cpufree
