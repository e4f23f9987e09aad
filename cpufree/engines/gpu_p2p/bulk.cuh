// Bulk copies from device memory into a block's shared memory, and the barriers that say when they
// are there: our own PTX (PTX ISA 8.x: mbarrier, cp.async.bulk).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/port.hpp"

namespace cpufree::gpu_p2p {

__device__ inline unsigned in_shared(const void* object) {
  return static_cast<unsigned>(__cvta_generic_to_shared(object));
}

// Values in shared memory that do not change while they are read: 32 bits are an address.
template <class T>
struct FastArray {
  unsigned at;
  __device__ T operator[](unsigned k) const {
    T value;
    if constexpr (sizeof(T) == 8)
      asm("ld.shared.f64 %0, [%1];" : "=d"(value) : "r"(at + 8 * k));
    else
      asm("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(at + 4 * k));
    return value;
  }
};

// A barrier whose phases complete when one thread has announced bytes and these have come.
__device__ inline void make_barrier(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(in_shared(barrier)) : "memory");
}
// Barriers that were made are known to the copies' hardware from here on.
__device__ inline void show_barriers() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ inline void announce(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(barrier)),
               "r"(bytes)
               : "memory");
}
// The hardware's words for hints are constants here. Looked up in shared memory they took longer
// than a choice between two constants: 220 us instead of 205 an iteration (Flan_1565, one H200,
// prcg). What the choice among three takes has not been compared on one machine.
__device__ inline void start_bulk_copy(void* to, const void* from, std::uint32_t bytes,
                                       std::uint64_t* barrier, CacheHint hint) {
  asm volatile(
      "{ .reg .pred drop, keep; .reg .b64 first, normal, last, policy;"
      "setp.eq.u32 drop, %4, 0;"  // the numbers of CacheHint
      "setp.eq.u32 keep, %4, 2;"
      "createpolicy.fractional.L2::evict_first.b64 first, 1.0;"
      "createpolicy.fractional.L2::evict_normal.b64 normal, 1.0;"
      "createpolicy.fractional.L2::evict_last.b64 last, 1.0;"
      "selp.b64 policy, first, normal, drop;"
      "selp.b64 policy, last, policy, keep;"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1], %2, [%3], policy; }" ::"r"(in_shared(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(in_shared(barrier)),
      "r"(static_cast<std::uint32_t>(hint))
      : "memory");
}
// Until the barrier's phase of this parity is complete: the hardware suspends the thread for up to
// 10 us at a look. Copies end within microseconds; one that does not within that many looks, 10 s
// at most, is a defect of this code, of which the kernel is to die and not to hang. (Looks are
// counted, as a clock to compare with would take registers from the product.)
__device__ inline void await_phase(std::uint64_t* barrier, std::uint32_t parity) {
#pragma unroll 1
  for (unsigned looks = 0; looks < (1U << 20U); ++looks) {
    unsigned there = 0;
    asm volatile(
        "{ .reg .pred there; mbarrier.try_wait.parity.shared::cta.b64 there, [%1], %2, 10000;"
        "selp.u32 %0, 1, 0, there; }"
        : "=r"(there)
        : "r"(in_shared(barrier)), "r"(parity)
        : "memory");
    if (there != 0) return;
  }
  __trap();
}

}  // namespace cpufree::gpu_p2p
