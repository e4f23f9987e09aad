// Flat all-reduce: every block pushes its partial sums to every PE, every block sums all partial
// sums of all blocks of all PEs in one fixed order. One hop, no atomics, no grid barrier; every
// block gets bitwise the same result, and has then heard from every block: it is a barrier too.
//
// Slots: symmetric, two parities x (pes * blocks) sources x `kReduceWidth` packets (128 bytes a
// source). Slot (parity, q, c) is written by block c of PE q alone, in the epochs of that parity.
//
// Reuse (write after read). Block a writes its slots for epoch e + 2 only after it has pulled
// epoch e + 1, that is, after it has a packet of epoch e + 1 of every block. A block pushes e + 1
// only after it has pulled e (push and pull alternate), and a pull ends with a block barrier after
// all its reads. So when a writes the slots of e + 2, every block has finished reading those of e,
// which are the same. Two parities suffice, and no slot holds a later epoch than the one waited
// for.
//
// Ordering: packets order nothing but themselves. As a barrier the all-reduce therefore proves that
// others have *read* what their partial sums depend on (write after read), and never that what they
// wrote is visible (read after write).
#pragma once

#include "cpufree/device/wait.hpp"

namespace cpufree {

inline constexpr int kReduceWidth = 8;  // most values of one all-reduce

// Packets that `ReduceSlots` needs on every PE.
CPUFREE_FN std::int64_t reduce_slot_count(int pes, int blocks) {
  return std::int64_t{2} * pes * blocks * kReduceWidth;
}

template <Port P>
class AllReduce {
 public:
  CPUFREE_KERNEL_FN AllReduce(P& port, Packet* slots) : port_(port), slots_(slots) {}

  CPUFREE_KERNEL_FN Epoch epoch() const { return epoch_; }

  // Contributes `count` <= kReduceWidth values, each a partial sum of the calling thread.
  CPUFREE_KERNEL_FN void push(double* partial, int count) {
    ++epoch_;
    port_.sum(partial, count);
    unsigned notes = 0;  // the host speaks to one thread of one block, which tells the others
    if (port_.pe() == 0 && port_.block() == 0)
      notes = port_.any_bits(port_.lane() == 0 ? port_.host_notes() : 0U);
    const std::uint64_t tag = make_tag(epoch_, notes);
    Packet* mine = slots_ + first(port_.pe() * port_.blocks() + port_.block());
    for (int k = port_.lane(); k < port_.pes() * count; k += port_.lanes())
      port_.put_packet(mine + k % count, k / count, partial[k % count], tag);
  }

  // Sums what all blocks pushed into `total`, and joins their notes. False: leave the kernel.
  CPUFREE_KERNEL_FN bool pull(double* total, int count, unsigned& notes) {
    const int sources = port_.pes() * port_.blocks();
    bool here = true;
    notes = 0;
    for (int k = 0; k < count; ++k) total[k] = 0.0;
    for (int s = port_.lane(); here && s < sources; s += port_.lanes())
      here = add(s, total, count, notes);
    here = port_.all(here);
    if (!here) return false;
    notes = port_.any_bits(notes);
    port_.sum(total, count);
    return true;
  }

 private:
  CPUFREE_KERNEL_FN std::int64_t first(int source) const {
    const std::int64_t parity = static_cast<std::int64_t>(epoch_ & 1U);
    return (parity * port_.pes() * port_.blocks() + source) * kReduceWidth;
  }

  CPUFREE_KERNEL_FN bool add(int source, double* total, int count, unsigned& notes) {
    const Packet* slot = slots_ + first(source);
    const WaitSite site{Channel::reduction, source / port_.blocks(), source % port_.blocks()};
    for (int k = 0; k < count; ++k) {
      Packet packet;
      if (!wait_packet(port_, slot + k, epoch_, site, packet)) return false;
      total[k] += packet.value;
      notes |= tag_notes(packet.tag);
    }
    return true;
  }

  P& port_;
  Packet* slots_;
  Epoch epoch_ = 0;
};

}  // namespace cpufree
