// What the host hands to the kernels of one launch. Plain data, for host and device code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/types.hpp"

namespace cpufree::gpu_p2p {

inline constexpr int kMaxPes = 16;
inline constexpr int kWarp = 32;  // threads that the hardware runs in lockstep

// What one launch shares, handed to the kernel by value: one for each PE. Pointers into host memory
// are mapped and pinned.
struct Shared {
  int pe = 0;
  int pes = 1;
  std::byte* heaps[kMaxPes] = {};  // symmetric heaps, all of them addressable from here
  Flag* leave = nullptr;           // symmetric: not 0 when all PEs are to leave
  const volatile unsigned* host_leave = nullptr;  // host: the same, from the host
  const volatile unsigned* notes = nullptr;       // host: see Note
  volatile std::int64_t* iteration = nullptr;     // host: progress
  volatile double* residual = nullptr;            // host: progress
  WaitRecord* records = nullptr;                  // host: one per block of this PE
  std::uint64_t wait_limit_ns = 0;
};

}  // namespace cpufree::gpu_p2p
