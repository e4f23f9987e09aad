// All-reduce of a short vector inside a kernel by packets, which carry the number of the all-reduce
// (the LL protocol): the sum of the vectors of all PEs, in place, as often as the kernel likes.
// Each PE sends its values to all others, and each sums all, from PE 0 on: the same bits
// everywhere. One hop, without fence and flag, of which vector_allreduce.hpp has one each; for that
// a packet of 16 bytes has three floats or one double. Blocks work on parts of their own, as there.
//
// A thread sends packets k, k + lanes, ... of its block's part, and sums the values of the same
// ones.
//
// Visibility (read after write): a packet is whole, or is not there.
//
// Reuse (write after read). Two inboxes in turn. A thread sends packet k of all-reduce e + 2 once
// it has seen packet k of e + 1 from every PE. The thread of PE q that sent that one had read
// packets k of e from all PEs before, by its own hand: so the places are free. A place holds the
// number waited for, that of two all-reduces before, or zeros, as device/types.hpp asks of float
// packets.
//
// Values: a thread reads and writes the same ones in every all-reduce. Barriers of the block at
// both ends are for callers whose other threads wrote them before, or read them after.
#pragma once

#include "cpufree/device/value_packet.hpp"
#include "cpufree/device/wait.hpp"
#include "cpufree/triggered/device/vector_allreduce.hpp"

namespace cpufree {

// The vector, and packets that have come: symmetric, `packet_inbox` of them.
template <class T>
struct PacketReduceArgs {
  VectorSchedule schedule;  // way: packets
  T* values = nullptr;
  typename ValuePacket<T>::Type* inbox = nullptr;
};

// Packets of a whole vector, and those of both inboxes.
template <class T>
CPUFREE_FN std::int64_t packets_of(const VectorSchedule& schedule) {
  constexpr int kValues = ValuePacket<T>::kValues;
  return (schedule.count + kValues - 1) / kValues;
}
template <class T>
CPUFREE_FN std::int64_t packet_inbox(const VectorSchedule& schedule) {
  return 2 * (schedule.pes - 1) * packets_of<T>(schedule);
}

// The verb. All blocks of all PEs call `sum` the same number of times; a block's values are its own
// part, [part(block), part(block + 1)), before and after. False: leave the kernel.
template <WarpPort P, class T>
class PacketAllReduce {
 public:
  // `epoch`: all-reduces before, in this kernel and others, of the same inbox.
  CPUFREE_KERNEL_FN PacketAllReduce(P& port, const PacketReduceArgs<T>& args,
                                    std::uint32_t epoch = 0)
      : port_(port),
        args_(args),
        epoch_(epoch),
        first_(args.schedule.part(port.block()) / kValues),
        end_((args.schedule.part(port.block() + 1) + kValues - 1) / kValues) {}

  CPUFREE_KERNEL_FN bool sum() {
    port_.sync_block();
    for (int distance = 1; distance < args_.schedule.pes; ++distance) send(distance);
    const bool good = end_ - first_ <= port_.lanes() ? sum_all<1>() : sum_all<kBatch>();
    ++epoch_;
    return port_.all(good);
  }
  CPUFREE_KERNEL_FN std::uint32_t epoch() const { return epoch_; }

 private:
  using Kind = ValuePacket<T>;
  using Type = typename Kind::Type;
  static constexpr int kValues = Kind::kValues;
  static constexpr int kBatch = 4;  // packets that a thread waits for together

  CPUFREE_KERNEL_FN Epoch number() const { return Epoch{epoch_} + 1; }

  // Packet 0 of what PE `of` gets from the one before it by `distance`.
  CPUFREE_KERNEL_FN Type* box(int distance) const {
    const VectorSchedule& s = args_.schedule;
    const std::int64_t boxes = (epoch_ % 2) * (s.pes - 1) + distance - 1;
    return args_.inbox + boxes * packets_of<T>(s);
  }

  CPUFREE_KERNEL_FN void read(std::int64_t k, T (&values)[kValues]) const {
    CPUFREE_UNROLL
    for (int j = 0; j < kValues; ++j) {
      const std::int64_t at = k * kValues + j;
      values[j] = at < args_.schedule.count ? args_.values[at] : T{};
    }
  }

  CPUFREE_KERNEL_FN void send(int distance) {
    Type* const to = port_.peer(box(distance), (port_.pe() + distance) % args_.schedule.pes);
    const std::int64_t step = port_.lanes();
    for (std::int64_t k = first_ + port_.lane(); k < end_; k += kBatch * step) {
      T values[kBatch][kValues];
      CPUFREE_UNROLL
      for (int i = 0; i < kBatch; ++i)
        if (k + i * step < end_) read(k + i * step, values[i]);
      CPUFREE_UNROLL
      for (int i = 0; i < kBatch; ++i)
        if (k + i * step < end_) Kind::send(port_, to + k + i * step, values[i], number());
    }
  }

  // N packets of a thread at a time. All lanes of a warp come round as often as the first one.
  template <int N>
  CPUFREE_KERNEL_FN bool sum_all() {
    const std::int64_t step = port_.lanes();
    for (std::int64_t k = first_ + port_.lane(); k - port_.warp_lane() < end_; k += N * step)
      if (!sum_batch<N>(k)) return false;
    return true;
  }

  // Sums packets k, k + lanes, ... of the calling thread. By all threads of a warp together.
  template <int N>
  CPUFREE_KERNEL_FN bool sum_batch(std::int64_t k) {
    const std::int64_t step = port_.lanes();
    const auto mine = [&](int i) { return k + i * step < end_; };
    T total[N][kValues] = {};
    for (int pe = 0; pe < args_.schedule.pes; ++pe) {
      T values[N][kValues] = {};
      if (!get(pe, k, values)) return false;
      CPUFREE_UNROLL
      for (int i = 0; i < N; ++i) {
        CPUFREE_UNROLL
        for (int j = 0; j < kValues; ++j)
          total[i][j] = pe == 0 ? values[i][j] : total[i][j] + values[i][j];
      }
    }
    CPUFREE_UNROLL
    for (int i = 0; i < N; ++i) {
      CPUFREE_UNROLL
      for (int j = 0; j < kValues; ++j) {
        const std::int64_t at = (k + i * step) * kValues + j;
        if (mine(i) && at < args_.schedule.count) args_.values[at] = total[i][j];
      }
    }
    return true;
  }

  // The values of PE `pe`: mine, or those that have come.
  template <int N>
  CPUFREE_KERNEL_FN bool get(int pe, std::int64_t k, T (&values)[N][kValues]) {
    const std::int64_t step = port_.lanes();
    const auto mine = [&](int i) { return k + i * step < end_; };
    if (pe == port_.pe()) {
      CPUFREE_UNROLL
      for (int i = 0; i < N; ++i)
        if (mine(i)) read(k + i * step, values[i]);
      return true;
    }
    const int pes = args_.schedule.pes;
    const Type* const from = box((port_.pe() - pe + pes) % pes);
    Type packets[N];
    const auto at = [&](int i) { return from + (mine(i) ? k + i * step : 0); };
    const auto site = [&](int) { return WaitSite{Channel::reduction, pe, port_.block()}; };
    if (!wait_some_together(port_, at, mine, number(), site, packets)) return false;
    CPUFREE_UNROLL
    for (int i = 0; i < N; ++i) {
      CPUFREE_UNROLL
      for (int j = 0; j < kValues; ++j) values[i][j] = Kind::value(packets[i], j);
    }
    return true;
  }

  P& port_;
  const PacketReduceArgs<T>& args_;
  std::uint32_t epoch_;
  std::int64_t first_, end_;  // packets of the block
};

}  // namespace cpufree
