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
// what has not come yet: `at` is what came last, a flag or packet in memory of mine. `wait_turns`:
// a wait that goes on is for something else now, or for nothing of this thread's. `finds`: it was
// there before it was asked for. `enter`: a section of the kernel begins, a level of multigrid
// or a line of a program, by its number; -1: it has ended. `moves`: bytes go to a PE, by other
// means than `put`. `begin_turn`: so many iterations begin. Kernels for other ports have not an
// instruction of this.
template <class P>
concept TracingPort = Port<P> && requires(P& port, const void* at, const WaitSite& site) {
  port.wait_begins(site, Epoch{});
  port.wait_turns(true, site, Epoch{});
  port.wait_ends(at, site, Epoch{});
  port.finds(at, site, Epoch{});
  port.enter(0);
  port.begin_turn(1);
  port.moves(0, std::uint64_t{});
};

// Calls look(first) until it has found all, for as long as go_on() says. False: that was not so.
// The first look is in the loop, too: a look at several packets is long, and compilers take a
// kernel's time for each copy of it.
template <class L, class G>
CPUFREE_KERNEL_FN bool look_until(L&& look, G&& go_on) {
  bool first = true;
  CPUFREE_ONE_COPY
  while (!look(first)) {
    if (!go_on()) return false;
    first = false;
  }
  return true;
}

// Waits until look() is true: it looks at `at`, in my memory, and sets `seen`. Called by one
// thread. False: the bound is over, another PE gave up, or leaves(), which is asked after looks in
// vain; leave the kernel.
template <Port P, class L, class S>
CPUFREE_KERNEL_FN bool wait_until(P& port, L&& look, [[maybe_unused]] const void* at,
                                  const WaitSite& site, Epoch want, const Epoch& seen, S&& leaves) {
  auto wait = port.start_wait();
  bool left = false;
  const auto go_on = [&] {
    left = leaves();
    return !left && port.keep_waiting(wait);
  };
  if constexpr (TracingPort<P>) {
    const auto traced = [&](bool first) {
      const bool here = look();
      if (first && here) port.finds(at, site, seen);
      if (first && !here) port.wait_begins(site, want);
      if (!first && here) port.wait_ends(at, site, seen);
      return here;
    };
    if (look_until(traced, go_on)) return true;
    if (left) port.wait_turns(false, site, want);
  } else {
    if (look_until([&](bool) { return look(); }, go_on)) return true;
  }
  if (left) return false;
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
  return wait_until(port, look, flag, site, want, seen, leaves);
}
template <Port P>
CPUFREE_KERNEL_FN bool wait_flag(P& port, const Flag* flag, Epoch want, const WaitSite& site) {
  return wait_flag(port, flag, want, site, [] { return false; });
}

// look(first), which looks at N packets and says whether it has found all, for a port that traces:
// of a wait for packets the last one to come counts. lacks(k): packet k is still missing.
template <int N, TracingPort P, class L, class A, class S, class K>
CPUFREE_KERNEL_FN auto traced_look(P& port, L& look, A& at, S& site, Epoch want, K& lacks) {
  return [&port, &look, &at, &site, want, &lacks, last = -1, before = -1](bool first) mutable {
    const bool all = look(first);
    int missing = -1;  // others of the warp may wait on
    if (!all)
      for (int k = 0; k < N; ++k)
        if (lacks(k)) missing = k;
    if (missing >= 0) last = missing;
    if (last >= 0 && all) port.wait_ends(at(last), site(last), want);
    if (last >= 0 && first) port.wait_begins(site(last), want);
    if (!all && !first && missing != before) port.wait_turns(missing >= 0, site(last), want);
    before = missing;
    return all;
  };
}

// `wait_packets`; `join(bool)` decides for those who wait together.
template <int N, Port P, class A, class S, class J>
CPUFREE_KERNEL_FN bool wait_packets_joined(P& port, A&& at, int count, Epoch want, S&& site,
                                           Packet (&out)[N], J&& join) {
  const auto look = [&](bool) {
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k)
      if (k < count) out[k] = port.get_packet(at(k));
    bool here = true;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) here = here && (k >= count || arrived(out[k].tag, want));
    return join(here);
  };
  auto wait = port.start_wait();
  const auto go_on = [&] { return join(port.keep_waiting(wait)); };
  if constexpr (TracingPort<P>) {
    const auto lacks = [&](int k) { return k < count && !arrived(out[k].tag, want); };
    if (look_until(traced_look<N>(port, look, at, site, want, lacks), go_on)) return true;
  } else {
    if (look_until(look, go_on)) return true;
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
  const auto look = [&](bool) {
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) out[k] = port.get_packet(at(k));
    bool here = true;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k) here = here && (!awaited(k) || arrived(out[k], want));
    return port.warp_all(here);
  };
  auto wait = port.start_wait();
  const auto go_on = [&] { return port.warp_all(port.keep_waiting(wait)); };
  if constexpr (TracingPort<P>) {
    const auto lacks = [&](int k) { return awaited(k) && !arrived(out[k], want); };
    if (look_until(traced_look<N>(port, look, at, site, want, lacks), go_on)) return true;
  } else {
    if (look_until(look, go_on)) return true;
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
  const auto look = [&](bool) {
    if (mine) seen = port.get_flag(flag);
    return port.warp_all(!mine || reached(seen, want));
  };
  auto wait = port.start_wait();
  const auto go_on = [&] { return port.warp_all(port.keep_waiting(wait)); };
  if constexpr (TracingPort<P>) {
    const auto lacks = [&](int) { return mine && !reached(seen, want); };
    const auto at = [&](int) { return flag; };
    const auto from = [&](int) { return site; };
    if (look_until(traced_look<1>(port, look, at, from, want, lacks), go_on)) return true;
  } else {
    if (look_until(look, go_on)) return true;
  }
  if (mine && !reached(seen, want)) file_wait(port, wait, site, want, seen);
  return false;
}

}  // namespace cpufree
