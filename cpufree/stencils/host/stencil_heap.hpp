// The symmetric memory of a stencil, the same on every engine. All of it are channels, which every
// launch starts from zero.
#pragma once

#include <cstddef>

#include "cpufree/base/index.hpp"
#include "cpufree/device/allreduce.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/problem/grid.hpp"
#include "cpufree/stencils/args.hpp"

namespace cpufree {

template <class T>
struct StencilHeap {
  Symmetric<Flag> leave;  // for engines that tell PEs to leave through their memory
  Symmetric<Flag> flags;
  Symmetric<Packet> slots, packets;
  Symmetric<T> values;
  Symmetric<T> boxes[2];  // of values that stay in memory (time tiles)
  std::int64_t mailbox = 0;
  std::size_t channel_bytes = 0;  // of the beginning: all but values, whose flags say what is there
  std::size_t bytes = 0;
  bool by_packets = false;

  // `box`: values of a PE that stay in memory; its halo needs no mailboxes. `packet_bytes`: of the
  // largest packet that kernels put into mailboxes, which vendors differ in.
  StencilHeap(const Tiling& tiling, bool with_packets, std::int64_t box = 0,
              std::size_t packet_bytes = sizeof(Packet))
      : mailbox(box > 0 ? 0 : tiling.mailbox), by_packets(with_packets) {
    const Division& d = tiling.division;
    SymmetricLayout layout;
    leave = layout.reserve<Flag>(1);
    flags = layout.reserve<Flag>(at(tiling.flags));
    slots = layout.reserve<Packet>(at(reduce_slot_count(d.pes_in_all(), d.blocks_in_all())));
    if (by_packets)
      packets = layout.reserve<Packet>(at(2 * mailbox) * (packet_bytes / sizeof(Packet)));
    channel_bytes = layout.bytes();
    if (!by_packets) values = layout.reserve<T>(at(2 * mailbox));
    for (Symmetric<T>& b : boxes) b = layout.reserve<T>(at(box));
    bytes = layout.bytes();
  }

  // Points a PE's arguments at its heap.
  void place(JacobiArgs<T>& args, std::byte* base) const {
    args.slots = slots.at(base);
    args.mailboxes.size = mailbox;
    args.mailboxes.flags = flags.at(base);
    args.mailboxes.packets = by_packets ? packets.at(base) : nullptr;
    args.mailboxes.values = by_packets ? nullptr : values.at(base);
  }
};

}  // namespace cpufree
