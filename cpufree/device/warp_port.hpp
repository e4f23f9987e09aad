// What kernels may ask besides of engines whose blocks are made of warps: GPUs, and the fibers that
// stand in for them in tests. All lanes of a warp call the same verb together; lanes that a verb
// has nothing to bring from keep their own value.
#pragma once

#include "cpufree/device/pack.hpp"
#include "cpufree/device/port.hpp"

namespace cpufree {

template <class P>
concept WarpPort =
    Port<P> && P::width == 1 &&
    requires(P& port, float value, float* values, const float (&three)[3], Packet* packet,
             FloatPacket* floats, const FloatPacket* cfloats, SmallPacket* small,
             const SmallPacket* csmall) {
      { port.warp() } -> std::convertible_to<int>;       // of the block
      { port.warps() } -> std::convertible_to<int>;      // of the block
      { port.warp_lane() } -> std::convertible_to<int>;  // of the warp
      { port.warp_up(value) } -> std::same_as<float>;    // of the lane before
      { port.warp_down(value) } -> std::same_as<float>;  // of the lane after
      { port.warp_or(1U) } -> std::convertible_to<unsigned>;
      { port.product(value, value) } -> std::same_as<float>;  // rounded, whatever is added to it
      // Copies of 16 bytes into the block's own memory, which the thread need not wait for: they
      // belong to a group, which end_copies() ends. await_copies<N>() waits until all of the
      // thread's groups but the last N are there.
      port.copy_in(values, static_cast<const float*>(values), true);  // false: nothing
      port.end_copies();
      port.template await_copies<1>();
      port.warp_sync();  // orders the memory accesses of its lanes
      // Packets, all parts of which become visible together, ordered with nothing else, to where
      // `peer` has said that an object of mine is on another PE.
      { port.peer(floats, 0) } -> std::same_as<FloatPacket*>;
      port.send_packet(floats, three, std::uint32_t{});
      port.send_packet(packet, double{}, std::uint64_t{});
      port.send_packet(small, value, std::uint32_t{});  // to a block of this PE alone
      { port.get_packet(cfloats) } -> std::same_as<FloatPacket>;
      { port.get_packet(csmall) } -> std::same_as<SmallPacket>;
      {
        port.in_memory(values)
      } -> std::same_as<float*>;  // the same; promises that it is no
                                  // memory of the block's own
    };

}  // namespace cpufree
