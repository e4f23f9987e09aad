// Ways of a message between a block and its partner, the same block of another PE.
//
// Messages have numbers, epochs, that both ends count alike, and places: message k of a window has
// one of its own, and `args.messages` is that of the answer. A flag has one writer, the partner.
//
// Visibility (read after write). Values are stored by threads of the sender's block; a block
// barrier, `publish` and the flag's store by one thread follow. Who sees the flag reach the epoch
// acquires after it, and a block barrier follows before any thread reads. Packets carry their epoch
// and are ordered with nothing else; each is read where it was seen.
//
// Reuse (write after read). A place is written again in a later exchange only. Between both, the
// writer has waited for an answer, which the reader sent after a block barrier behind all its
// reads. So a place holds the message waited for or an earlier one, never a later one, as packets
// need (types.hpp). Epochs go on from run to run: nothing has to be cleared.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/probes/args.hpp"

namespace cpufree {

// Which threads of a block store.
struct ByThread {
  template <Port P>
  CPUFREE_KERNEL_FN static bool takes_part(P& port) {
    return port.lane() == 0;
  }
  template <Port P>
  CPUFREE_KERNEL_FN static int step(P&) {
    return 1;
  }
};
struct ByWarp {
  template <Port P>
  CPUFREE_KERNEL_FN static bool takes_part(P& port) {
    return port.lane() < P::warp_width;
  }
  template <Port P>
  CPUFREE_KERNEL_FN static int step(P&) {
    return P::warp_width;
  }
};
struct ByBlock {
  template <Port P>
  CPUFREE_KERNEL_FN static bool takes_part(P&) {
    return true;
  }
  template <Port P>
  CPUFREE_KERNEL_FN static int step(P& port) {
    return port.lanes();
  }
};

// What all ways share: partner, places, flags.
template <Port P>
class ProbeLink {
 public:
  CPUFREE_KERNEL_FN ProbeLink(P& port, const ProbeArgs& args)
      : port_(port),
        args_(args),
        partner_(port.pe() ^ 1),
        first_(port.block() * probe_stride(args.values, args.messages)) {}

  CPUFREE_KERNEL_FN std::int64_t place(std::int32_t message) const {
    const std::int64_t end = (args_.values * args_.messages + 15) / 16 * 16;
    return first_ + (message < args_.messages ? message * args_.values : end);
  }
  // My block's flag in the partner's memory. By one thread.
  CPUFREE_KERNEL_FN void put_flag(Epoch epoch) {
    port_.put_flag(args_.flags + port_.block(), partner_, epoch);
  }
  // By one thread, which has not acquired then.
  CPUFREE_KERNEL_FN bool wait_flag(Epoch epoch) {
    return cpufree::wait_flag(port_, args_.flags + port_.block(), epoch, site());
  }
  // All that the block has stored, and read, comes before the flag. By all threads.
  CPUFREE_KERNEL_FN void signal(Epoch epoch) {
    port_.sync_block();
    if (port_.lane() != 0) return;
    port_.publish(Scope::system);
    put_flag(epoch);
  }
  // By all threads. False: leave the kernel.
  CPUFREE_KERNEL_FN bool await(Epoch epoch) {
    bool here = true;
    if (port_.lane() == 0) {
      here = wait_flag(epoch);
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }
  // Values that are not those of the message of `epoch`, of those that the calling thread reads.
  CPUFREE_KERNEL_FN std::int64_t differences(const double* from, std::int64_t values,
                                             Epoch epoch) const {
    std::int64_t wrong = 0;
    for (std::int64_t i = port_.lane(); i < values; i += port_.lanes())
      wrong += from[i] != probe_value(epoch, i) ? 1 : 0;
    return wrong;
  }
  CPUFREE_KERNEL_FN WaitSite site() const {
    return WaitSite{Channel::halo_arrival, partner_, port_.block()};
  }

 protected:
  P& port_;
  const ProbeArgs& args_;
  int partner_;
  std::int64_t first_;
};

// Stores into the partner's memory, with a flag behind them.
template <Port P, class Who>
class StoreLink : public ProbeLink<P> {
 public:
  static constexpr bool reads_apart = true;  // a message can have come before it is read
  using ProbeLink<P>::ProbeLink;

  CPUFREE_KERNEL_FN void store(Epoch epoch, std::int32_t message, std::int64_t values) {
    if (!Who::takes_part(this->port_)) return;
    double* const to = this->args_.buffer + this->place(message);
    const int step = Who::step(this->port_);
    for (std::int64_t i = this->port_.lane(); i < values; i += step)
      this->port_.put(to + i, this->partner_, probe_value(epoch, i));
  }
  CPUFREE_KERNEL_FN void send(Epoch epoch, std::int32_t message, std::int64_t values) {
    store(epoch, message, values);
    this->signal(epoch);
  }
  CPUFREE_KERNEL_FN std::int64_t read(Epoch epoch, std::int32_t message, std::int64_t values) {
    return this->differences(this->args_.buffer + this->place(message), values, epoch);
  }
  // False: leave the kernel.
  CPUFREE_KERNEL_FN bool receive(Epoch epoch, std::int32_t message, std::int64_t values,
                                 std::int64_t& wrong) {
    if (!this->await(epoch)) return false;
    if (this->args_.reads) wrong += read(epoch, message, values);
    return true;
  }
};

// The same by bulk copies, where the engine has them: put_bulk(port, to, pe, count, value).
template <Port P>
class BulkLink : public StoreLink<P, ByBlock> {
 public:
  using StoreLink<P, ByBlock>::StoreLink;

  CPUFREE_KERNEL_FN void send(Epoch epoch, std::int32_t message, std::int64_t values) {
    const auto value = [epoch](std::int64_t i) { return probe_value(epoch, i); };
    double* const to = this->args_.buffer + this->place(message);
    if constexpr (requires { put_bulk(this->port_, to, 0, values, value); })
      put_bulk(this->port_, to, this->partner_, values, value);
    else
      this->store(epoch, message, values);
    this->signal(epoch);
  }
};

// Packets, stored by all threads of a block. The thread that waits for one reads it.
template <Port P>
class PacketLink : public ProbeLink<P> {
 public:
  static constexpr bool reads_apart = false;
  using ProbeLink<P>::ProbeLink;

  CPUFREE_KERNEL_FN void send(Epoch epoch, std::int32_t message, std::int64_t values) {
    Packet* const to = this->args_.packets + this->place(message);
    for (std::int64_t i = this->port_.lane(); i < values; i += this->port_.lanes())
      this->port_.put_packet(to + i, this->partner_, probe_value(epoch, i), make_tag(epoch, 0U));
  }
  // False: leave the kernel.
  CPUFREE_KERNEL_FN bool receive(Epoch epoch, std::int32_t message, std::int64_t values,
                                 std::int64_t& wrong) {
    constexpr int N = P::batch;
    const Packet* const from = this->args_.packets + this->place(message);
    const std::int64_t step = this->port_.lanes();
    bool here = true;
    for (std::int64_t i = this->port_.lane(); here && i < values; i += N * step) {
      const std::int64_t left = (values - i + step - 1) / step;
      const int count = left < N ? static_cast<int>(left) : N;
      Packet got[N] = {};
      here = wait_packets(
          this->port_, [&](int k) { return from + i + k * step; }, count, epoch,
          [&](int) { return this->site(); }, got);
      CPUFREE_UNROLL
      for (int k = 0; k < N; ++k)
        if (k < count) wrong += got[k].value != probe_value(epoch, i + k * step) ? 1 : 0;
    }
    return this->port_.all(here);
  }
};

// Loads from the partner's memory. The partner fills its own, and sends a flag.
template <Port P>
class GetLink : public ProbeLink<P> {
 public:
  using ProbeLink<P>::ProbeLink;

  CPUFREE_KERNEL_FN void fill(Epoch epoch, std::int32_t message, std::int64_t values) {
    double* const to = this->args_.buffer + this->place(message);
    for (std::int64_t i = this->port_.lane(); i < values; i += this->port_.lanes())
      this->port_.put(to + i, this->port_.pe(), probe_value(epoch, i));
  }
  // When it returns, the values are here.
  CPUFREE_KERNEL_FN std::int64_t get(Epoch epoch, std::int32_t message, std::int64_t values) {
    double* const mine = this->args_.buffer + this->place(message);
    const double* const from = this->port_.peer(mine, this->partner_);
    const std::int64_t wrong = this->differences(from, values, epoch);
    this->port_.sync_block();
    return wrong;
  }
};

}  // namespace cpufree
