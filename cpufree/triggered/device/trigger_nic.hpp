// A NIC of triggered operations in software, over the port: looks at posts and rings, keeps the
// table, and carries operations out. What runs it is a thread, or a block of its own; how bytes
// move is a policy. triggered.hpp has the protocol and its proof.
//
// A mover has
//   put(port, to, pe, from, bytes)   copies to `to`, symmetric memory of mine, as it is on `pe`;
//   get(port, to, pe, from, bytes)   copies from `from`, symmetric, as it is on `pe`;
//   fired(tag, fields)               called once the operation's flags are set.
// It may return before a copy has ended if `port.publish` orders the copy before later flags. Where
// Mover::signals, signals travel with the copy, and the NIC does not store them.
//
// `Table` is TriggerTable, or one with the same calls whose ready() says when an operation that
// something else has carried out may be retired; settle() then looks at it again.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/triggered/device/trigger_table.hpp"

namespace cpufree {

// What a NIC remembers of a ring, and of its way to a PE's queue.
struct TriggerRing {
  Epoch taken = 0;
  TriggerFields fields;  // of the trigger to come
  std::uint32_t ended = 0;
};

// The posts of one PE, by its host. `posts` of them are in the list, of which the NIC has taken
// some.
template <class P>
class TriggerPosts {
 public:
  CPUFREE_KERNEL_FN TriggerPosts(P& port, const TriggerBoard& board, Epoch posts = 0)
      : port_(port), board_(board), posts_(posts) {}

  // False: the NIC has not made room within the bound.
  CPUFREE_KERNEL_FN bool post(const TriggerOperation& operation) {
    const auto depth = static_cast<Epoch>(board_.depth);
    if (posts_ >= depth && !wait_flag(port_, board_.posts_taken, posts_ + 1 - depth,
                                      WaitSite{Channel::trigger_room, port_.pe(), 0}))
      return false;
    port_.acquire(Scope::system);
    board_.posts[posts_ % depth] = operation;
    port_.publish(Scope::system);
    port_.put_flag(board_.posted, port_.pe(), ++posts_);
    return true;
  }
  CPUFREE_KERNEL_FN Epoch posts() const { return posts_; }

  // Entry `slot` of the buffers that the NIC knows; 0 bytes take it back. The NIC sees one that was
  // shown before the post, or the launch of the kernel, that names it.
  CPUFREE_KERNEL_FN void show_buffer(std::uint32_t slot, std::uint64_t offset,
                                     std::uint64_t bytes) {
    port_.put_packet(board_.buffers + slot, port_.pe(), packed_place(offset), bytes);
    port_.publish(Scope::system);
    if (slot < buffers_) return;
    buffers_ = Epoch{slot} + 1;
    port_.put_flag(board_.buffer_count, port_.pe(), buffers_);
  }

 private:
  P& port_;
  const TriggerBoard& board_;
  Epoch posts_;
  Epoch buffers_ = 0;  // entries that have been shown
};

template <class P, class Mover, class Table = TriggerTable>
class TriggerNic {
 public:
  // Arrays of zeros: rings[pes * blocks], queued[pes].
  struct Memory {
    TriggerRing* rings = nullptr;
    Epoch* queued = nullptr;
  };
  CPUFREE_KERNEL_FN TriggerNic(P& port, const TriggerBoard& board, Table& table,
                               const Memory& memory, Mover& mover)
      : port_(port),
        board_(board),
        table_(table),
        memory_(memory),
        mover_(mover),
        open_(board.pes * board.blocks) {}

  // Whether the next packet of a ring has come. Any thread may ask while none takes.
  CPUFREE_KERNEL_FN bool has_packet(int number, Packet& packet) {
    const Epoch taken = memory_.rings[number].taken;
    packet = look(number, taken);
    return arrived(packet, taken + 1);
  }

  // One look at the posts and at each ring. True: something was found there.
  CPUFREE_KERNEL_FN bool progress() {
    bool found = take_posts();
    for (int ring = 0; ring < board_.pes * board_.blocks; ++ring) found = take(ring) || found;
    return found;
  }

  // Carries out all epochs of an operation that are ready.
  CPUFREE_KERNEL_FN void settle(std::uint32_t operation) {
    for (TriggerEntry* entry = table_.ready(operation); entry != nullptr;
         entry = table_.ready(operation)) {
      acquire_triggers();
      const TriggerFault why = fault_of(port_, board_, *entry);
      if (!why.refused()) carry_out(*entry);
      const TriggerTag tag = entry->tag;
      const TriggerFields fields = entry->fields;
      table_.retire(entry, why);
      if (!why.refused()) mover_.fired(tag, fields);
    }
  }

  // A wait for room in the queue of a PE was given up.
  CPUFREE_KERNEL_FN bool gave_up() const { return gave_up_; }

  // Until all blocks have said that they end, or a wait is given up.
  CPUFREE_KERNEL_FN bool run() {
    while (open_ > 0) {
      auto wait = port_.start_wait();
      while (!progress())
        if (!port_.keep_waiting(wait)) return false;
    }
    return !gave_up_;
  }

  // One look at the posts, or at a ring: `progress` in pieces.
  CPUFREE_KERNEL_FN bool take_posts() {
    const Epoch posted = port_.get_flag(board_.posted);
    if (posts_ == posted) return false;
    port_.acquire(Scope::system);
    const Epoch before = posts_;
    while (posts_ != posted) {
      const TriggerOperation operation = board_.posts[posts_ % static_cast<Epoch>(board_.depth)];
      if (!table_.post(operation)) break;
      ++posts_;
      settle(operation.first.operation);
    }
    if (posts_ == before) return false;
    port_.publish(Scope::system);
    port_.put_flag(board_.posts_taken, port_.pe(), posts_);
    return true;
  }

  CPUFREE_KERNEL_FN bool take(int number) {
    return take(number, look(number, memory_.rings[number].taken));
  }
  // `packet`: what has_packet found in the ring.
  CPUFREE_KERNEL_FN bool take(int number, Packet packet) {
    TriggerRing& ring = memory_.rings[number];
    const Epoch before = ring.taken;
    const bool own = number / board_.blocks == port_.pe();
    while (arrived(packet, ring.taken + 1) && accept(ring, packet, own)) {
      ++ring.taken;
      if (ring.taken - before == static_cast<Epoch>(board_.depth)) break;
      packet = look(number, ring.taken);
    }
    if (ring.taken == before) return false;
    port_.publish(Scope::system);
    port_.put_flag(board_.taken + port_.pe() * board_.blocks + number % board_.blocks,
                   number / board_.blocks, ring.taken);
    return true;
  }

 private:
  CPUFREE_KERNEL_FN Packet look(int number, Epoch taken) {
    const auto slot = static_cast<std::int64_t>(taken % static_cast<Epoch>(board_.depth));
    return port_.get_packet(board_.rings + std::int64_t{number} * board_.depth + slot);
  }

  // Once for all triggers seen since the last time: the fence comes after the loads of all of them.
  CPUFREE_KERNEL_FN void acquire_triggers() {
    if (!seen_) return;
    port_.acquire(far_ ? Scope::system : board_.own_scope);
    seen_ = far_ = false;
  }

  // False: no room, the packet stays where it is. `own`: of a block of the own PE.
  CPUFREE_KERNEL_FN bool accept(TriggerRing& ring, const Packet& packet, bool own) {
    const auto word = static_cast<TriggerWord>(tag_notes(packet.tag));
    if (word == TriggerWord::end) {
      --open_;
      ring.ended = 1;
    } else if (word == TriggerWord::trigger) {
      const TriggerTag tag = unpacked(packet.value);
      if (!table_.trigger(tag, ring.fields)) return false;
      if constexpr (TracingPort<P>) tell_found(ring);
      ring.fields = TriggerFields{};
      seen_ = true;
      far_ = far_ || !own;
      settle(tag.operation);
    } else {
      const auto k = static_cast<unsigned>(word) - 1U;
      ring.fields.given |= 1U << k;
      ring.fields.value[k] = static_cast<std::uint64_t>(packet.value);
    }
    return true;
  }

  CPUFREE_KERNEL_FN void carry_out(const TriggerEntry& entry) {
    const TriggerOperation& o = entry.operation;
    const TriggerPlaces at = places_of(entry);
    const int there = static_cast<int>(at.pe);
    if constexpr (TracingPort<P>) port_.enter(static_cast<int>(entry.tag.operation));
    if constexpr (TracingPort<P>)
      if (o.kind == TriggerKind::put) port_.moves(there, o.bytes);
    if (o.kind == TriggerKind::put)
      mover_.put(port_, board_.heap + at.target, there, board_.heap + at.source, o.bytes);
    else
      mover_.get(port_, board_.heap + at.target, there, board_.heap + at.source, o.bytes);
    tell(entry.tag, o, there);
    if constexpr (TracingPort<P>) port_.enter(-1);
  }
  // Tells a port that traces that the next packet of a ring has been taken.
  CPUFREE_KERNEL_FN void tell_found(const TriggerRing& ring) {
    const auto number = static_cast<int>(&ring - memory_.rings);
    const auto slot = static_cast<std::int64_t>(ring.taken % static_cast<Epoch>(board_.depth));
    port_.finds(board_.rings + std::int64_t{number} * board_.depth + slot,
                {Channel::trigger_room, number / board_.blocks, number % board_.blocks},
                ring.taken + 1);
  }

  // What has been copied is ordered before the flags that say so.
  CPUFREE_KERNEL_FN void tell(TriggerTag tag, const TriggerOperation& o, int pe) {
    port_.publish(Scope::system);
    const Epoch epochs = Epoch{tag.epoch} + 1;
    if (!Mover::signals && o.signal >= 0) port_.put_flag(board_.signals + o.signal, pe, epochs);
    if (o.reports != 0U) report(tag, pe);
    port_.put_flag(board_.done + tag.operation, port_.pe(), epochs);
  }

  CPUFREE_KERNEL_FN void report(TriggerTag tag, int pe) {
    const auto depth = static_cast<Epoch>(board_.depth);
    const Epoch number = ++memory_.queued[pe];
    if (number > depth && !wait_flag(port_, board_.queue_taken + pe, number - depth,
                                     WaitSite{Channel::trigger_queue, pe, 0})) {
      gave_up_ = true;
      return;
    }
    port_.acquire(Scope::system);
    const auto slot = static_cast<std::int64_t>((number - 1) % depth);
    port_.put_packet(board_.queue + std::int64_t{port_.pe()} * board_.depth + slot, pe, packed(tag),
                     make_tag(number, 0U));
  }

  P& port_;
  const TriggerBoard& board_;
  Table& table_;
  Memory memory_;
  Mover& mover_;
  Epoch posts_ = 0;  // taken
  int open_;
  bool gave_up_ = false;
  bool seen_ = false;  // triggers that have not been acquired
  bool far_ = false;   // some of them are of other PEs
};

}  // namespace cpufree
