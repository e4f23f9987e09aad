// Flags among the tiles that exchange halos: one for each edge, in the receiver's memory.
#pragma once

#include "cpufree/device/wait.hpp"
#include "cpufree/stencils/args.hpp"

namespace cpufree {

// Tells the tiles around that all that the block has written so far is there. Contains a block
// barrier.
template <Port P, class T>
CPUFREE_KERNEL_FN void tell_neighbours(P& port, const TileArgs<T>& tile, Flag* flags, Epoch epoch) {
  port.sync_block();
  if (port.lane() != 0) return;
  bool leaves_pe = false;
  for (std::int32_t e = 0; e < tile.edges; ++e)
    leaves_pe = leaves_pe || (P::communicates && tile.sends[e].pe != port.pe());
  port.publish(leaves_pe ? Scope::system : Scope::pe);
  for (std::int32_t e = 0; e < tile.edges; ++e)
    if (exchanges_with(port, tile.sends[e].pe))
      port.put_flag(flags + tile.sends[e].flag, tile.sends[e].pe, epoch);
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
