// What generated kernels of ranks send to one another: regions of arrays, put where they belong,
// and signals behind them. A PE is a rank with arrays of its own, all of the same layout.
//
// A message has a site of sending on one PE and a site of receiving on another one; which, the
// compiler knows (a table in the heap). The sites of one exchange are done together: `grant` (the
// PE's own regions that others may write), `start` (puts begin), `finish` (puts are done, and what
// others put has arrived). Exchange e of a sender is exchange e of the receiver.
//
// Put-with-signal: the block that sends a message copies it with all its threads, meets, publishes,
// and its first thread stores e into the arrival flag on the receiver.
//   Read after write: who has seen arrival >= e acquires, and reads the region. Every block does so
//   for itself in `finish`.
//   Write after read: message e is put after its sender has seen credit >= e, which the receiver
//   gives in its e-th `grant` for the site. The compiler places `grant` behind the last use of the
//   region before it arrives anew, with a barrier of the PE's blocks between; so all have read
//   message e - 1 when it is overwritten. (compiler/ranks/grants.py places, and checks.) Where the put
//   reads, it is the block's own program order up to `finish`, and a barrier before others write.
//   Flags have one writer each, grow, and are compared by >=: an early grant for the next exchange,
//   or a neighbour that is ahead, is not mistaken.
//   No deadlock: `finish` tries its puts in any order until all are done, as MPI's Waitall would,
//   and grants of an exchange are given before any of its waits. So what ends where a send waits
//   for its receive to be posted (MPI_Issend), ends here.
//
// Signals of the program itself (`put_signal`, `wait_signal`) are the same put without credits:
// there the program sees to it that a region has been read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/wait.hpp"

namespace cpufree::programs {

// Offsets in the heap: of the table of this PE, of arrival flags, one for each site of receiving, and
// of signals of the program.
struct MessagePlan {
  std::int64_t table, sends, arrivals, signals;
};

// What the table says of a site of sending. Regions have three axes, of one point where there are
// fewer; distances are in values of `bytes` bytes, all else that lies somewhere is an offset in a
// heap, the peer's or (credit, from) this PE's. Peer -1: nobody.
struct SendSite {
  std::int64_t peer, arrival, credit, bytes;
  std::int64_t to, to_step[3];
  std::int64_t from, from_step[3];
  std::int64_t count[3];
  std::int64_t unused;
};
// Of a site of receiving. The arrival flag of a site from which nobody sends is as if all had
// arrived.
struct ReceiveSite {
  std::int64_t peer, credit;
};

// Counts of an exchange, and the messages that this block has still to send.
struct Exchange {
  Epoch granted = 0, started = 0;
  unsigned left = 0;
};

template <Port P>
class Messages {
 public:
  CPUFREE_KERNEL_FN Messages(P& port, std::byte* heap, const MessagePlan& plan)
      : port_(port), heap_(heap), plan_(plan) {}

  // The variant of the program that this PE runs: the first word of the table.
  CPUFREE_KERNEL_FN int variant() const {
    return static_cast<int>(*reinterpret_cast<const std::int64_t*>(heap_ + plan_.table));
  }

  // The regions of the next message of sites first, ..., first + count - 1 may be written.
  CPUFREE_KERNEL_FN void grant(Exchange& x, int first, int count) {
    ++x.granted;
    if (port_.block() != 0) return;
    if (port_.lane() < count) port_.publish(Scope::system);
    for (int k = port_.lane(); k < count; k += port_.lanes()) {
      const ReceiveSite& site = receives()[first + k];
      if (site.peer >= 0)
        port_.put_flag(flag(site.credit), static_cast<int>(site.peer), x.granted);
    }
  }

  // Puts whose regions are granted; others are left for `finish`. Message k is block k's.
  CPUFREE_KERNEL_FN void start(Exchange& x, int first, int count) {
    ++x.started;
    x.left = 0;
    for (int k = port_.block(); k < count; k += port_.blocks())
      if (!attempt(first + k, x.started)) x.left |= 1U << k;
  }

  // False: leave the kernel.
  CPUFREE_KERNEL_FN bool finish(Exchange& x, int first_send, int first, int count) {
    if (x.left != 0) {
      if (!finish_puts(first_send, x.left, x.started)) return false;
      x.left = 0;
    }
    bool here = true;
    for (int k = port_.lane(); here && k < count; k += port_.lanes()) {
      here = wait_for(flag(plan_.arrivals) + first + k, x.started, first + k);
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }

  // --- signals of the program ---

  // Copies a region to a PE, then raises its signal there; block 0.
  CPUFREE_KERNEL_FN void put_signal(int number, std::int64_t signal, std::int64_t value) {
    const SendSite& site = sends()[number];
    if (port_.block() != 0 || site.peer < 0) return;
    copy(site);
    port_.sync_block();
    if (port_.lane() != 0) return;
    port_.publish(Scope::system);
    if (signal >= 0)
      port_.put_flag(signal_flag(signal), static_cast<int>(site.peer), static_cast<Epoch>(value));
  }
  // Fetches a region of a PE into one of mine; block 0. What is fetched must have been published.
  CPUFREE_KERNEL_FN void get(int number) {
    const SendSite& site = sends()[number];
    if (port_.block() != 0 || site.peer < 0) return;
    if (port_.lane() == 0) port_.acquire(Scope::system);
    port_.sync_block();
    copy<true>(site);
    port_.sync_block();
  }
  // Waits until a signal of this PE has reached a value. False: leave the kernel.
  CPUFREE_KERNEL_FN bool wait_signal(std::int64_t signal, std::int64_t value) {
    bool here = true;
    if (port_.lane() == 0) {
      here = wait_for(signal_flag(signal), static_cast<Epoch>(value), -1);
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }

 private:
  CPUFREE_KERNEL_FN const SendSite* sends() const {
    return reinterpret_cast<const SendSite*>(heap_ + plan_.table + kHead);
  }
  CPUFREE_KERNEL_FN const ReceiveSite* receives() const {
    return reinterpret_cast<const ReceiveSite*>(sends() + plan_.sends);
  }
  CPUFREE_KERNEL_FN Flag* flag(std::int64_t offset) const {
    return reinterpret_cast<Flag*>(heap_ + offset);
  }
  CPUFREE_KERNEL_FN Flag* signal_flag(std::int64_t k) const { return flag(plan_.signals) + k; }

  // By all threads of the block alike. True: the message is on its way, or there is none.
  CPUFREE_COLD_FN bool attempt(int number, Epoch epoch) {
    const SendSite site = sends()[number];
    if (site.peer < 0) return true;
    bool granted = true;
    if (port_.lane() == 0) {
      granted = reached(port_.get_flag(flag(site.credit)), epoch);
      port_.acquire(Scope::system);
    }
    if (!port_.all(granted)) return false;
    copy(site);
    port_.sync_block();
    if (port_.lane() == 0) {
      port_.publish(Scope::system);
      port_.put_flag(flag(site.arrival), static_cast<int>(site.peer), epoch);
    }
    return true;
  }
  CPUFREE_COLD_FN bool finish_puts(int first, unsigned left, Epoch epoch) {
    auto wait = port_.start_wait();
    for (;;) {
      for (int k = 0; k < 32; ++k)
        if (((left >> k) & 1U) != 0U && attempt(first + k, epoch)) left &= ~(1U << k);
      if (left == 0) return true;
      const bool go = port_.lane() != 0 || (port_.keep_waiting(wait) && !stopped());
      if (port_.all(go)) continue;
      if (port_.lane() == 0) blame(first, left, epoch, wait);
      return false;
    }
  }
  // Says which receiver has not granted its region.
  CPUFREE_COLD_FN void blame(int first, unsigned left, Epoch epoch, typename P::Wait& wait) {
    int k = 0;
    while (((left >> k) & 1U) == 0U) ++k;
    const SendSite& site = sends()[first + k];
    const WaitSite where{Channel::halo_arrival, static_cast<int>(site.peer), 0};
    file_wait(port_, wait, where, epoch, port_.get_flag(flag(site.credit)));
  }

  // To the peer, or (`Fetch`) from there.
  template <bool Fetch = false>
  CPUFREE_KERNEL_FN void copy(const SendSite& site) {
    if (site.bytes == 8) {
      copy_as<std::uint64_t, Fetch>(site);
    } else if (site.bytes == 4) {
      copy_as<std::uint32_t, Fetch>(site);
    } else {
      copy_as<std::uint8_t, Fetch>(site);
    }
  }
  template <class T, bool Fetch>
  CPUFREE_KERNEL_FN void copy_as(const SendSite& site) {
    auto* const mine = reinterpret_cast<T*>(heap_ + site.from);
    auto* const other = reinterpret_cast<T*>(heap_ + site.to);
    const int peer = static_cast<int>(site.peer);
    const auto n1 = static_cast<std::uint32_t>(site.count[1]);
    const auto n2 = static_cast<std::uint32_t>(site.count[2]);
    const auto all = static_cast<std::uint32_t>(site.count[0]) * n1 * n2;
    const auto lanes = static_cast<std::uint32_t>(port_.lanes());
    const bool line = site.count[0] * site.count[1] == 1;
    for (auto k = static_cast<std::uint32_t>(port_.lane()); k < all; k += lanes) {
      std::int64_t c = k, b = 0, a = 0;
      if (!line) {  // divisions take time
        c = k % n2;
        const std::uint32_t rest = k / n2;
        b = rest % n1;
        a = rest / n1;
      }
      T* const here = mine + (a * site.from_step[0] + b * site.from_step[1] + c * site.from_step[2]);
      T* const there = other + (a * site.to_step[0] + b * site.to_step[1] + c * site.to_step[2]);
      if constexpr (Fetch) {
        *here = *port_.peer(there, peer);
      } else {
        port_.put(there, peer, *here);
      }
    }
  }

  CPUFREE_KERNEL_FN bool stopped() { return port_.host_notes() != kNoteNone; }
  // `site` is that of receiving, -1 of a signal of the program, which anybody may raise.
  CPUFREE_KERNEL_FN bool wait_for(const Flag* arrival, Epoch want, int site) {
    if (reached(port_.get_flag(arrival), want)) return true;
    return wait_long(arrival, want, site);
  }
  CPUFREE_COLD_FN bool wait_long(const Flag* arrival, Epoch want, int site) {
    Epoch seen = 0;
    auto wait = port_.start_wait();
    while (port_.keep_waiting(wait)) {
      seen = port_.get_flag(arrival);
      if (reached(seen, want)) return true;
      if (stopped()) return false;
    }
    const int from = site < 0 ? port_.pe() : static_cast<int>(receives()[site].peer);
    file_wait(port_, wait, {Channel::halo_arrival, from, 0}, want, seen);
    return false;
  }

  static constexpr std::int64_t kHead = 128;  // bytes of the table before the sites
  P& port_;
  std::byte* heap_;
  MessagePlan plan_;
};

}  // namespace cpufree::programs
