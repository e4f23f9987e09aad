// Flat all-reduce: every block pushes its partial sums to every PE, every block sums all partial
// sums of all blocks of all PEs in one fixed order. One hop, no atomics, no grid barrier; every
// block gets bitwise the same result, and has then heard from every block: it is a barrier too.
//
// Slots: symmetric, two parities x (pes * blocks) sources x `kReduceWidth` packets, sources or
// values first, as suits the engine's readers. Slot (parity, q, c, k) is written by block c of PE q
// alone, in the epochs of that parity.
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
//
// On GPUs what takes time is not the sums but the looks: hundreds of warps that ask for the same
// lines of the L2 queue up there, in the way of the packets. So few warps look for each value, each
// for several packets at once, and where nothing lies between push and pull they do not look before
// a packet can have come. (A collector for each value and PE, a second hop, and slots in several
// copies were tried: no gain, or a loss.)
#pragma once

#include "cpufree/device/wait.hpp"

namespace cpufree {

inline constexpr int kReduceWidth = 8;  // most values of one all-reduce

// Packets that an AllReduce needs on every PE.
CPUFREE_FN std::int64_t reduce_slot_count(int pes, int blocks) {
  return std::int64_t{2} * pes * blocks * kReduceWidth;
}

template <Port P>
class AllReduce {
 public:
  // `epoch`: of the last reduction that took place.
  CPUFREE_KERNEL_FN AllReduce(P& port, Packet* slots, Epoch epoch = 0)
      : port_(port), slots_(slots), epoch_(epoch) {}

  CPUFREE_KERNEL_FN Epoch epoch() const { return epoch_; }
  CPUFREE_KERNEL_FN void go_on_from(Epoch epoch) { epoch_ = epoch; }

  // Contributes K <= kReduceWidth values, each a partial sum of the calling thread.
  template <int K>
  CPUFREE_KERNEL_FN void push(const double (&partial)[K]) {
    static_assert(K <= kReduceWidth);
    ++epoch_;
    // The host speaks to one thread of one block, which tells the others.
    const bool ear = port_.pe() == 0 && port_.block() == 0 && port_.lane() == 0;
    const unsigned note = ear ? port_.host_notes() : 0U;
    const int source = port_.pe() * port_.blocks() + port_.block();
    port_.scatter(partial, port_.pes(), note, [&](int pe, int k, double sum, unsigned notes) {
      port_.put_packet(slots_ + slot(source, k), pe, sum, make_tag(epoch_, notes));
    });
  }

  // Sums what all blocks pushed into `total`, and joins their notes. `gone`: a wait of the calling
  // thread was given up since the last reduction. False: that happened to some thread of the block;
  // leave the kernel.
  template <int K>
  CPUFREE_KERNEL_FN bool pull(double (&total)[K], unsigned& notes, bool gone) {
    unsigned bits = gone ? kGone : 0U;
    port_.combine(total, bits,
                  [&](int k, int rank, int size) { return collect(k, rank, size, bits); });
    notes = bits & ~kGone;
    return (bits & kGone) == 0U;
  }

  // `push` and `pull` with nothing between them.
  template <int K>
  CPUFREE_KERNEL_FN bool sum(const double (&partial)[K], double (&total)[K], unsigned& notes,
                             bool gone) {
    push(partial);
    port_.pause();
    return pull(total, notes, gone);
  }

 private:
  static constexpr unsigned kGone = 1U << kNoteBits;

  CPUFREE_KERNEL_FN int sources() const { return port_.pes() * port_.blocks(); }

  CPUFREE_KERNEL_FN std::int64_t slot(int source, int k) const {
    const std::int64_t parity = static_cast<std::int64_t>(epoch_ & 1U);
    const std::int64_t first = parity * sources() * kReduceWidth;
    if constexpr (P::slots_by_source) return first + source * kReduceWidth + k;
    return first + static_cast<std::int64_t>(k) * sources() + source;
  }

  // The sum of value k of the sources rank, rank + size, ...
  CPUFREE_KERNEL_FN double collect(int k, int rank, int size, unsigned& bits) {
    constexpr int N = P::batch;
    const Packet* const packets = slots_ + slot(0, k);
    const std::int64_t stride = slot(1, k) - slot(0, k);
    double sum = 0.0;
    for (int first = rank; first < sources(); first += N * size) {
      int here = 1;
      while (here < N && first + here * size < sources()) ++here;
      const auto site = [&](int missing) {
        const int source = first + missing * size;
        return WaitSite{Channel::reduction, source / port_.blocks(), source % port_.blocks()};
      };
      Packet got[N] = {};
      if (!wait_packets(port_, packets + first * stride, size * stride, here, epoch_, site, got)) {
        bits |= kGone;
        return sum;
      }
      CPUFREE_UNROLL
      for (int b = 0; b < N; ++b) {
        if (b >= here) continue;
        sum += got[b].value;
        bits |= tag_notes(got[b].tag);
      }
    }
    return sum;
  }

  P& port_;
  Packet* slots_;
  Epoch epoch_;
};

}  // namespace cpufree
