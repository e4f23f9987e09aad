// Triggered operations: what blocks, NICs and the host tell one another (LeBeane et al. 2017, "GPU
// Triggered Networking for Intra-Kernel Communications"; the rules are those of
// reference/trigger_rules.hpp). A NIC is whatever carries operations out for a PE: a thread, a
// block of a GPU, a network card. Plain data.
//
// An operation is a number less than `operations`; with an epoch it is a tag. Places in memory are
// offsets into symmetric memory, so that they mean the same on each PE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/port.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/device/types.hpp"

namespace cpufree {

struct TriggerTag {
  std::uint32_t operation = 0;
  std::uint32_t epoch = 0;
  bool operator==(const TriggerTag&) const = default;
};

// What a packet to a NIC means, in its notes. Fields belong to the trigger that follows in the same
// ring; `end` is the last packet of a kernel.
enum class TriggerWord : unsigned { trigger, source, target, pe, end };
inline constexpr int kTriggerFields = 3;

// Tags travel as the value of a packet: an integer below 2^52, which a double holds exactly.
inline constexpr std::uint32_t kTriggerOperations = std::uint32_t{1} << 20;
inline constexpr std::uint64_t kTriggerThresholds = std::uint64_t{1} << 31;
// Buffers that a NIC knows at a time.
inline constexpr std::uint32_t kTriggerBuffers = 1024;

// Places and PEs travel likewise. What a double does not hold is no place anywhere, and stays none.
CPUFREE_FN double packed_place(std::uint64_t place) {
  constexpr std::uint64_t kNowhere = std::uint64_t{1} << 53;
  return static_cast<double>(place < kNowhere ? place : kNowhere);
}
CPUFREE_FN double packed(TriggerTag tag) {
  return static_cast<double>((std::uint64_t{tag.operation} << 32) | tag.epoch);
}
CPUFREE_FN TriggerTag unpacked(double value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
}

// Fields that a dynamic trigger supplies: places (of source and target) and a PE. Bit k: value[k].
struct TriggerFields {
  unsigned given = 0;
  std::uint64_t value[kTriggerFields] = {};

  static constexpr unsigned source = 1U, target = 2U, pe = 4U;
  bool operator==(const TriggerFields&) const = default;
};

enum class TriggerKind : std::uint32_t { put, get };

// A registered operation. Epoch e uses places source + (e % slots) * source_step, and the same for
// target: with two slots, epochs take turns with two buffers. A put copies from `source` on the
// NIC's PE to `target` on `pe`, a get from `source` on `pe` to `target` on the NIC's PE.
struct TriggerOperation {
  TriggerTag first;  // the first epoch
  TriggerKind kind = TriggerKind::put;
  std::uint32_t epochs = 1;
  std::uint64_t threshold = 1;
  unsigned open = 0;  // fields that triggers supply
  std::int32_t pe = 0;
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  std::uint64_t bytes = 0;
  std::uint64_t source_step = 0;
  std::uint64_t target_step = 0;
  std::uint32_t slots = 1;
  std::int32_t signal = -1;   // flag on `pe` that becomes epoch + 1; -1: none
  std::uint32_t reports = 0;  // 1: `pe` finds the tag in its queue
};

// How triggers of a kernel are grouped (LeBeane et al. 2017, section 3.2, there for OpenCL).
enum class TriggerGrain : std::uint32_t {
  item,           // each work-item has a tag of its own
  pair,           // two neighbouring items share one
  group,          // each block has one; its first thread triggers
  kernel,         // all blocks share one; their first threads trigger
  uniform_group,  // each block has one; all items trigger: no branch
  uniform_kernel  // all blocks share one; all items trigger
};

// Tags that a grain takes, and triggers that each gets, of `blocks` blocks of `items` items.
struct TriggerShape {
  std::int64_t tags;
  std::int64_t threshold;
};
CPUFREE_FN TriggerShape trigger_shape(TriggerGrain grain, int blocks, std::int64_t items) {
  switch (grain) {
    case TriggerGrain::item:
      return {blocks * items, 1};
    case TriggerGrain::pair:
      return {blocks * items / 2, 2};
    case TriggerGrain::group:
      return {blocks, 1};
    case TriggerGrain::kernel:
      return {1, blocks};
    case TriggerGrain::uniform_group:
      return {blocks, items};
    default:
      return {1, blocks * items};
  }
}

// The memory of triggered operations on one PE, symmetric. For each array: who writes.
struct TriggerBoard {
  std::byte* heap = nullptr;  // of my PE: where offsets count from
  Packet* rings = nullptr;  // [pes * blocks][depth], the trigger addresses of my NIC: block (q, c)
  Flag* taken = nullptr;    // [pes * blocks]: NIC q, packets that it took of my block c
  TriggerOperation* posts = nullptr;  // [depth]: the host
  Flag* posted = nullptr;             // the host: number of posts
  Flag* posts_taken = nullptr;        // my NIC: posts that it took
  Flag* done = nullptr;     // [operations]: my NIC, epochs whose local buffer is free (get: filled)
  Flag* signals = nullptr;  // [signals]: the NIC with the operation that names it, epoch + 1
  Packet* queue = nullptr;  // [pes][depth]: NIC q, tags that have arrived here
  Flag* queue_taken = nullptr;  // [pes]: the reader on q, entries that it took of mine there
  // [kTriggerBuffers]: the host, memory that operations may name: offset and bytes; 0 bytes: none.
  Packet* buffers = nullptr;
  Flag* buffer_count = nullptr;  // the host: entries of `buffers` that it has written
  std::int32_t pes = 1;
  std::int32_t blocks = 1;
  std::int32_t depth = 0;
  std::int32_t operations = 0;
  std::int32_t signal_count = 0;
  // What orders data before triggers of the own PE's NIC: Scope::pe where a block of the PE is it.
  Scope own_scope = Scope::system;
};

struct TriggerSizes {
  int pes = 1;
  int blocks = 1;
  int depth = 64;  // packets of a ring, posts under way, entries of a queue for each source
  int operations = 1;
  int signals = 0;
};

class TriggerLayout {
 public:
  TriggerLayout(SymmetricLayout& layout, const TriggerSizes& sizes)
      : sizes_(sizes),
        rings_(layout.reserve<Packet>(rings() * depth())),
        taken_(layout.reserve<Flag>(rings())),
        posts_(layout.reserve<TriggerOperation>(depth())),
        posted_(layout.reserve<Flag>(2)),
        done_(layout.reserve<Flag>(static_cast<std::size_t>(sizes.operations))),
        signals_(layout.reserve<Flag>(static_cast<std::size_t>(sizes.signals))),
        queue_(layout.reserve<Packet>(pes() * depth())),
        queue_taken_(layout.reserve<Flag>(pes())),
        buffers_(layout.reserve<Packet>(kTriggerBuffers)),
        buffer_count_(layout.reserve<Flag>(1)) {}

  TriggerBoard board(std::byte* heap) const {
    return {heap,
            rings_.at(heap),
            taken_.at(heap),
            posts_.at(heap),
            posted_.at(heap),
            posted_.at(heap) + 1,
            done_.at(heap),
            signals_.at(heap),
            queue_.at(heap),
            queue_taken_.at(heap),
            buffers_.at(heap),
            buffer_count_.at(heap),
            sizes_.pes,
            sizes_.blocks,
            sizes_.depth,
            sizes_.operations,
            sizes_.signals,
            Scope::system};
  }
  const TriggerSizes& sizes() const { return sizes_; }

 private:
  std::size_t pes() const { return static_cast<std::size_t>(sizes_.pes); }
  std::size_t depth() const { return static_cast<std::size_t>(sizes_.depth); }
  std::size_t rings() const { return pes() * static_cast<std::size_t>(sizes_.blocks); }

  TriggerSizes sizes_;
  Symmetric<Packet> rings_;
  Symmetric<Flag> taken_;
  Symmetric<TriggerOperation> posts_;
  Symmetric<Flag> posted_;
  Symmetric<Flag> done_;
  Symmetric<Flag> signals_;
  Symmetric<Packet> queue_;
  Symmetric<Flag> queue_taken_;
  Symmetric<Packet> buffers_;
  Symmetric<Flag> buffer_count_;
};

}  // namespace cpufree
