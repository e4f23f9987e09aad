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
//
// More than `kReduceWidth` values travel in groups of as many, each with slots of its own. All
// groups are on their way before the first one is awaited, so that they wait for one another once.
#pragma once

#include "cpufree/device/wait.hpp"

namespace cpufree {

inline constexpr int kReduceWidth = 8;  // most values of a group

// Packets that an AllReduce of up to `values` values needs on every PE.
CPUFREE_FN std::int64_t reduce_slot_count(int pes, int blocks, int values = kReduceWidth) {
  const int groups = (values + kReduceWidth - 1) / kReduceWidth;
  return std::int64_t{2} * pes * blocks * kReduceWidth * groups;
}

template <Port P>
class AllReduce {
 public:
  // `epoch`: of the last reduction that took place.
  CPUFREE_KERNEL_FN AllReduce(P& port, Packet* slots, Epoch epoch = 0)
      : port_(port), slots_(slots), epoch_(epoch) {}

  CPUFREE_KERNEL_FN Epoch epoch() const { return epoch_; }
  CPUFREE_KERNEL_FN void go_on_from(Epoch epoch) { epoch_ = epoch; }

  // Contributes K values, each a partial sum of the calling thread.
  template <int K>
  CPUFREE_KERNEL_FN void push(const double (&partial)[K]) {
    ++epoch_;
    // The host speaks to one thread of one block, which tells the others.
    const bool ear = first_pe() == port_.pe() && port_.block() == 0 && port_.lane() == 0;
    const unsigned note = ear ? port_.host_notes() : 0U;
    if constexpr (K <= kReduceWidth)
      push_group(partial, note, slots_);
    else
      each_group<K>([&]<int first, int count>() {
        double group[count];
        CPUFREE_UNROLL
        for (int k = 0; k < count; ++k) group[k] = partial[first + k];
        if (first > 0) port_.sync_block();  // the port has room for the sums of one group
        push_group(group, note, slots_of(first));
      });
  }

  // Sums what all blocks pushed into `total`, and joins their notes. `gone`: a wait of the calling
  // thread was given up since the last reduction. False: that happened to some thread of the block;
  // leave the kernel.
  template <int K>
  CPUFREE_KERNEL_FN bool pull(double (&total)[K], unsigned& notes, bool gone) {
    return join(total, notes, gone, false);
  }

  // The last `total` again, for one thread that has not kept it (Port::recall).
  template <int K>
  CPUFREE_KERNEL_FN void recall(double (&total)[K]) {
    port_.recall(total);
  }

  // `push` and `pull`, with nothing between them but meanwhile().
  template <int K, class F>
  CPUFREE_KERNEL_FN bool sum(const double (&partial)[K], double (&total)[K], unsigned& notes,
                             bool gone, F&& meanwhile) {
    push(partial);
    meanwhile();
    return join(total, notes, gone, true);
  }

 private:
  static constexpr unsigned kGone = 1U << kNoteBits;

  // Those that sum together: all PEs, numbered from the first one; where PEs do not communicate,
  // each by itself; where loads and stores do not reach all, those of my node (node_reduce.hpp).
  static constexpr bool kAlone = !P::communicates;

  CPUFREE_KERNEL_FN int pes() const {
    if constexpr (kAlone) return 1;
    if constexpr (RemotePort<P>) return nodes().size(nodes().of_pe[port_.pe()]);
    return port_.pes();
  }
  CPUFREE_KERNEL_FN int first_pe() const {
    if constexpr (!kAlone) return 0;
    return port_.pe();
  }
  // The PE of each place among them, and my place.
  CPUFREE_KERNEL_FN int member(int at) const {
    if constexpr (P::communicates && RemotePort<P>)
      return nodes().pe(nodes().of_pe[port_.pe()], at);
    return first_pe() + at;
  }
  CPUFREE_KERNEL_FN int place() const {
    if constexpr (P::communicates && RemotePort<P>) return nodes().place[port_.pe()];
    return port_.pe() - first_pe();
  }
  CPUFREE_KERNEL_FN const Nodes& nodes() const
    requires RemotePort<P>
  {
    return port_.remote().nodes;
  }
  CPUFREE_KERNEL_FN int sources() const { return pes() * port_.blocks(); }

  CPUFREE_KERNEL_FN int slot(int source, int k) const {
    const int parity = static_cast<int>(epoch_ & 1U);
    const int first = parity * sources() * kReduceWidth;
    if constexpr (P::slots_by_source) return first + source * kReduceWidth + k;
    return first + k * sources() + source;
  }

  // What one thread collects: one value of the sources first, first + step, ..., `count` of them.
  struct Part {
    const Packet* packets;
    int stride;  // packets from one source to the next
    int count;
    int most;  // `count` of the first thread of all: that many for all threads
    int first;
    int step;
  };

  // f<first value, values>() of each group.
  template <int K, int first = 0, class F>
  CPUFREE_KERNEL_FN static void each_group(F&& f) {
    f.template operator()<first, (K - first < kReduceWidth ? K - first : kReduceWidth)>();
    if constexpr (first + kReduceWidth < K) each_group<K, first + kReduceWidth>(f);
  }
  CPUFREE_KERNEL_FN Packet* slots_of(int first) const {
    return slots_ + std::int64_t{2} * sources() * first;
  }
  template <int K>
  CPUFREE_KERNEL_FN void push_group(const double (&partial)[K], unsigned note, Packet* slots) {
    static_assert(K <= kReduceWidth);
    const int source = place() * port_.blocks() + port_.block();
    port_.scatter(partial, pes(), note, [&](int pe, int k, double sum, unsigned notes) {
      port_.put_packet(slots + slot(source, k), member(pe), sum, make_tag(epoch_, notes));
    });
  }

  template <int K>
  CPUFREE_KERNEL_FN bool join(double (&total)[K], unsigned& notes, bool gone, bool on_its_way) {
    unsigned bits = gone ? kGone : 0U;
    if constexpr (K <= kReduceWidth)
      join_group(total, bits, on_its_way, slots_);
    else
      each_group<K>([&]<int first, int count>() {
        double group[count];
        if (first > 0) port_.sync_block();
        join_group(group, bits, on_its_way && first == 0, slots_of(first));
        CPUFREE_UNROLL
        for (int k = 0; k < count; ++k) total[first + k] = group[k];
      });
    notes = bits & ~kGone;
    return (bits & kGone) == 0U;
  }
  template <int K>
  CPUFREE_KERNEL_FN void join_group(double (&total)[K], unsigned& bits, bool on_its_way,
                                    const Packet* slots) {
    port_.combine(
        total, bits, on_its_way,
        [&](int k, int rank, int size) {
          const int stride = P::slots_by_source ? kReduceWidth : 1;
          const int count = rank < sources() ? (sources() - rank + size - 1) / size : 0;
          const int most = (sources() + size - 1) / size;
          return Part{slots + slot(rank, k), size * stride, count, most, rank, size};
        },
        [&](const Part& part) {
          if (P::batch > 2 && part.most <= 2) return collect<2>(part, bits);
          return collect<P::batch>(part, bits);
        });
  }

  // The sum of a part, N packets looked at together.
  template <int N>
  CPUFREE_KERNEL_FN double collect(const Part& part, unsigned& bits) {
    double sum = 0.0;
    for (int begin = 0; begin < part.most; begin += N) {
      const int left = part.count - begin;
      const int here = left < N ? left : N;
      const auto site = [&](int missing) {
        const int source = part.first + (begin + missing) * part.step;
        return WaitSite{Channel::reduction, member(source / port_.blocks()),
                        source % port_.blocks()};
      };
      const auto packet = [&](int k) {
        return part.packets + std::int64_t{begin + k} * part.stride;
      };
      Packet got[N] = {};
      if (!wait_packets_together(port_, packet, here, epoch_, site, got)) {
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
