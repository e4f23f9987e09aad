// Copies from device memory into a block's shared memory that run by themselves, and the barriers
// that say when they are there: our own PTX (PTX ISA 8.x). Two policies of StreamingPort, by
// compute capability:
//   BulkCopies   since 9.0: one lane hands a whole copy to the hardware (cp.async.bulk), which
//                counts the bytes that have come at the barrier (mbarrier, expect_tx)
//   WarpCopies   since 8.0: each lane of the warp copies its 16-byte pieces (cp.async), and arrives
//                at the barrier when they have come (cp.async.mbarrier.arrive)
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpufree/device/port.hpp"
#include "cpufree/engines/gpu_p2p/cuda/generation.cuh"

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

template <class T>
__device__ inline FastArray<T> fast_array(const T* array) {
  return {in_shared(array)};
}

// A barrier whose phases complete after this many arrivals.
__device__ inline void make_barrier(std::uint64_t* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(barrier)), "r"(arrivals)
               : "memory");
}

struct BulkCopies {
  static constexpr bool by_warp = false;

  // Its phases complete when one thread has announced bytes and these have come.
  __device__ static void make(std::uint64_t* barrier) { make_barrier(barrier, 1); }
  // Barriers that were made are known to the copies' hardware from here on.
  __device__ static void show() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
  __device__ static void announce(std::uint64_t* barrier, std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(barrier)),
                 "r"(bytes)
                 : "memory");
  }
  // The hardware's words for hints are constants here. Looked up in shared memory they took longer
  // than a choice between two constants: 220 us instead of 205 an iteration (Flan_1565, one H200,
  // prcg). What the choice among three takes has not been compared on one machine.
  __device__ static void start(void* to, const void* from, std::uint32_t bytes,
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
  __device__ static void end(std::uint64_t*) {}  // the announcement has told all
  // The hardware suspends the thread for up to 10 us.
  __device__ static bool look(std::uint64_t* barrier, std::uint32_t parity) {
    unsigned there = 0;
    asm volatile(
        "{ .reg .pred there; mbarrier.try_wait.parity.shared::cta.b64 there, [%1], %2, 10000;"
        "selp.u32 %0, 1, 0, there; }"
        : "=r"(there)
        : "r"(in_shared(barrier)), "r"(parity)
        : "memory");
    return there != 0;
  }
  static constexpr unsigned kMostLooks = 1U << 20U;
};

struct WarpCopies {
  static constexpr bool by_warp = true;

  // Its phases complete when the copies of all lanes have come.
  __device__ static void make(std::uint64_t* barrier) { make_barrier(barrier, 32); }
  __device__ static void show() {}
  __device__ static void announce(std::uint64_t*, std::uint32_t) {}
  // My pieces: a copy of 16 bytes by each lane, 512 bytes further on for the next.
  __device__ static void start(void* to, const void* from, std::uint32_t bytes, std::uint64_t*,
                               CacheHint hint) {
    std::uint64_t policy;
    asm volatile(
        "{ .reg .pred drop, keep; .reg .b64 first, normal, last;"
        "setp.eq.u32 drop, %1, 0;"  // the numbers of CacheHint
        "setp.eq.u32 keep, %1, 2;"
        "createpolicy.fractional.L2::evict_first.b64 first, 1.0;"
        "createpolicy.fractional.L2::evict_normal.b64 normal, 1.0;"
        "createpolicy.fractional.L2::evict_last.b64 last, 1.0;"
        "selp.b64 %0, first, normal, drop;"
        "selp.b64 %0, last, %0, keep; }"
        : "=l"(policy)
        : "r"(static_cast<std::uint32_t>(hint)));
    const std::uint64_t source = __cvta_generic_to_global(from);
    for (std::uint32_t k = 16 * (threadIdx.x % 32); k < bytes; k += 16 * 32)
      asm volatile(
          "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(in_shared(to) + k),
          "l"(source + k), "l"(policy)
          : "memory");
  }
  // I have started all of mine: arrives for me when they have come.
  __device__ static void end(std::uint64_t* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(in_shared(barrier))
                 : "memory");
  }
  __device__ static bool look(std::uint64_t* barrier, std::uint32_t parity) {
    unsigned there = 0;
    asm volatile(
        "{ .reg .pred there; mbarrier.test_wait.parity.shared.b64 there, [%1], %2;"
        "selp.u32 %0, 1, 0, there; }"
        : "=r"(there)
        : "r"(in_shared(barrier)), "r"(parity)
        : "memory");
    return there != 0;
  }
  static constexpr unsigned kMostLooks = 1U << 28U;  // of some 20 ns and more
};

using StreamCopies = std::conditional_t<kSinceHopper, BulkCopies, WarpCopies>;

// Until the barrier's phase of this parity is complete. Copies end within microseconds; one that
// does not within that many looks, some 10 s, is a defect of this code, of which the kernel is to
// die and not to hang. (Looks are counted, as a clock to compare with would take registers from the
// product.)
template <class Copies>
__device__ inline void await_phase(std::uint64_t* barrier, std::uint32_t parity) {
#pragma unroll 1
  for (unsigned looks = 0; looks < Copies::kMostLooks; ++looks)
    if (Copies::look(barrier, parity)) return;
  __trap();
}

}  // namespace cpufree::gpu_p2p
