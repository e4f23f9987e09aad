// Whether values that a PE of another node has put are there when their flag is: what a network,
// its cards and the bus behind them have to keep, and what no wait can make up for. Two PEs send
// each other values that all are the number of the round, and look at them once they have the flag.
//
// Slots, sources and flags have two parities. A PE sends round r + 2 when it has the flag of r + 1,
// which the other sent after it had looked at r, and had its flag: slot and source are free.
#pragma once

#include <cstdint>

#include "cpufree/device/port.hpp"
#include "cpufree/device/wait.hpp"

namespace cpufree {

struct LitmusArgs {
  std::int32_t partner = 0;        // in another node
  std::int64_t rounds = 0;         // 0: this PE has no partner
  std::int64_t values = 0;         // of a message
  double* source = nullptr;        // symmetric, two parities
  double* target = nullptr;        // likewise
  Flag* flags = nullptr;           // likewise
  std::uint64_t* wrong = nullptr;  // for each thread: values that were not those of the flag
};

// One block of each PE.
template <RemotePort P>
CPUFREE_KERNEL_FN void litmus_kernel(P& port, const LitmusArgs& a) {
  std::uint64_t wrong = 0;
  for (Epoch round = 1; round <= static_cast<Epoch>(a.rounds); ++round) {
    const auto odd = static_cast<std::int64_t>(round & 1U);
    double* const source = a.source + odd * a.values;
    for (std::int64_t i = port.lane(); i < a.values; i += port.lanes())
      port.put(source + i, port.pe(), static_cast<double>(round));
    publish_block(port);
    double* const target = a.target + odd * a.values;
    port.put_signal(target, a.partner, source, a.values, a.flags + odd, round);
    bool here = true;
    if (port.lane() == 0) {
      here = wait_flag(port, a.flags + odd, round, WaitSite{Channel::halo_arrival, a.partner, 0});
      port.acquire(Scope::system);
    }
    if (!port.all(here)) break;
    port.see_signals();
    for (std::int64_t i = port.lane(); i < a.values; i += port.lanes())
      wrong += target[i] != static_cast<double>(round) ? 1U : 0U;
  }
  a.wrong[port.lane()] = wrong;
}

}  // namespace cpufree
