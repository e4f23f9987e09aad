// What kernels of ablations say to the GPU: packets, fences, barriers, sums of a block. A test of
// these kernels on CPU threads has its own words (tests/cpp/baselines/words_on_threads.hpp).
#pragma once

#include <cooperative_groups.h>

#define ABLATIONS_UNROLL _Pragma("unroll")

namespace ablations {

using Epoch = unsigned long long;

// A value and the number of the exchange that it belongs to, written and read as one.
struct alignas(16) Packet {
  double value;
  Epoch epoch;
};

__device__ inline unsigned block() { return blockIdx.x; }
__device__ inline unsigned lane() { return threadIdx.x; }
__device__ inline unsigned lanes() { return blockDim.x; }

extern __shared__ __align__(16) double memory_of_block[];
__device__ inline double* room() { return memory_of_block; }

__device__ inline void sync_block() { __syncthreads(); }
// Loads before it are issued before those behind it: ptxas would put each beside its use.
__device__ inline void loads_first() { __syncwarp(__activemask()); }
__device__ inline void grid_sync() { cooperative_groups::this_grid().sync(); }

// Orders what the block has written before its last barrier before what this thread writes next,
// for readers on this GPU or, `all`, on others; and what it has seen before what it reads next.
__device__ inline void fence(bool all) { all ? __threadfence_system() : __threadfence(); }

__device__ inline void put(Packet* to, double value, Epoch epoch) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(__double_as_longlong(value)), "l"(epoch)
               : "memory");
}
__device__ inline Packet look(const Packet* at) {
  long long value;
  Packet found;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(value), "=l"(found.epoch)
               : "l"(at)
               : "memory");
  found.value = __longlong_as_double(value);
  return found;
}

// Flags: words that only grow.
__device__ inline void set_word(Epoch* to, Epoch value) {
  *static_cast<volatile Epoch*>(to) = value;
}
__device__ inline Epoch word(const Epoch* at) { return *static_cast<const volatile Epoch*>(at); }

// The blocks of a cluster: a barrier that orders their memory, and the room of each.
__device__ inline void cluster_sync() { cooperative_groups::this_cluster().sync(); }
__device__ inline float* room_of(unsigned rank) {
  float* const mine = reinterpret_cast<float*>(room());
  return cooperative_groups::this_cluster().map_shared_rank(mine, rank);
}

// A single value of the memory of this GPU or another one, asked for and waited for.
__device__ inline double get_value(const double* at) {
  return *static_cast<const volatile double*>(at);
}
__device__ inline void store(double* to, double value) { *to = value; }
__device__ inline void add(double* to, double value) { atomicAdd(to, value); }

// Waits are bounded: after four seconds the kernel ends with an error.
class Patience {
 public:
  __device__ Patience() : begin_(now()) {}
  __device__ void spend() const {
    if (now() - begin_ > 4000000000ULL) __trap();
  }

 private:
  __device__ static unsigned long long now() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
  }
  unsigned long long begin_;
};

__device__ inline double down(double value, unsigned by) {
  return __shfl_down_sync(0xFFFFFFFFU, value, by);
}

}  // namespace ablations
