// How a block brings its share of a matrix on chip piece by piece: each warp has a ring of slots in
// fast memory, and the engine's bulk copies fill them with the chunks of the warp's slices
// (warp_slices.hpp) in the order in which the warp reads them, round and round. The ring goes on
// from product to product: what a block does in between, waiting for sums and ghosts above all, the
// next product's first chunks travel meanwhile.
//
// Protocol, of one slot. (1) One lane, the one that has looked up the chunk, announces the bytes at
// the slot's barrier and starts the copies; or, on engines that copy by warps, it tells the others,
// and each lane starts copies of its pieces and arrives at the barrier when they have come. (2) All
// lanes wait for the barrier's phase; its completion makes the bytes visible to every thread that
// has seen it. (3) They read. (4) They meet (warp_sync), which orders their reads before what a
// lane does next: (1), for the chunk that is `slots` further on. So a slot is written only while no
// lane reads it, by one lane or by several: those write apart from one another, and the phase is
// complete when all of theirs have come. Phases of a barrier complete in turn, and a lane is never
// more than one behind, since it takes part in (4) before the next phase begins: the parity of the
// phase tells which one it is. A wait that outlasts any copy ends the kernel with an error of the
// device: there is no other block to name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/device/port.hpp"
#include "cpufree/formats/slices/slice_limits.hpp"

namespace cpufree {

inline constexpr int kSliceHead = 32;            // bytes of a WarpSlice
inline constexpr std::uint32_t kFeedGrain = 32;  // bytes

// One chunk, for the one who starts its copy: where it begins in the share, and its bytes, in
// grains; and if it is the first one of a slice, 1 + the slice's number.
struct FeedItem {
  std::uint32_t grain = 0;
  std::uint32_t what = 0;  // bytes / kFeedGrain in the upper 8 bits

  CPUFREE_FN std::uint32_t bytes() const { return (what >> 24U) * kFeedGrain; }
  CPUFREE_FN std::int32_t slice() const { return static_cast<std::int32_t>(what & 0xffffffU) - 1; }
};
inline constexpr std::int32_t kMostFeedSlices = 0xffffff - 1;

// The rings of a block. No slots: products read memory.
struct RingShape {
  std::int32_t slots = 0;       // of each
  std::int32_t slot_bytes = 0;  // a multiple of kSliceUnit; a slice's head comes last
  std::int32_t warps = 0;       // that have a ring
  bool passing = false;         // what is copied is not worth keeping in a cache, but for
  std::int32_t kept = 0;        // how many of 256 copies are to stay there

  // What is said of a warp's copy of this number. Kept ones are spread evenly, so that cache and
  // memory deliver side by side.
  CPUFREE_FN CacheHint hint_of(std::uint32_t item) const {
    if (!passing) return CacheHint::none;
    const auto of_256 = static_cast<std::uint32_t>(kept);
    return (item * of_256 & 255U) < of_256 ? CacheHint::keep : CacheHint::drop;
  }
};

// Where they are, warp after warp, and the chunks of each, interior rows' first.
struct SliceRing {
  const std::byte* bytes = nullptr;  // of the slices, and their heads
  const std::byte* heads = nullptr;
  const FeedItem* items = nullptr;
  const std::uint32_t* first = nullptr;  // warps of the block + 1: the items of each
  std::byte* fast = nullptr;             // 16-byte aligned
  RingShape shape;
};

// What a warp's ring begins with; its slots follow.
struct alignas(16) RingState {
  std::uint64_t barrier[kMostSlots];
  std::uint32_t slot;    // to be read next
  std::uint32_t parity;  // of its phase
  std::uint32_t item;    // to be copied next
  std::uint32_t unused;
};

CPUFREE_FN std::size_t ring_bytes_of_warp(const RingShape& ring) {
  return sizeof(RingState) +
         static_cast<std::size_t>(ring.slots) * static_cast<std::size_t>(ring.slot_bytes);
}
CPUFREE_FN std::size_t ring_bytes(const RingShape& ring) {
  return ring.slots == 0 ? 0 : static_cast<std::size_t>(ring.warps) * ring_bytes_of_warp(ring);
}

// Engines that copy in bulk.
template <class P>
concept BulkPort = requires(P& port, std::uint64_t* barrier, std::byte* to, const std::byte* from) {
  // One lane: a barrier for one copy, or several, at a time; what is copied next, all of it.
  port.bulk_barrier(barrier);
  port.bulk_announce(barrier, std::uint32_t{});
  // One lane, or, with bulk_by_warp, each of a warp: starts its part of a copy of N bytes, as all
  // addresses a multiple of 16; when it has started all that was announced.
  { P::bulk_by_warp } -> std::same_as<const bool&>;
  port.bulk_copy(to, from, std::uint32_t{}, barrier, CacheHint::none);
  port.bulk_end(barrier);
  // After barriers were made, by who made them.
  port.bulk_ready();
  // Until the phase of this parity is complete.
  port.bulk_wait(barrier, std::uint32_t{});
  port.warp_sync();
  // An array in fast memory that does not change, or none.
  port.in_fast_memory(static_cast<const double*>(nullptr))[0U];
  // Of the lane whose number differs in these bits.
  { port.warp_across(0.0, 1) } -> std::same_as<double>;
};

// A thread's view of its warp's ring. The threads of a warp do all of it together.
template <BulkPort P>
class RingReader {
 public:
  CPUFREE_KERNEL_FN RingReader(P& port, const SliceRing& ring) : port_(port), ring_(ring) {
    const int warp = port.lane() / P::warp_width;
    mine_ = ring_of(ring, warp);
    begin_ = ring.first[warp];
    count_ = ring.first[warp + 1] - begin_;
    if (count_ == 0) return;  // then it may have no ring, either
    const RingState& state = *state_of(mine_);
    slot_ = state.slot, parity_ = state.parity, item_ = state.item;
    batch_ = fetch(0), ahead_ = fetch(P::warp_width);
  }

  // The next chunk: where it is, once it is.
  CPUFREE_KERNEL_FN const std::byte* wait() {
    port_.bulk_wait(barrier(slot_), parity_);
    return place(slot_);
  }
  // The head of the slice that the chunk begins, if it does.
  CPUFREE_KERNEL_FN const std::byte* head() const {
    return place(slot_) + ring_.shape.slot_bytes - kSliceHead;
  }
  // All that was to be read of the chunk has been.
  CPUFREE_KERNEL_FN void next() {
    port_.warp_sync();
    fill(slot_);
    advance();
  }
  // Before another reader of the warp is made.
  CPUFREE_KERNEL_FN void put_down() {
    if (my_lane() == 0) {
      RingState& state = *state_of(mine_);
      state.slot = slot_, state.parity = parity_, state.item = item_;
    }
    port_.warp_sync();
  }

  // Once for a warp, before the first product.
  CPUFREE_KERNEL_FN static void open(P& port, const SliceRing& ring) {
    const int warp = port.lane() / P::warp_width;
    if (ring.shape.slots == 0 || ring.first[warp] == ring.first[warp + 1]) return;
    if (port.lane() % P::warp_width == 0) {
      RingState& state = *state_of(ring_of(ring, warp));
      state.slot = state.parity = state.item = 0;
      for (int k = 0; k < ring.shape.slots; ++k) port.bulk_barrier(&state.barrier[k]);
      port.bulk_ready();
    }
    port.warp_sync();
    RingReader reader(port, ring);
    for (int k = 0; k < ring.shape.slots; ++k) reader.fill(static_cast<std::uint32_t>(k));
    port.warp_sync();
    reader.put_down();
  }
  // Nothing is on its way any more.
  CPUFREE_KERNEL_FN void drain() {
    if (count_ == 0) return;
    for (int k = 0; k < ring_.shape.slots; ++k, advance()) port_.bulk_wait(barrier(slot_), parity_);
  }

 private:
  CPUFREE_KERNEL_FN static std::byte* ring_of(const SliceRing& ring, int warp) {
    return ring.fast + static_cast<std::size_t>(warp) * ring_bytes_of_warp(ring.shape);
  }
  CPUFREE_KERNEL_FN static RingState* state_of(std::byte* ring) {
    return reinterpret_cast<RingState*>(ring);
  }
  CPUFREE_KERNEL_FN std::uint64_t* barrier(std::uint32_t slot) const {
    return &state_of(mine_)->barrier[slot];
  }
  CPUFREE_KERNEL_FN std::byte* place(std::uint32_t slot) const {
    return mine_ + sizeof(RingState) + slot * static_cast<std::uint32_t>(ring_.shape.slot_bytes);
  }
  CPUFREE_KERNEL_FN void advance() {
    if (++slot_ == static_cast<std::uint32_t>(ring_.shape.slots)) slot_ = 0, parity_ ^= 1U;
  }

  CPUFREE_KERNEL_FN std::uint32_t my_lane() const {
    return static_cast<std::uint32_t>(port_.lane()) % P::warp_width;
  }

  // My lane's of the 32 items that are `further` ones on.
  CPUFREE_KERNEL_FN FeedItem fetch(std::uint32_t further) const {
    const auto lane = my_lane();
    return ring_.items[begin_ + (item_ + further + lane) % count_];
  }

  // Starts the copy of the next item.
  CPUFREE_KERNEL_FN void fill(std::uint32_t slot) {
    if (used_ == P::warp_width) {
      batch_ = ahead_;
      ahead_ = fetch(P::warp_width);
      used_ = 0;
    }
    if constexpr (P::bulk_by_warp) {
      const int from = static_cast<int>(used_);
      const FeedItem item = {port_.warp_broadcast(batch_.grain, from),
                             port_.warp_broadcast(batch_.what, from)};
      copy(item, slot, ring_.shape.hint_of(item_));
    } else {
      if (my_lane() == used_) copy(batch_, slot, ring_.shape.hint_of(item_));
    }
    ++used_;
    if (++item_ == count_) item_ = 0;
  }
  CPUFREE_KERNEL_FN void copy(const FeedItem& item, std::uint32_t slot, CacheHint hint) {
    std::uint64_t* const barrier = this->barrier(slot);
    std::byte* const to = place(slot);
    const std::uint32_t entries = item.bytes();
    const std::int32_t slice = item.slice();
    port_.bulk_announce(barrier, entries + (slice >= 0 ? kSliceHead : 0U));
    if (entries > 0)
      port_.bulk_copy(to, ring_.bytes + std::size_t{item.grain} * kFeedGrain, entries, barrier,
                      hint);
    if (slice >= 0)
      port_.bulk_copy(to + ring_.shape.slot_bytes - kSliceHead,
                      ring_.heads + static_cast<std::size_t>(slice) * kSliceHead, kSliceHead,
                      barrier, hint);
    port_.bulk_end(barrier);
  }

  P& port_;
  const SliceRing& ring_;
  std::byte* mine_ = nullptr;  // my warp's
  std::uint32_t slot_ = 0, parity_ = 0, item_ = 0;
  std::uint32_t begin_ = 0, count_ = 0;
  FeedItem batch_, ahead_;
  std::uint32_t used_ = 0;  // of the batch
};

}  // namespace cpufree
