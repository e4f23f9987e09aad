// Bounded waits. Every wait of every kernel ends here.
#pragma once

#include "cpufree/device/port.hpp"

namespace cpufree {

// Who is waited for, and where.
struct WaitSite {
  Channel channel;
  int from_pe;
  int from_block;
};

template <Port P>
CPUFREE_KERNEL_FN void file_wait(P& port, typename P::Wait& wait, const WaitSite& site, Epoch want,
                                 Epoch seen) {
  WaitRecord record;
  record.channel = site.channel;
  record.from_pe = site.from_pe;
  record.from_block = site.from_block;
  record.want = want;
  record.seen = seen;
  port.give_up(wait, record);
}

// Ports that write down what a kernel waits for (trace/traced.hpp). Before and after a wait for
// what has not come yet: `at` is what came last, a flag or packet in memory of mine. `finds`: it
// was there before it was asked for. `enter`: a section of the kernel begins, a level of multigrid
// or a line of a program, by its number; -1: it has ended. `moves`: bytes go to a PE, by other
// means than `put`. Kernels for other ports have not an instruction of this.
template <class P>
concept TracingPort = Port<P> && requires(P& port, const void* at, const WaitSite& site) {
  port.wait_begins(site, Epoch{});
  port.wait_ends(at, site, Epoch{});
  port.finds(at, site, Epoch{});
  port.enter(0);
  port.moves(0, std::uint64_t{});
};

// Waits until look() is true, after one that was not: it looks at `at`, in my memory, and sets
// `seen`. Called by one thread. False: the bound is over, another PE gave up, or leaves(), which is
// asked after looks in vain; leave the kernel.
template <Port P, class L, class S>
CPUFREE_KERNEL_FN bool wait_until(P& port, L&& look, [[maybe_unused]] const void* at,
                                  const WaitSite& site, Epoch want, const Epoch& seen, S&& leaves) {
  if constexpr (TracingPort<P>) port.wait_begins(site, want);
  auto wait = port.start_wait();
  while (port.keep_waiting(wait)) {
    if (look()) {
      if constexpr (TracingPort<P>) port.wait_ends(at, site, seen);
      return true;
    }
    if (leaves()) return false;
  }
  file_wait(port, wait, site, want, seen);
  return false;
}

// Waits until `flag` (in my memory) has reached `want`. Called by one thread; the caller orders
// later reads with `acquire`. False: as wait_until.
template <Port P, class S>
CPUFREE_KERNEL_FN bool wait_flag(P& port, const Flag* flag, Epoch want, const WaitSite& site,
                                 S&& leaves) {
  Epoch seen = 0;
  const auto look = [&] {
    seen = port.get_flag(flag);
    return reached(seen, want);
  };
  if (!look()) return wait_until(port, look, flag, site, want, seen, leaves);
  if constexpr (TracingPort<P>) port.finds(flag, site, seen);
  return true;
}
template <Port P>
CPUFREE_KERNEL_FN bool wait_flag(P& port, const Flag* flag, Epoch want, const WaitSite& site) {
  return wait_flag(port, flag, want, site, [] { return false; });
}

// Tells a port that traces of a wait for packets, of which the last to come counts: lacks(k) says
// whether packet k is still missing. For other ports it is nothing.
template <class P, class A, class S, class L>
class PacketTrace {
 public:
  CPUFREE_KERNEL_FN PacketTrace(P& port, A& at, S& site, Epoch want, L&& lacks)
      : port_(port), at_(at), site_(site), want_(want), lacks_(lacks) {}

  template <int N>
  CPUFREE_KERNEL_FN void begin() {
    look<N>();
    if constexpr (TracingPort<P>)
      if (last_ >= 0) port_.wait_begins(site_(last_), want_);
  }
  // After a look that has not found all.
  template <int N>
  CPUFREE_KERNEL_FN void look() {
    if constexpr (TracingPort<P>)
      for (int k = 0; k < N; ++k)
        if (lacks_(k)) last_ = k;
  }
  CPUFREE_KERNEL_FN bool end() {
    if constexpr (TracingPort<P>)
      if (last_ >= 0) port_.wait_ends(at_(last_), site_(last_), want_);
    return true;
  }

 private:
  P& port_;
  A& at_;
  S& site_;
  Epoch want_;
  L lacks_;
  int last_ = -1;
};

// `wait_packets`; `join(bool)` decides for those who wait together.
template <int N, Port P, class A, class S, class J>
CPUFREE_KERNEL_FN bool wait_packets_joined(P& port, A&& at, int count, Epoch want, S&& site,
                                           Packet (&out)[N], J&& join) {
  const auto look = [&] {
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k)
      if (k < count) out[k] = port.get_packet(at(k));
    bool here = true;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) here = here && (k >= count || arrived(out[k].tag, want));
    return here;
  };
  if (join(look())) return true;
  PacketTrace traced(port, at, site, want,
                     [&](int k) { return k < count && k < N && !arrived(out[k].tag, want); });
  traced.template begin<N>();
  auto wait = port.start_wait();
  while (join(port.keep_waiting(wait))) {
    if (join(look())) return traced.end();
    traced.template look<N>();
  }
  int missing = -1;
  Epoch seen = 0;
  CPUFREE_UNROLL
  for (int k = N - 1; k >= 0; --k)
    if (k < count && !arrived(out[k].tag, want)) missing = k, seen = tag_epoch(out[k].tag);
  if (missing >= 0) file_wait(port, wait, site(missing), want, seen);
  return false;
}

// Waits until `count` <= N packets in my memory, at(0), at(1), ..., all carry `want`, and returns
// them through `out`. All are looked at together, so that waiting for several takes no longer than
// waiting for the last. `site(k)` tells who sends packet k.
template <int N, Port P, class A, class S>
CPUFREE_KERNEL_FN bool wait_packets(P& port, A&& at, int count, Epoch want, S&& site,
                                    Packet (&out)[N]) {
  return wait_packets_joined(port, at, count, want, site, out, [](bool mine) { return mine; });
}

// The same by all threads of a warp, which wait until the packets of all of them have come: threads
// that leave a loop one by one go their own ways for long after it.
template <int N, Port P, class A, class S>
CPUFREE_KERNEL_FN bool wait_packets_together(P& port, A&& at, int count, Epoch want, S&& site,
                                             Packet (&out)[N]) {
  return wait_packets_joined(port, at, count, want, site, out,
                             [&](bool mine) { return port.warp_all(mine); });
}

// The same for packets of either kind, of which a thread waits for those that awaited(k) says. It
// reads all N, so that at(k) is in memory of mine in any case: reads on conditions take registers.
template <int N, Port P, class A, class B, class S, class K>
CPUFREE_KERNEL_FN bool wait_some_together(P& port, A&& at, B&& awaited, Epoch want, S&& site,
                                          K (&out)[N]) {
  const auto look = [&] {
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) out[k] = port.get_packet(at(k));
    bool here = true;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) here = here && (!awaited(k) || arrived(out[k], want));
    return port.warp_all(here);
  };
  if (look()) return true;
  PacketTrace traced(port, at, site, want,
                     [&](int k) { return awaited(k) && !arrived(out[k], want); });
  traced.template begin<N>();
  auto wait = port.start_wait();
  while (port.warp_all(port.keep_waiting(wait))) {
    if (look()) return traced.end();
    traced.template look<N>();
  }
  int missing = -1;
  Epoch seen = 0;
  CPUFREE_UNROLL
  for (int k = N - 1; k >= 0; --k)
    if (awaited(k) && !arrived(out[k], want)) missing = k, seen = epoch_of(out[k], want);
  if (missing >= 0) file_wait(port, wait, site(missing), want, seen);
  return false;
}

// `wait_flag` by all threads of a warp together, of whom some have a flag to wait for.
template <Port P>
CPUFREE_KERNEL_FN bool wait_flags_together(P& port, const Flag* flag, bool mine, Epoch want,
                                           const WaitSite& site) {
  Epoch seen = 0;
  const auto look = [&] {
    if (mine) seen = port.get_flag(flag);
    return port.warp_all(!mine || reached(seen, want));
  };
  if (look()) return true;
  const bool late = mine && !reached(seen, want);
  if constexpr (TracingPort<P>)
    if (late) port.wait_begins(site, want);
  auto wait = port.start_wait();
  while (port.warp_all(port.keep_waiting(wait)))
    if (look()) {
      if constexpr (TracingPort<P>)
        if (late) port.wait_ends(flag, site, seen);
      return true;
    }
  if (mine && !reached(seen, want)) file_wait(port, wait, site, want, seen);
  return false;
}

}  // namespace cpufree
