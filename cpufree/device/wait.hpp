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

// Waits until the packet in my memory carries `want`, and returns it through `out`.
template <Port P>
CPUFREE_KERNEL_FN bool wait_packet(P& port, const Packet* packet, Epoch want, const WaitSite& site,
                                   Packet& out) {
  out = port.get_packet(packet);
  if (reached(tag_epoch(out.tag), want)) return true;
  auto wait = port.start_wait();
  while (port.keep_waiting(wait)) {
    out = port.get_packet(packet);
    if (reached(tag_epoch(out.tag), want)) return true;
  }
  file_wait(port, wait, site, want, tag_epoch(out.tag));
  return false;
}

}  // namespace cpufree
