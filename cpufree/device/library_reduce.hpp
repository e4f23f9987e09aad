// All-reduce by a library, to compare with: the flat all-reduce (allreduce.hpp) among the blocks of
// each PE alone; then one thread of each PE, the first of block 0, calls the library, which sums
// over PEs (`sum_over_pes`, port.hpp); then it tells the blocks of its PE, by packets. Where the
// library gives all PEs the same bits, as it must, every block gets bitwise the same result, and
// has heard from every block of every PE: it is a barrier too, with the reservation of
// allreduce.hpp.
//
// The notes of PE 0, which alone listens to its host, travel as one more value: those of the others
// count as zero, and the sum is the notes themselves.
//
// The library's call waits for all PEs, and knows no bound. A PE that leaves its kernel leaves the
// first threads of the others waiting; their blocks give up as for any wait, and the host ends the
// team (CudaRunner::listen).
//
// `in` (write after read) has two parities. The library may write a PE's `in` of epoch e + 2 from
// when the first PE calls it for e + 2. That PE has its result of e + 1, to which all contributed;
// each of these had called for e + 1 after its thread had read its `in` of e, which is the same.
//
// `out` is the caller's again when the call returns.
//
// `told` (write after read): one set of packets for all epochs. Block 0 writes that of e + 1 once
// it has its PE's sums of e + 1, to which every block of the PE contributed; each of these had
// finished e before, and a pull ends with a block barrier after all its reads. So no packet holds a
// later epoch than the one waited for, either.
//
// The slots of the flat all-reduce are those of the blocks of one PE: its proof holds as it is.
#pragma once

#include "cpufree/device/allreduce.hpp"

namespace cpufree {

// Room for the sums and the notes of one reduction.
inline constexpr int kLibraryValues = 2 * kReduceWidth;

// Doubles of LibraryBoard::in and of `out`, packets of `told`.
CPUFREE_FN std::int64_t library_in_count() { return std::int64_t{2} * kLibraryValues; }
CPUFREE_FN std::int64_t library_out_count() { return std::int64_t{kLibraryValues}; }
CPUFREE_FN std::int64_t library_told_count() { return std::int64_t{kReduceWidth}; }

template <Port P>
class LibraryReduce {
 public:
  CPUFREE_KERNEL_FN LibraryReduce(P& port, Packet* slots, Epoch epoch = 0)
      : port_(port), flat_(port, slots, epoch) {}

  CPUFREE_KERNEL_FN Epoch epoch() const { return flat_.epoch(); }
  CPUFREE_KERNEL_FN void go_on_from(Epoch epoch) { flat_.go_on_from(epoch); }

  // As of AllReduce.
  template <int K>
  CPUFREE_KERNEL_FN void push(const double (&partial)[K]) {
    flat_.push(partial);
  }
  template <int K>
  CPUFREE_KERNEL_FN bool pull(double (&total)[K], unsigned& notes, bool gone) {
    return flat_.pull(total, notes, gone) && join_pes(total, notes);
  }
  template <int K, class F>
  CPUFREE_KERNEL_FN bool sum(const double (&partial)[K], double (&total)[K], unsigned& notes,
                             bool gone, F&& meanwhile) {
    return flat_.sum(partial, total, notes, gone, meanwhile) && join_pes(total, notes);
  }
  // The last ones combined are those of all PEs.
  template <int K>
  CPUFREE_KERNEL_FN void recall(double (&total)[K]) {
    port_.recall(total);
  }

 private:
  static constexpr unsigned kGone = 1U << kNoteBits;

  // A packet that one thread waits for, and its neighbours with it.
  struct Part {
    const Packet* packet;
    bool mine;
  };

  // From the sums and notes of my PE to those of all.
  template <int K>
  CPUFREE_KERNEL_FN bool join_pes(double (&total)[K], unsigned& notes) {
    Packet* const told = port_.library().told;
    if (port_.block() == 0 && port_.lane() == 0) call(total, notes, told);
    port_.sync_block();  // all have taken what the first `combine` found: there may be another
    unsigned bits = 0U;
    port_.combine(
        total, bits, false, [&](int k, int rank, int) { return Part{told + k, rank == 0}; },
        [&](const Part& part) { return hear(part, bits); });
    notes = bits & ~kGone;
    return (bits & kGone) == 0U;
  }

  // By one thread of the PE.
  template <int K>
  CPUFREE_KERNEL_FN void call(const double (&sums)[K], unsigned notes, Packet* told) {
    static_assert(K < kLibraryValues);
    const LibraryBoard& board = port_.library();
    double* const in = board.in + static_cast<int>(epoch() & 1U) * kLibraryValues;
    for (int k = 0; k < K; ++k) board.out[k] = sums[k];
    board.out[K] = port_.pe() == 0 ? static_cast<double>(notes) : 0.0;
    port_.sum_over_pes(in, board.out, K + 1);
    // Volatile: others have written it.
    const volatile double* const result = in;
    const std::uint64_t tag = make_tag(epoch(), static_cast<unsigned>(result[K]));
    for (int k = 0; k < K; ++k) port_.put_packet(told + k, port_.pe(), result[k], tag);
  }

  CPUFREE_KERNEL_FN double hear(const Part& part, unsigned& bits) {
    Packet got[1] = {};
    const auto packet = [&](int) { return part.packet; };
    const auto site = [&](int) { return WaitSite{Channel::library_reduction, port_.pe(), 0}; };
    if (!wait_packets_together(port_, packet, part.mine ? 1 : 0, epoch(), site, got)) bits |= kGone;
    if (part.mine) bits |= tag_notes(got[0].tag);
    return got[0].value;
  }

  P& port_;
  AllReduce<P> flat_;
};

}  // namespace cpufree
