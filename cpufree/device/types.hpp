// The words in which PEs talk to one another: flags, packets, epochs. Plain data.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// Monotone counter of a channel. Starts at 0 with every launch, and is never reset while one runs.
using Epoch = std::uint64_t;

// Wrap-safe "seen has reached want". Flags are compared with this and never with ==, so that a
// writer that runs ahead is not mistaken for one that lags behind.
CPUFREE_FN bool reached(Epoch seen, Epoch want) {
  return static_cast<std::int64_t>(seen - want) >= 0;
}

// A flag in the receiver's memory: one writer, many readers, alone on its 128 bytes (two 64-byte
// lines, the unit that adjacent-line prefetchers of CPUs and the L2 of GPUs move).
struct alignas(128) Flag {
  Epoch value;
};

// A small message that carries its own flag (the LL protocol): 16 bytes, written by one store. The
// tag is the epoch shifted left by `kNoteBits`, with notes of the sender below.
struct alignas(16) Packet {
  double value;
  std::uint64_t tag;
};

inline constexpr int kNoteBits = 8;

CPUFREE_FN std::uint64_t make_tag(Epoch epoch, unsigned notes) {
  return (epoch << kNoteBits) | (notes & ((1U << kNoteBits) - 1U));
}
CPUFREE_FN Epoch tag_epoch(std::uint64_t tag) { return tag >> kNoteBits; }
// Whether a packet is that of epoch `want`. Unlike a flag's, a packet's slot never holds a later
// epoch than the one waited for (proofs in channel.hpp, allreduce.hpp, stencils/edges.hpp,
// stencils/tile3d_packets.hpp), so equality is right, and it is cheap.
// Were a proof wrong, the wait would end with a diagnosis where `reached` would take the wrong
// value.
CPUFREE_FN bool arrived(std::uint64_t tag, Epoch want) {
  return ((tag ^ make_tag(want, 0U)) & ~std::uint64_t{(1U << kNoteBits) - 1U}) == 0U;
}
CPUFREE_FN unsigned tag_notes(std::uint64_t tag) {
  return static_cast<unsigned>(tag & ((1U << kNoteBits) - 1U));
}

// The same for three floats: denser, as the number of the exchange takes 32 bits only. Exchanges
// are counted in 64 bits, of which `number` has the lower half.
// On AMD's GPUs it has room for a number with each float (engines/gpu_p2p/hip/atomic.cuh).
#if defined(__HIP__) || defined(CPUFREE_HIP)
#define CPUFREE_FLOAT_PACKET 32
#else
#define CPUFREE_FLOAT_PACKET 16
#endif
struct alignas(CPUFREE_FLOAT_PACKET) FloatPacket {
  float value[3];
  std::uint32_t number;
};

// Whether it is that of epoch `want`, where a slot is written every second epoch. Such a slot holds
// this one, the one two epochs before, or zeros while nothing has been written, and no other
// (stencils/tile3d_packets.hpp). Of want, want - 2, and of 0 where want is 1 or 2, no two agree in
// their lower 32 bits: equality is right for as many epochs as a run may have, though numbers wrap.
CPUFREE_FN bool arrived(const FloatPacket& packet, Epoch want) {
  return packet.number == static_cast<std::uint32_t>(want);
}
CPUFREE_FN bool arrived(const Packet& packet, Epoch want) { return arrived(packet.tag, want); }

// The same for one float: 8 bytes, among the blocks of a PE (multigrid/packet_steps.hpp).
struct alignas(8) SmallPacket {
  float value;
  std::uint32_t number;
};
CPUFREE_FN bool arrived(const SmallPacket& packet, Epoch want) {
  return packet.number == static_cast<std::uint32_t>(want);
}

// The epoch of a packet, for diagnosis: the last one up to `want` that it may be of.
CPUFREE_FN Epoch epoch_of(const FloatPacket& packet, Epoch want) {
  return want - static_cast<std::uint32_t>(static_cast<std::uint32_t>(want) - packet.number);
}
CPUFREE_FN Epoch epoch_of(const Packet& packet, Epoch) { return tag_epoch(packet.tag); }
CPUFREE_FN Epoch epoch_of(const SmallPacket& packet, Epoch want) {
  return want - static_cast<std::uint32_t>(static_cast<std::uint32_t>(want) - packet.number);
}

// Notes that travel with a reduction, so that every PE learns of them in the same iteration.
enum Note : unsigned { kNoteNone = 0, kNoteTimeLimit = 1, kNoteInterrupt = 2 };

// Channels, for diagnosis.
enum class Channel : std::uint32_t {
  local_arrival,
  halo_arrival,
  reduction,
  node_reduction,
  trigger_room,  // these name a NIC by its PE, and a ring, an operation or a signal for the block
  trigger_done,
  trigger_signal,
  trigger_queue
};

inline const char* channel_name(Channel c) {
  switch (c) {
    case Channel::local_arrival:
      return "local arrival";
    case Channel::halo_arrival:
      return "halo arrival";
    case Channel::reduction:
      return "reduction";
    case Channel::node_reduction:
      return "reduction of nodes";
    case Channel::trigger_room:
      return "room for triggers";
    case Channel::trigger_done:
      return "completion of a triggered operation";
    case Channel::trigger_signal:
      return "signal of a triggered operation";
    case Channel::trigger_queue:
      return "queue of triggered operations";
  }
  return "unknown";
}

// What a block was doing when its kernel gave up. One per block, written by that block alone and
// read by the host after all kernels have ended.
// `waiting` and `stopped`, where its process stands still, are of kernels that still run.
enum class BlockState : std::uint32_t {
  absent = 0,
  running,
  finished,
  expired,
  aborted,
  waiting,
  stopped
};

struct WaitRecord {
  BlockState state = BlockState::absent;
  Channel channel = Channel::local_arrival;
  std::int32_t from_pe = -1;  // who was waited for
  std::int32_t from_block = -1;
  Epoch want = 0;        // the epoch waited for
  Epoch seen = 0;        // the epoch last seen
  double seconds = 0.0;  // how long the wait had lasted

  bool waited() const { return state == BlockState::expired || state == BlockState::aborted; }
};

}  // namespace cpufree
