// What generated kernels of ranks send to one another: regions of arrays, put where they belong,
// and signals behind them. A PE is a rank with arrays of its own, all of the same layout.
//
// A message has a site of sending on one PE and a site of receiving on another one; which, the
// compiler knows (a table in the heap). The sites of one exchange are done together: `grant` (the
// PE's own regions that others may write), `start` (puts begin), `finish` (puts are done, and what
// others put has arrived). Exchange e of a sender is exchange e of the receiver.
//
// Put-with-signal: a large message is cut into slices, each with an arrival flag of its own. The
// block that sends a slice copies it with all its threads, meets, publishes, and its first thread
// stores e into the flag on the receiver.
//   Read after write: who has seen arrival >= e acquires, and reads the region. Every block does so
//   for itself in `finish`.
//   Write after read: message e is put after its sender has seen credit >= e, which the receiver
//   gives in its e-th `grant` for the site. The compiler places `grant` behind the last use of the
//   region before it arrives again, with a barrier of the PE's blocks between; so all have read
//   message e - 1 when it is overwritten. (compiler/ranks/grants.py places, and checks.) Where the
//   put reads, it is the block's own program order up to `finish`, and a barrier before others
//   write. Flags have one writer each, grow, and are compared by >=: an early grant for the next
//   exchange, or a neighbour that is ahead, is not mistaken. No deadlock: a block tries its puts in
//   any order until they are done, as MPI's Waitall would, also those of exchanges that the program
//   has begun and not finished; and grants of an exchange are given before any of its waits. So
//   what ends where a send waits for its receive to be posted (MPI_Issend), ends here.
//
// Signals of the program itself (`put_signal`, `wait_signal`) are the same put without credits:
// there the program sees to it that a region has been read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/device/wait.hpp"

namespace cpufree::programs {

// Offsets in the heap: of the table of this PE, of arrival flags, `slices` for each site of
// receiving, of credit flags, one for each site of sending, and of signals of the program. Flags of
// sites without a peer are as if all had arrived, and been granted.
struct MessagePlan {
  std::int64_t table, sends, arrivals, credits, signals;
  int slices;
};

// What the table says of a site of sending. Regions have three axes, of one point where there are
// fewer; distances are in values of `bytes` bytes, all else that lies somewhere is an offset in a
// heap, the peer's or (from) this PE's. Peer -1: none.
struct SendSite {
  std::int64_t peer, arrival, threads, bytes;  // threads of a block that copy: one, a warp, or all
  std::int64_t to, to_step[3];
  std::int64_t from, from_step[3];
  std::int64_t count[3];
  std::int64_t slices;  // up to the plan's
};
// Of a site of receiving. The arrival flags of slices that no PE sends are as if all had arrived.
struct ReceiveSite {
  std::int64_t peer, credit;
};

// Counts of an exchange, and what this block has still to send: bit j is slice block + j * blocks
// of all slices of all messages.
struct Exchange {
  Epoch granted = 0, started = 0;
  std::uint64_t left = 0;  // a bit for each slice that a block has not sent yet
  int first = 0;           // site of sending
  int blocks = 0;          // that send
};

constexpr std::uint64_t kOne = 1;

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
    if (port_.block() != port_.blocks() - 1) return;  // the first ones have messages to send
    if (port_.lane() < count) port_.publish(Scope::system);
    for (int k = port_.lane(); k < count; k += port_.lanes()) {
      const ReceiveSite& site = receives()[first + k];
      if (site.peer >= 0) port_.put_flag(flag(site.credit), static_cast<int>(site.peer), x.granted);
    }
  }

  // Puts whose regions are granted; others are left for `finish`. The first `blocks` blocks send.
  CPUFREE_KERNEL_FN void start(Exchange& x, int first, int count) {
    start(x, first, count, port_.blocks());
  }
  CPUFREE_KERNEL_FN void start(Exchange& x, int first, int count, int blocks) {
    ++x.started;
    x.left = 0, x.first = first, x.blocks = blocks;
    if (port_.block() >= blocks) return;
    int j = 0;
    for (int item = port_.block(); item < count * plan_.slices; item += blocks, ++j)
      if (!attempt(first * plan_.slices + item, x.started)) x.left |= kOne << j;
  }

  // Puts of `others`, which have been started and not finished, go on meanwhile. False: leave the
  // kernel.
  template <class... X>
  CPUFREE_KERNEL_FN bool finish(Exchange& x, int first, int count, X&... others) {
    if (((x.left | ... | others.left)) != 0) return finish_late(x, first, count, others...);
    return port_.all(port_.lane() >= P::warp_width ||
                     arrived(first * plan_.slices, count * plan_.slices, x.started));
  }

  // --- signals of the program ---

  // Copies a region to a PE, then raises its signal there; block 0.
  CPUFREE_KERNEL_FN void put_signal(int number, std::int64_t signal, std::int64_t value) {
    const SendSite& site = sends()[number];
    if (port_.block() != 0 || site.peer < 0) return;
    copy(site);
    port_.sync_block();  // what the block has written before is covered, too
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
      here = wait_signal_flag(signal_flag(signal), static_cast<Epoch>(value));
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
  CPUFREE_KERNEL_FN Flag* arrivals() const { return flag(plan_.arrivals); }
  CPUFREE_KERNEL_FN Flag* credits() const { return flag(plan_.credits); }
  CPUFREE_KERNEL_FN Flag* signal_flag(std::int64_t k) const { return flag(plan_.signals) + k; }

  // A slice of a site's message, by all threads of the block alike. True: it is on its way, or
  // there is none.
  CPUFREE_COLD_FN bool attempt(int item, Epoch epoch) {
    const int number = item / plan_.slices, slice = item % plan_.slices;
    bool granted = true;
    if (port_.lane() == 0) {
      granted = reached(port_.get_flag(credits() + number), epoch);
      port_.acquire(Scope::system);
    }
    const SendSite site = sends()[number];  // while the first thread looks
    if (!port_.all(granted)) return false;
    if (site.peer < 0 || slice >= site.slices) return true;
    copy(site, slice);
    meet_copiers(site);
    if (port_.lane() == 0) {
      port_.publish(Scope::system);
      port_.put_flag(flag(site.arrival) + slice, static_cast<int>(site.peer), epoch);
    }
    return true;
  }
  // The first thread goes on when all that copy have stored: a fence of its own then covers them.
  // A warp meets at its barrier, which orders memory; its votes do not.
  CPUFREE_KERNEL_FN void meet_copiers(const SendSite& site) {
    if (site.threads > P::warp_width)
      port_.sync_block();
    else if constexpr (requires(P& port) { port.warp_sync(); })
      if (site.threads > 1 && port_.lane() < P::warp_width) port_.warp_sync();
  }
  // By the threads of the first warp, which look at a flag each and go on together: a fence of a
  // warp costs as much as one of a thread.
  CPUFREE_KERNEL_FN bool arrived(int first, int count, Epoch want) {
    for (int base = 0; base < count; base += P::warp_width) {
      const int k = base + port_.lane();
      const bool mine = k < count;
      const Flag* const arrival = arrivals() + first + (mine ? k : 0);
      if (!port_.warp_all(!mine || reached(port_.get_flag(arrival), want))) {
        if (!wait_long(arrival, mine, want, first + k)) return false;
        continue;
      }
      if constexpr (TracingPort<P>)
        if (mine) port_.finds(arrival, site_of(first + k), want);
    }
    if (count > 0) port_.acquire(Scope::system);
    return true;
  }
  CPUFREE_COLD_FN bool wait_long(const Flag* arrival, bool mine, Epoch want, int number) {
    Epoch seen = 0;
    const auto look = [&] {
      if (mine) seen = port_.get_flag(arrival);
      return port_.warp_all(!mine || reached(seen, want));
    };
    if constexpr (TracingPort<P>)
      if (mine) port_.wait_begins(site_of(number), want);
    [[maybe_unused]] bool lacks = mine;
    auto wait = port_.start_wait();
    while (port_.warp_all(port_.keep_waiting(wait))) {
      if (look()) {
        if constexpr (TracingPort<P>)
          if (mine) port_.wait_ends(arrival, site_of(number), want);
        return true;
      }
      if constexpr (TracingPort<P>)
        if (lacks && reached(seen, want))
          lacks = false, port_.wait_turns(false, site_of(number), want);
      if (!port_.warp_all(!stopped())) return false;
    }
    if (mine && !reached(seen, want)) file_wait(port_, wait, site_of(number), want, seen);
    return false;
  }
  // Who sends slice `number` of all.
  CPUFREE_KERNEL_FN WaitSite site_of(int number) const {
    return {Channel::halo_arrival, static_cast<int>(receives()[number / plan_.slices].peer), 0};
  }

  // Where this block has puts to do: it looks at grants and at what arrives in turn.
  template <class... X>
  CPUFREE_COLD_FN bool finish_late(Exchange& x, int first, int count, X&... others) {
    auto wait = port_.start_wait();
    [[maybe_unused]] int last = -1;  // slice to come, once all is sent
    for (;;) {
      attempt_all(x);
      (attempt_all(others), ...);
      const int missing = port_.lane() != 0 ? -1 : first_missing(first, count, x.started);
      if (port_.all(missing < 0) && x.left == 0) {
        if constexpr (TracingPort<P>)
          if (last >= 0) port_.wait_ends(arrivals() + last, site_of(last), x.started);
        return true;
      }
      if constexpr (TracingPort<P>)
        if (missing >= 0 && ((x.left | ... | others.left)) == 0) last = await(missing, last, x);
      const bool go = port_.lane() != 0 || (port_.keep_waiting(wait) && !stopped());
      if (port_.all(go)) continue;
      if (port_.lane() == 0) blame(x, first_missing(first, count, x.started), wait);
      return false;
    }
  }
  // Tells a port that traces of the wait for a slice, after that for `last`, if there was one.
  CPUFREE_KERNEL_FN int await(int missing, int last, const Exchange& x) {
    if (last < 0)
      port_.wait_begins(site_of(missing), x.started);
    else if (missing != last)
      port_.wait_turns(true, site_of(missing), x.started);
    return missing;
  }
  CPUFREE_KERNEL_FN void attempt_all(Exchange& x) {
    int item = x.first * plan_.slices + port_.block();
    for (int j = 0; j < 64 && (x.left >> j) != 0; ++j, item += x.blocks)
      if (((x.left >> j) & kOne) != 0 && attempt(item, x.started)) x.left &= ~(kOne << j);
  }
  // The first slice that has not arrived, -1: all have.
  CPUFREE_KERNEL_FN int first_missing(int first, int count, Epoch want) {
    for (int k = first * plan_.slices; k < (first + count) * plan_.slices; ++k)
      if (!reached(port_.get_flag(arrivals() + k), want)) return k;
    port_.acquire(Scope::system);
    return -1;
  }
  // Says who has not granted a region, or not sent slice `missing`.
  CPUFREE_COLD_FN void blame(Exchange& x, int missing, typename P::Wait& wait) {
    if (x.left != 0) {
      int j = 0;
      while (((x.left >> j) & kOne) == 0) ++j;
      const int item = x.first * plan_.slices + port_.block() + j * x.blocks;
      const int number = item / plan_.slices;
      const WaitSite where{Channel::halo_arrival, static_cast<int>(sends()[number].peer), 0};
      file_wait(port_, wait, where, x.started, port_.get_flag(credits() + number));
    } else if (missing >= 0) {
      const Epoch seen = port_.get_flag(arrivals() + missing);
      file_wait(port_, wait, site_of(missing), x.started, seen);
    }
  }

  // A slice, or the whole region (slice -1), to the peer, or (`Fetch`) from there.
  template <bool Fetch = false>
  CPUFREE_KERNEL_FN void copy(const SendSite& site, int slice = -1) {
    if (site.bytes == 8) {
      copy_as<std::uint64_t, Fetch>(site, slice);
    } else if (site.bytes == 4) {
      copy_as<std::uint32_t, Fetch>(site, slice);
    } else {
      copy_as<std::uint8_t, Fetch>(site, slice);
    }
  }
  template <class T, bool Fetch>
  CPUFREE_KERNEL_FN void copy_as(const SendSite& site, int slice) {
    const auto all = static_cast<std::uint32_t>(site.count[0] * site.count[1] * site.count[2]);
    std::uint32_t begin = 0, end = all;
    if (slice >= 0) {
      const auto slices = static_cast<std::uint32_t>(site.slices);
      const std::uint32_t each = (all - 1) / slices + 1;
      begin = each * static_cast<std::uint32_t>(slice);
      end = begin + each < all ? begin + each : all;
    }
    const std::int64_t most = Fetch ? port_.lanes() : site.threads;
    const auto lanes = static_cast<std::uint32_t>(most < port_.lanes() ? most : port_.lanes());
    const auto me = static_cast<std::uint32_t>(port_.lane());
    if (me >= lanes) return;
    const Places<T> places(site, heap_);
    const int peer = static_cast<int>(site.peer);
    constexpr int kBatch = 4;  // loads that are under way at a time
    for (std::uint32_t k = begin + me; k < end; k += kBatch * lanes) {
      T values[kBatch];
      CPUFREE_UNROLL
      for (int j = 0; j < kBatch; ++j) {
        const std::uint32_t at = k + static_cast<std::uint32_t>(j) * lanes;
        if (at >= end) continue;
        values[j] = Fetch ? *port_.peer(places.there(at), peer) : *places.here(at);
      }
      CPUFREE_UNROLL
      for (int j = 0; j < kBatch; ++j) {
        const std::uint32_t at = k + static_cast<std::uint32_t>(j) * lanes;
        if (at >= end) continue;
        if constexpr (Fetch) {
          *places.here(at) = values[j];
        } else {
          port_.put(places.there(at), peer, values[j]);
        }
      }
    }
  }
  // Where value k of a region lies, here and on the peer (as an address of mine).
  template <class T>
  class Places {
   public:
    CPUFREE_KERNEL_FN Places(const SendSite& site, std::byte* heap)
        : site_(site),
          here_(reinterpret_cast<T*>(heap + site.from)),
          there_(reinterpret_cast<T*>(heap + site.to)),
          n1_(static_cast<std::uint32_t>(site.count[1])),
          n2_(static_cast<std::uint32_t>(site.count[2])),
          is_line_(site.count[0] * site.count[1] == 1) {}
    CPUFREE_KERNEL_FN T* here(std::uint32_t k) const { return here_ + at(k, site_.from_step); }
    CPUFREE_KERNEL_FN T* there(std::uint32_t k) const { return there_ + at(k, site_.to_step); }

   private:
    CPUFREE_KERNEL_FN std::int64_t at(std::uint32_t k, const std::int64_t (&step)[3]) const {
      if (is_line_) return k * step[2];  // divisions take time
      const std::uint32_t rest = k / n2_;
      return rest / n1_ * step[0] + rest % n1_ * step[1] + k % n2_ * step[2];
    }
    const SendSite& site_;
    T* here_;
    T* there_;
    std::uint32_t n1_, n2_;
    bool is_line_;
  };

  CPUFREE_KERNEL_FN bool stopped() { return port_.host_notes() != kNoteNone; }
  // By one thread. Any rank may raise a signal of the program: no single one is to blame.
  CPUFREE_COLD_FN bool wait_signal_flag(const Flag* signal, Epoch want) {
    return wait_flag(port_, signal, want, {Channel::halo_arrival, port_.pe(), 0},
                     [&] { return stopped(); });
  }

  static constexpr std::int64_t kHead = 128;  // bytes of the table before the sites
  P& port_;
  std::byte* heap_;
  MessagePlan plan_;
};

}  // namespace cpufree::programs
