// Triggered operations, as kernels see them: a block triggers what the host has registered, or
// will, and waits for what has come of it, without leaving the kernel.
//
// A trigger is one packet in a ring of the block, in memory of the NIC (TriggerBoard). Ring (q, c)
// is written by block c of PE q alone; packet n of the ring, from 1, lies in slot (n - 1) % depth
// and carries n.
//
// Reuse (write after read). Packet n + depth is written only once `taken` has reached n. The NIC
// raises `taken` to n after it has read packet n, with a publish between. So no slot ever holds a
// later packet than the one the NIC looks for.
//
// Visibility. A thread that triggers has published after its stores, and after those of its block
// up to the last barrier; the NIC acquires once it has seen the packet. So the NIC reads what every
// contributor stored before its trigger: the counter reaches the threshold with the last of them.
// The NIC publishes what it has copied before it raises `signals` and `done`; waiters acquire. Both
// sides of a trigger fence at the scope that holds them: that of the PE where one of its blocks is
// the NIC and triggers it itself. What others stored and the block has acquired goes with it:
// causality order is transitive over scopes.
//
// Local reuse. `done` of an operation reaches e + 1 when its buffer of epoch e has been read: then
// it may be written again. With slots, epoch e + slots is the next to use it: who writes it waits
// for done >= e + 1.
//
// Posts do not go through the rings: a post that a full table waits for is never behind a trigger.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/triggered/device/trigger_types.hpp"

namespace cpufree {

// What a block waits for of its own PE's NIC, and of signals, however triggers are sent. All
// threads of the block call each verb together; false: leave the kernel.
template <Port P>
class TriggerWaits {
 public:
  CPUFREE_KERNEL_FN TriggerWaits(P& port, const TriggerBoard& board) : port_(port), board_(board) {}

  // Waits until the local buffer of epoch `tag.epoch` may be used again; of a get: until it is
  // filled. For operations of the own PE's NIC.
  CPUFREE_KERNEL_FN bool wait_done(TriggerTag tag) {
    return wait_for(board_.done + tag.operation, tag,
                    {Channel::trigger_done, port_.pe(), static_cast<int>(tag.operation)});
  }

  // Waits until the signal has come with which `pe`'s NIC ends epoch `epoch` of an operation.
  CPUFREE_KERNEL_FN bool wait_signal(int signal, std::uint32_t epoch, int pe) {
    return wait_for(board_.signals + signal, {0, epoch}, {Channel::trigger_signal, pe, signal});
  }

 protected:
  CPUFREE_KERNEL_FN bool wait_for(const Flag* flag, TriggerTag tag, const WaitSite& site) {
    bool here = true;
    if (port_.lane() == 0) {
      here = wait_flag(port_, flag, Epoch{tag.epoch} + 1, site);
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }

  // Triggers by `grain` the tags from `first` on: of each item or block where its operation is one
  // of its own, numbered on from there. `ways` has trigger(tag), of the block; each(items, first,
  // number), of item i the operation first + number(i); and same(items, tag), of all items one tag.
  template <class Ways>
  CPUFREE_KERNEL_FN static bool by_grain(Ways& ways, int block, TriggerGrain grain,
                                         TriggerTag first, std::int64_t items) {
    const std::int64_t before = block * items;
    const TriggerTag of_block{first.operation + static_cast<std::uint32_t>(block), first.epoch};
    switch (grain) {
      case TriggerGrain::item:
        return ways.each(items, first, [&](std::int64_t i) { return before + i; });
      case TriggerGrain::pair:
        return ways.each(items, first, [&](std::int64_t i) { return (before + i) / 2; });
      case TriggerGrain::group:
        return ways.trigger(of_block);
      case TriggerGrain::kernel:
        return ways.trigger(first);
      case TriggerGrain::uniform_group:
        return ways.same(items, of_block);
      default:
        return ways.same(items, first);
    }
  }

  P& port_;
  const TriggerBoard& board_;
};

// The triggers of one block to one NIC, as packets.
template <Port P>
class Triggers : public TriggerWaits<P> {
  using TriggerWaits<P>::port_;
  using TriggerWaits<P>::board_;

 public:
  // `nic`: the PE whose NIC is triggered. `sent`: packets that this block has sent it before.
  CPUFREE_KERNEL_FN Triggers(P& port, const TriggerBoard& board, int nic, Epoch sent = 0)
      : TriggerWaits<P>(port, board), nic_(nic), sent_(sent) {}

  CPUFREE_KERNEL_FN Epoch sent() const { return sent_; }

  // The block has `items` work-items, item i of thread i % lanes. Tags begin at `first`.
  CPUFREE_KERNEL_FN bool trigger(TriggerGrain grain, TriggerTag first, std::int64_t items) {
    return TriggerWaits<P>::by_grain(*this, port_.block(), grain, first, items);
  }

  // One trigger of the block, for all that its threads have written; with fields, a dynamic one.
  CPUFREE_KERNEL_FN bool trigger(TriggerTag tag, const TriggerFields& fields = {}) {
    unsigned given = 0;
    for (int k = 0; k < kTriggerFields; ++k) given += fields.given >> k & 1U;
    if (!make_room(given + 1)) return false;
    port_.sync_block();
    if (port_.lane() == 0) {
      port_.publish(scope());
      Epoch number = sent_;
      for (int k = 0; k < kTriggerFields; ++k)
        if ((fields.given >> k & 1U) != 0U)
          send(++number, packed_place(fields.value[k]), static_cast<TriggerWord>(k + 1));
      send(++number, packed(tag), TriggerWord::trigger);
    }
    sent_ += given + 1;
    return true;
  }

  // Tells the NIC that no trigger of this block will follow.
  CPUFREE_KERNEL_FN bool end() {
    if (!make_room(1)) return false;
    if (port_.lane() == 0) send(sent_ + 1, 0.0, TriggerWord::end);
    ++sent_;
    return true;
  }

 private:
  friend TriggerWaits<P>;

  CPUFREE_KERNEL_FN bool same(std::int64_t items, TriggerTag tag) {
    return each(items, tag, [](std::int64_t) { return std::int64_t{0}; });
  }

  // A trigger by each item, ordered after what its own thread has written.
  template <class F>
  CPUFREE_KERNEL_FN bool each(std::int64_t items, TriggerTag first, F&& number) {
    for (std::int64_t begin = 0; begin < items; begin += board_.depth) {
      const std::int64_t left = items - begin;
      const std::int64_t here = left < board_.depth ? left : board_.depth;
      if (!make_room(static_cast<Epoch>(here))) return false;
      for (std::int64_t i = port_.lane(); i < here; i += port_.lanes()) {
        port_.publish(scope());
        const auto add = static_cast<std::uint32_t>(number(begin + i));
        send(sent_ + static_cast<Epoch>(i) + 1, packed({first.operation + add, first.epoch}),
             TriggerWord::trigger);
      }
      sent_ += static_cast<Epoch>(here);
    }
    return true;
  }

  // Waits until the ring has room for `count` <= depth more packets. Every thread decides the same,
  // from numbers that all have.
  CPUFREE_KERNEL_FN bool make_room(Epoch count) {
    const auto depth = static_cast<Epoch>(board_.depth);
    if (sent_ + count <= room_ + depth) return true;
    room_ = sent_ + count - depth;
    bool here = true;
    if (port_.lane() == 0) {
      here = wait_flag(port_, board_.taken + nic_ * board_.blocks + port_.block(), room_,
                       WaitSite{Channel::trigger_room, nic_, port_.block()});
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }

  CPUFREE_KERNEL_FN Scope scope() const {
    return nic_ == port_.pe() ? board_.own_scope : Scope::system;
  }

  CPUFREE_KERNEL_FN void send(Epoch number, double value, TriggerWord word) {
    const std::int64_t ring = std::int64_t{port_.pe()} * board_.blocks + port_.block();
    const auto slot = static_cast<std::int64_t>((number - 1) % static_cast<Epoch>(board_.depth));
    port_.put_packet(board_.rings + ring * board_.depth + slot, nic_, value,
                     make_tag(number, static_cast<unsigned>(word)));
  }

  int nic_;
  Epoch sent_;
  Epoch room_ = 0;  // packets that are known to have been taken
};

// What has arrived here from the NIC of PE `source`, tag by tag. One block reads; its threads call
// `next` together.
//
// Reuse: the NIC writes entry n + depth once `queue_taken` there has reached n, which the reader
// raises after it has read entry n.
template <Port P>
class TriggerQueue {
 public:
  // `taken`: entries that were read before.
  CPUFREE_KERNEL_FN TriggerQueue(P& port, const TriggerBoard& board, int source, Epoch taken = 0)
      : port_(port), board_(board), source_(source), taken_(taken) {}

  CPUFREE_KERNEL_FN Epoch taken() const { return taken_; }

  // Waits for the next arrival. False: leave the kernel.
  CPUFREE_KERNEL_FN bool next(TriggerTag& tag) {
    const Epoch want = taken_ + 1;
    const std::int64_t slot = std::int64_t{source_} * board_.depth +
                              static_cast<std::int64_t>(taken_ % static_cast<Epoch>(board_.depth));
    Packet entry[1];
    const bool here = wait_packets<1>(
        port_, [&](int) { return board_.queue + slot; }, 1, want,
        [&](int) { return WaitSite{Channel::trigger_queue, source_, 0}; }, entry);
    port_.acquire(Scope::system);
    if (!port_.all(here)) return false;
    tag = unpacked(entry[0].value);
    taken_ = want;
    if (port_.lane() == 0) {
      port_.publish(Scope::system);
      port_.put_flag(board_.queue_taken + port_.pe(), source_, taken_);
    }
    return true;
  }

 private:
  P& port_;
  const TriggerBoard& board_;
  int source_;
  Epoch taken_;
};

}  // namespace cpufree
