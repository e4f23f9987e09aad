// Values into the memory of another PE by bulk copies out of a block's shared memory (PTX ISA 8.x:
// cp.async.bulk): the hardware's copies, in the place of stores by all threads.
#pragma once

#include <cstdint>

#include "cpufree/engines/gpu_p2p/bulk.cuh"
#include "cpufree/engines/gpu_p2p/port.cuh"

namespace cpufree::gpu_p2p {

inline constexpr int kBulkValues = 1024;  // of a stage, of which a block has two

// By all threads of the block: value(i) to `to` + i on PE `pe`, for i < count. When it returns, all
// of them are there for whom the calling block's next flag tells, as after `put`.
//
// A stage is filled again when the copy out of it has been read: lane 0 lets one copy, the other
// stage's, be under way, and a block barrier follows. Threads' stores into a stage are known to the
// copies' hardware after a fence of each thread and a block barrier. All copies have ended before
// the return: what they wrote is visible to lane 0, who publishes. Copies have whole pairs of
// values at even addresses; what is left of these at either end is stored.
// Not there for GPUs without such copies.
template <class F>
  requires kSinceHopper
__device__ void put_bulk(Port& port, double* to, int pe, std::int64_t count, const F& value) {
  __shared__ alignas(128) double stage[2][kBulkValues];
  double* const there = port.peer(to, pe);
  const std::int64_t odd =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(there) / 8 % 2);
  const std::int64_t first = odd < count ? odd : count;
  const std::int64_t last = first + (count - first) / 2 * 2;
  if (port.lane() == 0) {
    if (first > 0) there[0] = value(std::int64_t{0});
    if (last < count) there[last] = value(last);
  }
  unsigned which = 0;
  for (std::int64_t begin = first; begin < last; begin += kBulkValues, which ^= 1U) {
    const std::int64_t left = last - begin;
    const int values = left < kBulkValues ? static_cast<int>(left) : kBulkValues;
    if (port.lane() == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    port.sync_block();
    for (int i = port.lane(); i < values; i += port.lanes()) stage[which][i] = value(begin + i);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    port.sync_block();
    if (port.lane() == 0)
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
          "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(there + begin)),
          "r"(in_shared(stage[which])), "r"(8 * values)
          : "memory");
  }
  if (port.lane() == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace cpufree::gpu_p2p
