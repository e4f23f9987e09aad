// The verbs of triggers in kernels, by packets or by counters, whichever a NIC takes.
#pragma once

#include <type_traits>

#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/triggered/device/trigger_counters.hpp"
#include "cpufree/triggered/gpu/kernels.hpp"

namespace cpufree::triggered {

using GpuPort = gpu_p2p::Port;

template <bool kCounts>
class GpuVerbs {
 public:
  using Type = std::conditional_t<kCounts, CounterTriggers<GpuPort>, Triggers<GpuPort>>;

  __device__ GpuVerbs(GpuPort& port, const VerbArgs& args, int nic)
      : port_(port),
        sent_(args.sent + port.block() * args.board.pes + nic),
        verbs_(make(args, nic)) {}
  __device__ Type& verbs() { return verbs_; }
  // For the next kernel: what this block has sent.
  __device__ void keep() {
    if constexpr (!kCounts)
      if (port_.lane() == 0) *sent_ = verbs_.sent();
  }

 private:
  __device__ Type make(const VerbArgs& args, int nic) {
    if constexpr (kCounts)
      return Type(port_, args.board, args.counters, nic);
    else
      return Type(port_, args.board, nic, *sent_);
  }
  GpuPort& port_;
  Epoch* sent_;
  Type verbs_;
};

// Busy until a time of this GPU's clock.
__device__ inline void spin_until(std::uint64_t time) {
  while (gpu_p2p::nanoseconds() < time) {
  }
}

}  // namespace cpufree::triggered
