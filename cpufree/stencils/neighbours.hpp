// Flags among the tiles that exchange halos: one for each edge, in the receiver's memory.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/stencils/args.hpp"

namespace cpufree {

// Tells the tiles around that all that the block has written so far is there. Contains a block
// barrier.
//
// An edge is a thread's, whose own fence orders what the block has written before the barrier. A
// warp has one fence, of the widest scope that one of its edges needs. Where the edge leads is on
// its way while the block comes together: caches have dropped it since the exchange before.
template <Port P, class T>
CPUFREE_KERNEL_FN void tell_neighbours(P& port, const TileArgs<T>& tile, Flag* flags, Epoch epoch) {
  const std::int32_t lanes = port.lanes();
  const std::int32_t place = port.lane() % (lanes < P::warp_width ? lanes : P::warp_width);
  std::int32_t pe = -1, flag = 0;
  const auto look_up = [&](std::int32_t e) {
    pe = e < tile.edges ? tile.sends[e].pe : -1;
    flag = e < tile.edges ? tile.sends[e].flag : 0;
  };
  look_up(port.lane());
  port.sync_block();
  for (std::int32_t first = port.lane() - place; first < tile.edges; first += lanes) {
    if (first >= lanes) look_up(first + place);
    const bool leaves_pe = P::communicates && pe >= 0 && pe != port.pe();
    port.publish(port.warp_all(!leaves_pe) ? Scope::pe : Scope::system);
    if (pe >= 0 && exchanges_with(port, pe)) port.put_flag(flags + flag, pe, epoch);
  }
}

// Waits until all tiles around have told so. Ends with a block barrier. False: leave the kernel.
template <Port P, class T>
CPUFREE_KERNEL_FN bool await_neighbours(P& port, const TileArgs<T>& tile, const Flag* flags,
                                        Epoch epoch) {
  bool here = true;
  for (std::int32_t first = 0; here && first < tile.edges; first += port.lanes()) {
    const bool there = first + port.lane() < tile.edges;
    const TileEdge& edge = tile.receives[there ? first + port.lane() : first];
    const bool mine = there && exchanges_with(port, edge.pe);
    here = wait_flags_together(port, flags + edge.flag, mine, epoch,
                               WaitSite{Channel::halo_arrival, edge.pe, edge.block});
    if (mine) port.acquire(edge.pe != port.pe() ? Scope::system : Scope::pe);
  }
  return port.all(here);
}

}  // namespace cpufree
