// The policy of StreamingPort on AMD's GPUs: each lane of the warp copies its 16-byte pieces, which
// are there when it goes on. So barriers have nothing to say.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/port.hpp"
#include "cpufree/engines/gpu_p2p/hip/atomic.cuh"

namespace cpufree::gpu_p2p {

// Values in shared memory that do not change while they are read.
template <class T>
struct BlockArray {
  InBlock<const T>* at;
  __device__ T operator[](unsigned k) const { return at[k]; }
};
template <class T>
__device__ inline BlockArray<T> fast_array(const T* array) {
  return {(InBlock<const T>*)array};
}

struct StreamCopies {
  static constexpr bool by_warp = true;

  __device__ static void make(std::uint64_t*) {}
  __device__ static void show() {}
  __device__ static void announce(std::uint64_t*, std::uint32_t) {}
  __device__ static void start(void* to, const void* from, std::uint32_t bytes, std::uint64_t*,
                               CacheHint) {
    for (std::uint32_t k = 16U * static_cast<unsigned>(lane_of_wave() & 31); k < bytes;
         k += 16 * 32)
      copy_16_bytes(static_cast<std::byte*>(to) + k, static_cast<const std::byte*>(from) + k, true);
  }
  __device__ static void end(std::uint64_t*) {}
};

template <class Copies>
__device__ inline void await_phase(std::uint64_t*, std::uint32_t) {
  sync_lanes();
}

}  // namespace cpufree::gpu_p2p
