// A port that writes down what its kernel does: when it puts, signals, waits and computes. It is a
// policy type: the same kernels are instantiated with `Traced<P>` in place of P, do the same, and
// have the same results. Kernels for P have not an instruction of this.
//
// Each thread of a block's first warp writes a ring of its own, so that records need no atomics and
// no fence: the host reads once the kernels have ended. On a CPU a block has one thread, and the
// ring has all that it does; on a GPU what the first warp does stands for the block, whose other
// warps meet it at the next barrier. Payload is counted by all threads.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/trace/record.hpp"

namespace cpufree {

template <class P>
class Traced : public P {
 public:
  static constexpr int kWriters = P::warp_width;
  // Where a thread writes its next record: its ring, how many it has written, and how many the ring
  // holds, less 1. They wrap, as `written` does where only its lower half counts.
  struct alignas(16) Pen {
    TraceRecord* records = nullptr;
    std::uint32_t count = 0, mask = 0;
  };
  // Whom a thread waits for, and whether hosts have been told.
  struct alignas(16) Awaited {
    std::uint64_t body = 0;
    std::int32_t peer = -1;
    std::uint32_t told = 0;  // how often, and that a wait has ended; odd: of this wait
  };
  // Iterations of the kernel that have begun, and those of them that are not recorded.
  struct Turns {
    std::int64_t begun = 0, left_out = 0;
  };
  // What is read for each record. It is held where threads read it fast: what lies in memory has to
  // be fetched again after each `acquire`. Copies of the port share it.
  struct Pens {
    TraceRing ring;
    Pen of[static_cast<unsigned>(kWriters)];
    Awaited awaited[static_cast<unsigned>(kWriters)];
    Turns turns[static_cast<unsigned>(kWriters)];
  };

  CPUFREE_KERNEL_FN Traced(const P& port, Pens& pens)
      : P(port), pens_(&pens), kinds_(pens.ring.kinds) {
    if (!writes()) return;
    const TraceRing& ring = pens.ring;
    const int lane = this->lane();
    pens.of[lane] = {ring.records + trace_first(ring.capacity, lane),
                     static_cast<std::uint32_t>(ring.written[lane]),
                     trace_capacity(ring.capacity, lane) - 1U};
    pens.awaited[lane] = {};
    pens.turns[lane] = {};
    if (lane == 0) publish_state(BlockState::running, 0, 0);
  }

  // At the end of the kernel: the next one goes on there.
  CPUFREE_KERNEL_FN void store_counts() {
    if (!writes()) return;
    if (kinds_ == 0) mark_gap();
    if (this->lane() == 0) publish_state(BlockState::finished, 0, 0);
    std::uint64_t& written = pens_->ring.written[this->lane()];
    written += pens_->of[this->lane()].count - static_cast<std::uint32_t>(written);
  }

  CPUFREE_KERNEL_FN void mark(Phase phase) {
    if (this->lane() == 0) record(TraceKind::phase, 0, static_cast<std::uint64_t>(phase));
  }
  CPUFREE_KERNEL_FN void enter(int section) {
    if (this->lane() == 0) record(TraceKind::section, 0, static_cast<std::uint64_t>(section));
  }
  // N iterations of the kernel begin. All blocks of all PEs begin as many.
  CPUFREE_KERNEL_FN void begin_turn(int n) {
    const std::uint32_t every = pens_->ring.every;
    if (every <= 1 || n == 0 || !writes()) return;
    Turns& turns = pens_->turns[this->lane()];
    const std::int64_t last = turns.begun + n - 1;
    const bool records = last - last % every >= turns.begun;
    if (records != (kinds_ != 0)) {
      mark_gap();
      kinds_ = records ? pens_->ring.kinds : 0;
      last_pe_ = -1;
      for (int pe = 0; records && counts() && pe < this->pes(); ++pe)
        bytes_to(pe)[1] = bytes_to(pe)[0];
    }
    if (!records) turns.left_out += n;
    turns.begun += n;
  }
  CPUFREE_KERNEL_FN void report(std::int64_t iteration, double residual) {
    record(TraceKind::iteration, 0, static_cast<std::uint64_t>(iteration));
    P::report(iteration, residual);
  }

  template <class T>
  CPUFREE_KERNEL_FN void put(T* object, int pe, T value) {
    P::put(object, pe, value);
    count(pe, sizeof(T));
  }
  CPUFREE_KERNEL_FN void put_flag(Flag* flag, int pe, Epoch epoch) {
    record_signal(flag, pe, epoch);
    P::put_flag(flag, pe, epoch);
  }
  CPUFREE_KERNEL_FN void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    if (!reduces_) count(pe, sizeof(value));
    record_packet(slot(packet), pe, tag_epoch(tag));
    P::put_packet(packet, pe, value, tag);
  }
  // The block's threads put packets from this one on, called by the first one before they do: those
  // to other PEs may be put by warps that write nothing down.
  CPUFREE_KERNEL_FN void puts(const Packet* first, int pe, Epoch epoch) {
    record(TraceKind::packet, pe, trace_body(slot(first), epoch));
  }
  // To where `peer` has said that a packet of mine is on another PE.
  template <class V>
  CPUFREE_KERNEL_FN void send_packet(Packet* there, const V& value, std::uint64_t tag) {
    record_sent(there, sizeof(value), tag_epoch(tag));
    P::send_packet(there, value, tag);
  }
  template <class V>
  CPUFREE_KERNEL_FN void send_packet(FloatPacket* there, const V& value, std::uint32_t number) {
    record_sent(there, sizeof(value), number);
    P::send_packet(there, value, number);
  }
  // To a block of my PE: no bytes go to another one.
  CPUFREE_KERNEL_FN void send_packet(SmallPacket* there, float value, std::uint32_t number) {
    P::send_packet(there, value, number);
  }
  // Between nodes; see RemotePort.
  template <class T>
  CPUFREE_KERNEL_FN void put_signal(T* to, int pe, const T* from, std::int64_t values, Flag* flag,
                                    Epoch epoch)
    requires RemotePort<P>
  {
    if (this->lane() == 0) {
      const Remote& remote = this->remote();
      const bool of_sums =
          flag >= remote.board.flags && flag < remote.board.flags + 2 * remote.nodes.count;
      if (!of_sums) count(pe, static_cast<std::size_t>(values) * sizeof(T));
      record_signal(flag, pe, epoch);
    }
    P::put_signal(to, pe, from, values, flag, epoch);
  }
  // Blocks of the PE that count themselves in: each number is one block's.
  CPUFREE_KERNEL_FN Epoch arrive(Flag* counter)
    requires GridPort<P>
  {
    const std::uint64_t sent = this->now();  // others see it before it is answered
    const Epoch before = P::arrive(counter);
    record(TraceKind::signal, this->pe(), trace_body(slot(counter), before + 1), sent);
    return before;
  }

  template <int K, class F>
  CPUFREE_KERNEL_FN void scatter(const double (&partial)[K], int targets, unsigned note,
                                 F&& store) {
    sums(true);
    P::scatter(partial, targets, note, store);
    sums(false);
  }
  // The packets that follow are of a reduction, which is no payload; or those of it were the last.
  CPUFREE_KERNEL_FN void sums(bool begin) { reduces_ = begin, last_pe_ = -1; }
  template <int K, class F, class G>
  CPUFREE_KERNEL_FN void combine(double (&total)[K], unsigned& bits, bool on_its_way, F&& prepare,
                                 G&& body) {
    if (this->lane() == 0) record(TraceKind::reduce, 0, 1);
    P::combine(total, bits, on_its_way, prepare, body);
    if (this->lane() == 0) record(TraceKind::reduce, 0, 0);
  }

  // See TracingPort.
  CPUFREE_KERNEL_FN void wait_begins(const WaitSite& site, Epoch want) {
    const std::uint64_t body = trace_body(of(site), want);
    record(TraceKind::wait, site.from_pe, body);
    wait_turns(true, site, want);
  }
  CPUFREE_KERNEL_FN void wait_turns(bool missing, const WaitSite& site, Epoch want) {
    if (!writes()) return;
    Awaited& awaited = pens_->awaited[this->lane()];
    awaited.body = trace_body(of(site), want);
    awaited.peer = missing ? site.from_pe : -1;
    if (awaited.told % 2 != 0) publish_state(BlockState::running, 0, ++awaited.told);
  }
  CPUFREE_KERNEL_FN void wait_ends(const void* at, const WaitSite& site, Epoch seen) {
    record(TraceKind::wait_end, site.from_pe, trace_body(slot(at), seen));
    if (!writes()) return;
    Awaited& awaited = pens_->awaited[this->lane()];
    awaited.peer = -1;
    if (awaited.told % 2 != 0) publish_state(BlockState::running, 0, ++awaited.told);
  }
  // A wait that has become long is published, so that hosts see it before it is given up.
  CPUFREE_KERNEL_FN bool keep_waiting(typename P::Wait& wait) {
    const bool on = P::keep_waiting(wait);
    if constexpr (requires { wait.looks; })
      if (wait.looks % kLooksToTell == 0) tell();
    return on;
  }
  // By the first thread of a block whose threads have waited: one of them for what a PE has sent.
  CPUFREE_KERNEL_FN void has_come(const void* at, int pe, Epoch epoch) {
    record(TraceKind::wait_end, pe, trace_body(slot(at), epoch));
  }
  CPUFREE_KERNEL_FN void finds(const void* at, const WaitSite& site, Epoch seen) {
    record(TraceKind::found, site.from_pe, trace_body(slot(at), seen));
  }
  CPUFREE_KERNEL_FN void moves(int pe, std::uint64_t bytes) { count(pe, bytes); }
  CPUFREE_KERNEL_FN void give_up(const typename P::Wait& wait, const WaitRecord& filed) {
    const WaitSite site{filed.channel, filed.from_pe, filed.from_block};
    record(TraceKind::gave_up, filed.from_pe, trace_body(of(site), filed.seen));
    P::give_up(wait, filed);
  }

 private:
  // Half a millisecond on a GPU, where telling crosses PCIe. Threads of CPUs rest between looks.
  static constexpr std::uint32_t kLooksToTell = kWriters > 1 ? 1024 : 16;

  CPUFREE_KERNEL_FN void tell() {
    if (!writes()) return;
    Awaited& awaited = pens_->awaited[this->lane()];
    if (awaited.peer < 0 || awaited.told % 2 != 0) return;
    Published* const mine = told();
    if (mine == nullptr) return;
    P::put_flag(&mine->body, this->pe(), awaited.body);
    publish_state(BlockState::waiting, awaited.peer, ++awaited.told);
  }
  CPUFREE_KERNEL_FN void publish_state(BlockState state, int peer, std::uint64_t number) {
    Published* const mine = told();
    if (mine == nullptr) return;
    this->publish(Scope::system);
    P::put_flag(&mine->state, this->pe(), published_state(number, state, peer));
    this->publish(Scope::system);  // before what comes next
  }
  CPUFREE_KERNEL_FN Published* told() const {
    Published* const all = pens_->ring.told;
    return all == nullptr ? nullptr : all + this->lane();
  }
  // Where a gap begins, or ends.
  CPUFREE_KERNEL_FN void mark_gap() {
    kinds_ = kAllTraceKinds;
    const Turns& turns = pens_->turns[this->lane()];
    record(TraceKind::left_out, 0, static_cast<std::uint64_t>(turns.left_out));
  }
  CPUFREE_KERNEL_FN void record_signal(const Flag* flag, int pe, Epoch epoch) {
    if (!writes(TraceKind::signal)) return;
    std::uint64_t* const bytes = bytes_to(pe);
    if (const std::uint64_t more = bytes[0] - bytes[1]; more != 0) {
      record(TraceKind::payload, pe, more);
      bytes[1] = bytes[0];
    }
    record(TraceKind::signal, pe, trace_body(slot(flag), epoch));
  }
  // Of packets that go to a PE one after the other the first.
  CPUFREE_KERNEL_FN void record_packet(std::uint64_t slot, int pe, Epoch epoch) {
    if (pe == last_pe_ && epoch == last_epoch_) return;
    record(reduces_ ? TraceKind::partial : TraceKind::packet, pe, trace_body(slot, epoch));
    last_pe_ = pe, last_epoch_ = epoch;
  }
  CPUFREE_KERNEL_FN void record_sent(const void* there, std::size_t bytes, Epoch epoch) {
    // Memory of a PE begins at its base: it is that of the last base before.
    auto* const mine = const_cast<std::byte*>(pens_->ring.base);
    int pe = 0;
    std::uint64_t least = ~std::uint64_t{0};
    for (int k = 0; k < this->pes(); ++k) {
      const auto from =
          static_cast<std::uint64_t>(static_cast<const std::byte*>(there) -
                                     static_cast<const std::byte*>(this->peer(mine, k)));
      if (from < least) least = from, pe = k;
    }
    count(pe, bytes);
    record_packet(least / 16, pe, epoch);
  }
  CPUFREE_KERNEL_FN bool writes() const { return this->lane() < kWriters; }
  CPUFREE_KERNEL_FN std::uint64_t slot(const void* at) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - pens_->ring.base) / 16;
  }
  CPUFREE_KERNEL_FN static std::uint64_t of(const WaitSite& site) {
    return trace_site(site.from_block, static_cast<std::uint32_t>(site.channel));
  }
  CPUFREE_KERNEL_FN std::uint64_t* bytes_to(int pe) const {
    return pens_->ring.bytes + 2 * (std::int64_t{this->lane()} * this->pes() + pe);
  }
  CPUFREE_KERNEL_FN void count(int pe, std::size_t bytes) {
    if (pe == this->pe() || !counts()) return;
    if constexpr (requires(std::uint64_t* sum) { P::tally(sum, bytes); }) {
      P::tally(bytes_to(pe), bytes);
    } else {
      // Volatile: kernels tell compilers that the iterations of their loops are independent
      // (CPUFREE_INDEPENDENT), which is true of what they compute, and not of a sum beside it.
      volatile std::uint64_t* const sum = bytes_to(pe);
      *sum = *sum + bytes;
    }
  }

  // Payload, in all iterations.
  CPUFREE_KERNEL_FN bool counts() const {
    return (pens_->ring.kinds >> static_cast<unsigned>(TraceKind::payload) & 1U) != 0U;
  }
  CPUFREE_KERNEL_FN bool kept(TraceKind kind) const {
    return (kinds_ >> static_cast<unsigned>(kind) & 1U) != 0U;
  }
  CPUFREE_KERNEL_FN bool writes(TraceKind kind) const { return writes() && kept(kind); }
  CPUFREE_KERNEL_FN void record(TraceKind kind, int peer, std::uint64_t body) {
    if (writes(kind)) record(kind, peer, body, this->now());
  }
  CPUFREE_KERNEL_FN void record(TraceKind kind, int peer, std::uint64_t body, std::uint64_t time) {
    if (!writes(kind)) return;
    Pen& pen = pens_->of[this->lane()];
    const std::uint32_t number = pen.count;
    pen.count = number + 1;
    pen.records[number & pen.mask] = trace_record(kind, time - pens_->ring.start, peer, body);
  }

  Pens* pens_;
  std::uint32_t kinds_;   // that are written down; none in an iteration that is not recorded
  bool reduces_ = false;  // packets are of a reduction
  int last_pe_ = -1;      // of the last packet that is recorded
  Epoch last_epoch_ = 0;
};

// kernel(port), traced: `rings` has one for each block.
template <class P, class F>
CPUFREE_KERNEL_FN void run_traced(P& port, const TraceRing* rings, F&& kernel) {
  using Pens = typename Traced<P>::Pens;
  typename P::template Held<Pens> pens = port.hold(Pens{rings[port.block()], {}, {}, {}});
  Traced<P> traced(port, pens);
  kernel(traced);
  traced.store_counts();
}

}  // namespace cpufree
