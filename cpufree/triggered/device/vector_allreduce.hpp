// All-reduce of a vector inside a kernel: the sum of the vectors of all PEs, in place, as often as
// the kernel likes. Each block works on a part of its own, with the same block of other PEs: so
// blocks form a pipeline, and none waits for another one of its PE.
//
// Ring (Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations"): a block's part has a chunk for each PE. In each of pes - 1 rounds a PE sends a
// chunk to the right, gets one from the left and adds its own values; then it has the whole sum of
// one chunk, and pes - 1 more rounds pass the sums on. Each value is sent twice at most: for long
// vectors. Direct: each PE sends its values to all others, and each sums all: one hop, for short
// ones.
//
// Bits: a chunk of the ring is summed along the ring, once; a direct sum goes from PE 0 on. Both
// are the same on each PE and in each run.
//
// What is sent goes by stores of the block or by triggered puts (a transport). Which puts there are
// is one function, VectorSchedule::send; the host registers them (post_schedule), and the kernel
// triggers them round by round. One signal for each put, in memory of its target: one writer.
//
// Reuse, ring. Round r brings chunk pe - 1 - r: each round of the first half has places in the
// inbox of its own. (1) Inbox: who has ended epoch e has all sums of e; each contains what this PE
// added when it read the inbox. So the left neighbour, who has ended e before it sends in e + 1,
// writes what has been read. (2) Values: a sum arrives where the PE's own summand was; the sum
// contains it, so it has been read. The block waits for its puts before it ends, so the caller may
// write.
//
// Reuse, direct. Two inboxes in turn: a PE sends in e + 2 once it has the values of e + 1 from all,
// who sent them after they had summed e. The sums are written once the block's puts are done.
#pragma once

#include "cpufree/device/block.hpp"
#include "cpufree/device/warp_port.hpp"
#include "cpufree/triggered/device/triggered.hpp"

namespace cpufree {

// `packets` is direct, too, and not by puts (packet_allreduce.hpp).
enum class ReduceWay : std::uint32_t { ring, direct, packets };

// A piece of what a block sends: values [begin, begin + count).
struct ReduceSend {
  int pe = 0;
  int signal = 0;  // on `pe`
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t inbox = -1;  // where in the inbox it goes; -1: among the values, in its own place
};

struct VectorSchedule {
  ReduceWay way = ReduceWay::ring;
  int pes = 1;
  int blocks = 1;
  std::int64_t count = 0;  // values of the vector

  // Puts of one block, and of a PE: their operations are numbered block by block.
  CPUFREE_FN int sends() const {
    return way == ReduceWay::packets ? 0 : way == ReduceWay::ring ? 2 * (pes - 1) : pes - 1;
  }
  CPUFREE_FN int operations() const { return sends() * blocks; }
  CPUFREE_FN int signals() const { return sends() * blocks; }
  // Values that the inbox needs, which is another one for packets.
  CPUFREE_FN std::int64_t inbox() const {
    if (way == ReduceWay::packets) return 0;
    return way == ReduceWay::ring ? count : 2 * (pes - 1) * count;
  }
  CPUFREE_FN std::uint32_t slots() const { return way == ReduceWay::ring ? 1 : 2; }

  // Parts and chunks begin at multiples of a grain, so that several values are read and written at
  // a time, and that a packet is of one part.
  static constexpr std::int64_t kGrain = 4, kPacketGrain = 12;
  CPUFREE_FN std::int64_t part(int block) const {
    const std::int64_t grain = way == ReduceWay::packets ? kPacketGrain : kGrain;
    return block == blocks ? count : count * block / blocks / grain * grain;
  }
  CPUFREE_FN std::int64_t chunk(int block, int number) const {
    const std::int64_t begin = part(block), end = part(block + 1);
    return number == pes ? end : begin + (end - begin) * number / pes / kGrain * kGrain;
  }
  // The chunk that PE `pe` receives in a round of the ring.
  CPUFREE_FN int received(int pe, int round) const {
    return (round < pes - 1 ? pe - 1 - round + pes : pe - (round - pes + 1) + pes) % pes;
  }
  // Where in the inbox the values of `source` lie on `pe`, for even epochs (direct).
  CPUFREE_FN std::int64_t inbox_of(int pe, int source) const {
    return ((source - pe + pes) % pes - 1) * count;
  }

  CPUFREE_FN ReduceSend send(int pe, int block, int number) const {
    ReduceSend out;
    if (way == ReduceWay::direct) {
      out.pe = (pe + 1 + number) % pes;
      // Numbered by the distance of the sender, seen from the receiver.
      out.signal = block * sends() + (pe - out.pe + pes) % pes - 1;
      out.begin = part(block);
      out.count = part(block + 1) - out.begin;
      out.inbox = inbox_of(out.pe, pe) + out.begin;
      return out;
    }
    out.pe = (pe + 1) % pes;
    const int c = received(out.pe, number);
    out.signal = block * sends() + number;
    out.begin = chunk(block, c);
    out.count = chunk(block, c + 1) - out.begin;
    if (number < pes - 1) out.inbox = out.begin;
    return out;
  }
};

// The vector and its inbox, in symmetric memory.
template <class T>
struct VectorReduceArgs {
  VectorSchedule schedule;
  T* values = nullptr;
  T* inbox = nullptr;
};

// 16 bytes of values, which GPUs load and store at once.
template <class T>
struct alignas(16) WideValue {
  static constexpr int kSize = 16 / sizeof(T);
  T value[kSize];
  CPUFREE_KERNEL_FN WideValue& operator+=(const WideValue& other) {
    CPUFREE_UNROLL
    for (int i = 0; i < kSize; ++i) value[i] += other.value[i];
    return *this;
  }
};

// Element k of an array of T, seen as an array of V: T itself, or WideValue<T>.
template <class V, class T>
CPUFREE_KERNEL_FN V& element(T* array, std::int64_t k) {
  return reinterpret_cast<V*>(array)[k];
}

// store(k, load(k)) for all elements k of type V in [begin, end), which are independent of one
// another. Several are loaded before the first is stored: stores may not be told apart from later
// loads, and would have each of these wait.
template <class V, Port P, class Load, class Store>
CPUFREE_KERNEL_FN void in_batches(P& port, std::int64_t begin, std::int64_t end, Load&& load,
                                  Store&& store) {
  constexpr int kBatch = 4;
  const std::int64_t step = port.lanes();
  for (std::int64_t k = begin + port.lane(); k < end; k += kBatch * step) {
    V values[kBatch] = {};
    CPUFREE_UNROLL
    for (int i = 0; i < kBatch; ++i)
      if (k + i * step < end) values[i] = load(V{}, k + i * step);
    CPUFREE_UNROLL
    for (int i = 0; i < kBatch; ++i)
      if (k + i * step < end) store(k + i * step, values[i]);
  }
}

// The same for values [begin, end) of type T, 16 bytes at a time on GPUs where `places`, the bits
// of the first value's addresses, allow.
template <class T, Port P, class Load, class Store>
CPUFREE_KERNEL_FN void for_values(P& port, std::int64_t begin, std::int64_t end,
                                  std::uint64_t places, Load&& load, Store&& store) {
  if constexpr (WarpPort<P>) {
    constexpr std::int64_t kSize = WideValue<T>::kSize;
    if (places % 16 == 0 && begin % kSize == 0) {
      in_batches<WideValue<T>>(port, begin / kSize, end / kSize, load, store);
      begin = begin > end / kSize * kSize ? begin : end / kSize * kSize;
    }
  }
  in_batches<T>(port, begin, end, load, store);
}
template <class... T>
CPUFREE_KERNEL_FN std::uint64_t address_bits(const T*... arrays) {
  return (reinterpret_cast<std::uint64_t>(arrays) | ...);
}

// The put that a send is, for epochs from 0 on. `values`, `inbox`: offsets in symmetric memory.
template <class T>
CPUFREE_FN TriggerOperation operation_of(const VectorSchedule& schedule, int pe, int block,
                                         int number, std::uint64_t values, std::uint64_t inbox,
                                         std::uint32_t epochs, int first_operation,
                                         int first_signal) {
  const ReduceSend send = schedule.send(pe, block, number);
  TriggerOperation o;
  o.first = {static_cast<std::uint32_t>(first_operation + block * schedule.sends() + number), 0};
  o.epochs = epochs;
  o.pe = send.pe;
  o.bytes = static_cast<std::uint64_t>(send.count) * sizeof(T);
  o.source = values + static_cast<std::uint64_t>(send.begin) * sizeof(T);
  o.target = send.inbox < 0 ? values + static_cast<std::uint64_t>(send.begin) * sizeof(T)
                            : inbox + static_cast<std::uint64_t>(send.inbox) * sizeof(T);
  o.slots = schedule.slots();
  if (o.slots > 1)
    o.target_step = static_cast<std::uint64_t>((schedule.pes - 1) * schedule.count) * sizeof(T);
  o.signal = first_signal + send.signal;
  return o;
}

// Sends by triggering puts of the own PE's NIC.
// `V`: how triggers are sent.
template <Port P, class V = Triggers<P>>
class TriggerTransport {
 public:
  static constexpr bool adds = false;  // has add_and_send
  CPUFREE_KERNEL_FN TriggerTransport(V& triggers, int first_operation, int first_signal)
      : triggers_(triggers), operation_(first_operation), signal_(first_signal) {}

  template <class T>
  CPUFREE_KERNEL_FN bool send(const VectorReduceArgs<T>&, const ReduceSend&, int operation,
                              std::uint32_t epoch) {
    return triggers_.trigger(TriggerTag{number(operation), epoch});
  }
  // The source of a send may be written again.
  CPUFREE_KERNEL_FN bool wait_done(int operation, std::uint32_t epoch) {
    return triggers_.wait_done({number(operation), epoch});
  }
  CPUFREE_KERNEL_FN bool wait_signal(int signal, std::uint32_t epoch, int pe) {
    return triggers_.wait_signal(signal_ + signal, epoch, pe);
  }

 private:
  CPUFREE_KERNEL_FN std::uint32_t number(int operation) const {
    return static_cast<std::uint32_t>(operation_ + operation);
  }
  V& triggers_;
  int operation_;
  int signal_;
};

// Sends by stores of the block's own threads. `signals`: symmetric, one for each send.
template <Port P>
class StoreTransport {
 public:
  static constexpr bool adds = true;
  CPUFREE_KERNEL_FN StoreTransport(P& port, Flag* signals) : port_(port), signals_(signals) {}

  template <class T>
  CPUFREE_KERNEL_FN bool send(const VectorReduceArgs<T>& args, const ReduceSend& send, int,
                              std::uint32_t epoch) {
    T* const to = target(args, send, epoch);
    T* const from = args.values;
    port_.sync_block();  // values of the own PE that other threads of the block have written
    for_values<T>(
        port_, send.begin, send.begin + send.count, address_bits(from, to),
        [&](auto value, std::int64_t k) { return element<decltype(value)>(from, k); },
        [&](std::int64_t k, auto value) {
          port_.put(&element<decltype(value)>(to, k), send.pe, value);
        });
    return tell(send, epoch);
  }

  // Adds what has come in the inbox to the values that `send` names, and sends the sums: each is
  // on its way as soon as it is known, and read once.
  template <class T>
  CPUFREE_KERNEL_FN bool add_and_send(const VectorReduceArgs<T>& args, const ReduceSend& send,
                                      std::uint32_t epoch) {
    T* const to = target(args, send, epoch);
    T* const values = args.values;
    T* const inbox = args.inbox;
    for_values<T>(
        port_, send.begin, send.begin + send.count, address_bits(values, inbox, to),
        [&](auto sum, std::int64_t k) {
          sum = element<decltype(sum)>(inbox, k);
          sum += element<decltype(sum)>(values, k);
          return sum;
        },
        [&](std::int64_t k, auto sum) {
          element<decltype(sum)>(values, k) = sum;
          port_.put(&element<decltype(sum)>(to, k), send.pe, sum);
        });
    return tell(send, epoch);
  }
  CPUFREE_KERNEL_FN bool wait_done(int, std::uint32_t) {
    port_.sync_block();
    return true;
  }
  CPUFREE_KERNEL_FN bool wait_signal(int signal, std::uint32_t epoch, int pe) {
    bool here = true;
    if (port_.lane() == 0) {
      here = wait_flag(port_, signals_ + signal, Epoch{epoch} + 1,
                       WaitSite{Channel::trigger_signal, pe, signal});
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }

 private:
  // Where value 0 would go.
  template <class T>
  CPUFREE_KERNEL_FN static T* target(const VectorReduceArgs<T>& args, const ReduceSend& send,
                                     std::uint32_t epoch) {
    const VectorSchedule& s = args.schedule;
    if (send.inbox < 0) return args.values;
    return args.inbox + (send.inbox - send.begin) + (epoch % s.slots()) * ((s.pes - 1) * s.count);
  }
  CPUFREE_KERNEL_FN bool tell(const ReduceSend& send, std::uint32_t epoch) {
    port_.sync_block();
    if (port_.lane() != 0) return true;
    port_.publish(Scope::system);
    port_.put_flag(signals_ + send.signal, send.pe, Epoch{epoch} + 1);
    return true;
  }

  P& port_;
  Flag* signals_;
};

// The verb. All blocks of all PEs call `sum` the same number of times; a block's values are its own
// part, [part(block), part(block + 1)), before and after. False: leave the kernel.
template <Port P, class T, class Transport>
class VectorAllReduce {
 public:
  CPUFREE_KERNEL_FN VectorAllReduce(P& port, Transport& transport, const VectorReduceArgs<T>& args,
                                    std::uint32_t epoch = 0)
      : port_(port), transport_(transport), args_(args), epoch_(epoch) {}

  CPUFREE_KERNEL_FN bool sum() {
    const bool good = args_.schedule.way == ReduceWay::ring ? sum_along_ring() : sum_directly();
    ++epoch_;
    return good;
  }
  CPUFREE_KERNEL_FN std::uint32_t epoch() const { return epoch_; }

 private:
  CPUFREE_KERNEL_FN int first() const { return port_.block() * args_.schedule.sends(); }

  CPUFREE_KERNEL_FN bool send(int number) {
    return transport_.send(args_, args_.schedule.send(port_.pe(), port_.block(), number),
                           first() + number, epoch_);
  }

  CPUFREE_KERNEL_FN bool wait_done() {
    for (int k = 0; k < args_.schedule.sends(); ++k)
      if (!transport_.wait_done(first() + k, epoch_)) return false;
    return true;
  }

  CPUFREE_KERNEL_FN bool sum_along_ring() {
    const VectorSchedule& s = args_.schedule;
    const int left = (port_.pe() + s.pes - 1) % s.pes;
    for (int round = 0; round < s.sends(); ++round) {
      const bool sent = Transport::adds && round > 0 && round < s.pes;
      if (!sent && !send(round)) return false;
      if (!transport_.wait_signal(first() + round, epoch_, left)) return false;
      if (round < s.pes - 1 && !add(round)) return false;
    }
    return wait_done();
  }

  // The chunk of round `round` is here, and is the one that the next round sends.
  CPUFREE_KERNEL_FN bool add(int round) {
    const VectorSchedule& s = args_.schedule;
    if constexpr (Transport::adds) {
      return transport_.add_and_send(args_, s.send(port_.pe(), port_.block(), round + 1), epoch_);
    } else {
      const int c = s.received(port_.pe(), round);
      T* const values = args_.values;
      const T* const inbox = args_.inbox;
      for_values<T>(
          port_, s.chunk(port_.block(), c), s.chunk(port_.block(), c + 1),
          address_bits(values, inbox),
          [&](auto sum, std::int64_t k) {
            sum = element<const decltype(sum)>(inbox, k);
            sum += element<decltype(sum)>(values, k);
            return sum;
          },
          [&](std::int64_t k, auto sum) { element<decltype(sum)>(values, k) = sum; });
      return true;
    }
  }

  CPUFREE_KERNEL_FN bool sum_directly() {
    const VectorSchedule& s = args_.schedule;
    for (int k = 0; k < s.sends(); ++k)
      if (!send(k)) return false;
    for (int k = 0; k < s.sends(); ++k)
      if (!transport_.wait_signal(first() + k, epoch_, (port_.pe() + k + 1) % s.pes)) return false;
    if (!wait_done()) return false;
    const T* const inbox = args_.inbox + (epoch_ % 2) * ((s.pes - 1) * s.count);
    T* const values = args_.values;
    const auto of = [&](int pe) {
      return pe == port_.pe() ? values : inbox + s.inbox_of(port_.pe(), pe);
    };
    // The distance of two PEs' values in the inbox decides whether all may be read 16 bytes wide.
    const std::uint64_t places =
        address_bits(values, inbox) | static_cast<std::uint64_t>(s.count) * sizeof(T);
    for_values<T>(
        port_, s.part(port_.block()), s.part(port_.block() + 1), places,
        [&](auto total, std::int64_t k) {
          total = element<const decltype(total)>(of(0), k);
          for (int pe = 1; pe < s.pes; ++pe) total += element<const decltype(total)>(of(pe), k);
          return total;
        },
        [&](std::int64_t k, auto total) { element<decltype(total)>(values, k) = total; });
    port_.sync_block();
    return true;
  }

  P& port_;
  Transport& transport_;
  const VectorReduceArgs<T>& args_;
  std::uint32_t epoch_;
};

}  // namespace cpufree
