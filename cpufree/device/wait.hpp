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

// Waits until `flag` (in my memory) has reached `want`. Called by one thread; the caller orders
// later reads with `acquire`. False: the bound is over or another PE gave up; leave the kernel.
template <Port P>
CPUFREE_KERNEL_FN bool wait_flag(P& port, const Flag* flag, Epoch want, const WaitSite& site) {
  Epoch seen = port.get_flag(flag);
  if (reached(seen, want)) return true;
  auto wait = port.start_wait();
  while (port.keep_waiting(wait)) {
    seen = port.get_flag(flag);
    if (reached(seen, want)) return true;
  }
  file_wait(port, wait, site, want, seen);
  return false;
}

// Waits until `count` <= N packets in my memory, `stride` apart, all carry `want`, and returns them
// through `out`. All are looked at together, so that waiting for several takes no longer than
// waiting for the last. `site(k)` tells who sends packet k.
template <int N, Port P, class S>
CPUFREE_KERNEL_FN bool wait_packets(P& port, const Packet* packets, std::int64_t stride, int count,
                                    Epoch want, S&& site, Packet (&out)[N]) {
  const auto look = [&] {  // the first packet that is missing, or `count`
    int missing = count;
    CPUFREE_UNROLL
    for (int k = 0; k < N; ++k)
      if (k < count) out[k] = port.get_packet(packets + k * stride);
    CPUFREE_UNROLL
    for (int k = N - 1; k >= 0; --k)
      if (k < count && !reached(tag_epoch(out[k].tag), want)) missing = k;
    return missing;
  };
  int missing = look();
  if (missing == count) return true;
  auto wait = port.start_wait();
  while (port.keep_waiting(wait)) {
    missing = look();
    if (missing == count) return true;
  }
  Epoch seen = 0;
  CPUFREE_UNROLL
  for (int k = 0; k < N; ++k)
    if (k == missing) seen = tag_epoch(out[k].tag);
  file_wait(port, wait, site(missing), want, seen);
  return false;
}

}  // namespace cpufree
