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
//   message e - 1 when it is overwritten. (passes/messages.py places, and checks.) Where the put
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

// Offsets in the heap: of the table of this PE, and of signals of the program.
struct MessagePlan {
  std::int64_t table, sends, signals;
};

// Words of the table: first the variant of the program that this PE runs, then for each site of
// sending peer (negative: none), where to, distances there in values, arrival flag on the peer,
// credit flag here; for each site of receiving peer, arrival flag here, credit flag on the peer.
inline constexpr int kSendWords = 8;
inline constexpr int kReceiveWords = 4;

// A region of this PE's memory: points of up to three axes along which there are several.
template <class T>
struct Region {
  const T* from;
  int site;
  std::int64_t count[3], stride[3];
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

  CPUFREE_KERNEL_FN int variant() const { return static_cast<int>(word(0)); }

  // The regions of the next message of sites first, ..., first + count - 1 may be written.
  CPUFREE_KERNEL_FN void grant(Exchange& x, int first, int count) {
    ++x.granted;
    if (port_.block() != 0) return;
    if (port_.lane() < count) port_.publish(Scope::system);
    for (int k = port_.lane(); k < count; k += port_.lanes()) {
      const std::int64_t at = receive_at(first + k);
      const int peer = static_cast<int>(word(at));
      if (peer >= 0) port_.put_flag(flag(word(at + 2)), peer, x.granted);
    }
  }

  // Puts whose regions are granted; others are left for `finish`. Message k is block k's.
  template <class... R>
  CPUFREE_KERNEL_FN void start(Exchange& x, const R&... regions) {
    ++x.started;
    x.left = 0;
    int k = 0;
    ((x.left |= is_mine(k, regions.site) ? 1U << k : 0U, ++k), ...);
    attempt(x, regions...);
  }

  // False: leave the kernel.
  template <class... R>
  CPUFREE_KERNEL_FN bool finish(Exchange& x, int first, int count, const R&... regions) {
    if (x.left != 0 && !finish_puts(x, regions...)) return false;
    bool here = true;
    for (int k = port_.lane(); here && k < count; k += port_.lanes()) {
      const std::int64_t at = receive_at(first + k);
      const int peer = static_cast<int>(word(at));
      if (peer < 0) continue;
      here = wait_for(flag(word(at + 1)), x.started, peer);
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }

  // --- signals of the program ---

  // Copies a region to a PE, then raises its signal there, where the table says; block 0.
  template <class R>
  CPUFREE_KERNEL_FN void put_signal(const R& region, std::int64_t signal, std::int64_t value) {
    const std::int64_t at = send_at(region.site);
    const int peer = static_cast<int>(word(at));
    if (peer < 0 || port_.block() != 0) return;
    copy(region, at, peer);
    port_.sync_block();
    if (port_.lane() != 0) return;
    port_.publish(Scope::system);
    if (signal >= 0) port_.put_flag(signal_flag(signal), peer, static_cast<Epoch>(value));
  }
  // Waits until a signal of this PE has reached a value. False: leave the kernel.
  CPUFREE_KERNEL_FN bool wait_signal(std::int64_t signal, std::int64_t value) {
    bool here = true;
    if (port_.lane() == 0) {
      here = wait_for(signal_flag(signal), static_cast<Epoch>(value), port_.pe());
      port_.acquire(Scope::system);
    }
    return port_.all(here);
  }
  // Raises a signal on a PE that the table names, after all that this block has put.
  CPUFREE_KERNEL_FN void signal(int site, std::int64_t signal, std::int64_t value) {
    const int peer = static_cast<int>(word(send_at(site)));
    if (peer < 0 || port_.block() != 0) return;
    port_.sync_block();
    if (port_.lane() != 0) return;
    port_.publish(Scope::system);
    port_.put_flag(signal_flag(signal), peer, static_cast<Epoch>(value));
  }

 private:
  CPUFREE_KERNEL_FN std::int64_t word(std::int64_t k) const {
    return reinterpret_cast<const std::int64_t*>(heap_ + plan_.table)[k];
  }
  CPUFREE_KERNEL_FN std::int64_t send_at(int site) const {
    return 1 + std::int64_t{kSendWords} * site;
  }
  CPUFREE_KERNEL_FN std::int64_t receive_at(int site) const {
    return 1 + kSendWords * plan_.sends + std::int64_t{kReceiveWords} * site;
  }
  CPUFREE_KERNEL_FN Flag* flag(std::int64_t offset) const {
    return reinterpret_cast<Flag*>(heap_ + offset);
  }
  CPUFREE_KERNEL_FN Flag* signal_flag(std::int64_t k) const { return flag(plan_.signals) + k; }
  CPUFREE_KERNEL_FN bool is_mine(int k, int site) const {
    return k % port_.blocks() == port_.block() && word(send_at(site)) >= 0;
  }

  template <class... R>
  CPUFREE_KERNEL_FN void attempt(Exchange& x, const R&... regions) {
    int k = 0;
    ((try_one(x, k, regions), ++k), ...);
  }
  // By all threads of the block alike.
  template <class T>
  CPUFREE_KERNEL_FN void try_one(Exchange& x, int k, const Region<T>& region) {
    if (((x.left >> k) & 1U) == 0U) return;
    const std::int64_t at = send_at(region.site);
    bool granted = true;
    if (port_.lane() == 0) {
      granted = reached(port_.get_flag(flag(word(at + 6))), x.started);
      port_.acquire(Scope::system);
    }
    if (!port_.all(granted)) return;
    const int peer = static_cast<int>(word(at));
    copy(region, at, peer);
    port_.sync_block();
    if (port_.lane() == 0) {
      port_.publish(Scope::system);
      port_.put_flag(flag(word(at + 5)), peer, x.started);
    }
    x.left &= ~(1U << k);
  }
  template <class... R>
  CPUFREE_KERNEL_FN bool finish_puts(Exchange& x, const R&... regions) {
    auto wait = port_.start_wait();
    for (;;) {
      attempt(x, regions...);
      if (x.left == 0) return true;
      const bool go = port_.lane() != 0 || (port_.keep_waiting(wait) && !stopped());
      if (port_.all(go)) continue;
      if (port_.lane() == 0) blame(x, wait, regions...);
      return false;
    }
  }
  // Says which receiver has not granted its region.
  template <class... R>
  CPUFREE_KERNEL_FN void blame(Exchange& x, typename P::Wait& wait, const R&... regions) {
    const int sites[] = {regions.site...};
    for (int k = 0; k < static_cast<int>(sizeof...(regions)); ++k) {
      if (((x.left >> k) & 1U) == 0U) continue;
      const std::int64_t at = send_at(sites[k]);
      const Epoch seen = port_.get_flag(flag(word(at + 6)));
      const WaitSite site{Channel::halo_arrival, static_cast<int>(word(at)), 0};
      file_wait(port_, wait, site, x.started, seen);
      return;
    }
  }

  template <class T>
  CPUFREE_KERNEL_FN void copy(const Region<T>& r, std::int64_t at, int peer) {
    auto* const to = reinterpret_cast<T*>(heap_ + word(at + 1));
    const std::int64_t s0 = word(at + 2), s1 = word(at + 3), s2 = word(at + 4);
    const std::int64_t all = r.count[0] * r.count[1] * r.count[2];
    for (std::int64_t k = port_.lane(); k < all; k += port_.lanes()) {
      const std::int64_t c = k % r.count[2], rest = k / r.count[2];
      const std::int64_t b = rest % r.count[1], a = rest / r.count[1];
      port_.put(to + (a * s0 + b * s1 + c * s2), peer,
                r.from[a * r.stride[0] + b * r.stride[1] + c * r.stride[2]]);
    }
  }

  CPUFREE_KERNEL_FN bool stopped() { return port_.host_notes() != kNoteNone; }
  CPUFREE_KERNEL_FN bool wait_for(const Flag* arrival, Epoch want, int from) {
    Epoch seen = port_.get_flag(arrival);
    if (reached(seen, want)) return true;
    auto wait = port_.start_wait();
    while (port_.keep_waiting(wait)) {
      seen = port_.get_flag(arrival);
      if (reached(seen, want)) return true;
      if (stopped()) return false;
    }
    file_wait(port_, wait, {Channel::halo_arrival, from, 0}, want, seen);
    return false;
  }

  P& port_;
  std::byte* heap_;
  MessagePlan plan_;
};

}  // namespace cpufree::programs
