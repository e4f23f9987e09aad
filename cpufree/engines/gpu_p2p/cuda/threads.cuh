// Threads, warps and what they do together, as CUDA names it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpufree::gpu_p2p {

__device__ inline unsigned thread_of_block() { return threadIdx.x; }
__device__ inline unsigned threads_of_block() { return blockDim.x; }
__device__ inline unsigned block_of_grid() { return blockIdx.x; }
__device__ inline unsigned blocks_of_grid() { return gridDim.x; }

__device__ inline void sync_threads() { __syncthreads(); }
__device__ inline bool sync_threads_and(bool value) {
  return __syncthreads_and(value ? 1 : 0) != 0;
}

// Of warps, whose lanes call them together; `lanes`: which of them do.
__device__ inline void sync_lanes(unsigned lanes = 0xffffffffU) { __syncwarp(lanes); }
__device__ inline bool lanes_all(bool value) { return __all_sync(0xffffffffU, value ? 1 : 0) != 0; }
__device__ inline bool lanes_any(bool value) { return __any_sync(0xffffffffU, value ? 1 : 0) != 0; }
__device__ inline unsigned lanes_that(bool value, unsigned lanes = 0xffffffffU) {
  return __ballot_sync(lanes, value);
}
__device__ inline unsigned lanes_or(unsigned bits) { return __reduce_or_sync(0xffffffffU, bits); }
template <class T>
__device__ inline T of_lane_across(T value, int bits, unsigned lanes = 0xffffffffU) {
  return __shfl_xor_sync(lanes, value, bits);
}
// `wide`: of parts of a warp of so many lanes, from which lanes are counted.
template <class T>
__device__ inline T of_lane(T value, int lane, unsigned lanes = 0xffffffffU, int wide = 32) {
  return __shfl_sync(lanes, value, lane, wide);
}
// The first ones keep their own.
template <class T>
__device__ inline T of_lane_before(T value, int apart, unsigned lanes = 0xffffffffU,
                                   int wide = 32) {
  return __shfl_up_sync(lanes, value, apart, wide);
}
template <class T>
__device__ inline T of_next_lane(T value) {
  return __shfl_down_sync(0xffffffffU, value, 1);
}
__device__ inline int bits_of(unsigned bits) { return __popc(bits); }
__device__ inline int lowest_of(unsigned bits) { return __ffs(static_cast<int>(bits)) - 1; }

// Rounded, whatever is added to it.
__device__ inline float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double rounded_product(double a, double b) { return __dmul_rn(a, b); }

// About 1 / x.
__device__ inline double near_reciprocal(double x) {
  double r;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  return r;
}
// About 1 / sqrt(x).
__device__ inline double near_reciprocal_root(double x) {
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  return r;
}

// The same number, of which the compiler does not know where it comes from.
__device__ inline int fresh(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ inline double fresh(double value) {
  asm volatile("" : "+d"(value));
  return value;
}
__device__ inline float fresh(float value) {
  asm volatile("" : "+f"(value));
  return value;
}

// The same pointer, of which the compiler learns what memory it is into: the device's, a block's.
template <class T>
__device__ inline T* in_device_memory(T* values) {
  __builtin_assume(__isGlobal(values));
  return values;
}
template <class T>
__device__ inline T* in_block_memory(T* values) {
  __builtin_assume(__isShared(values));
  return values;
}

// A kernel's arguments, where they are. `before`: bytes of those before it.
template <class T>
__device__ inline const T& argument(const T& given, std::size_t) {
  return given;
}

// Of the GPU's own memory, or a block's; what was there before.
__device__ inline unsigned long long* wide(std::uint64_t* number) {
  return reinterpret_cast<unsigned long long*>(number);
}
__device__ inline std::uint32_t atomic_add(std::uint32_t* to, std::uint32_t value) {
  return atomicAdd(to, value);
}
__device__ inline std::uint64_t atomic_add(std::uint64_t* to, std::uint64_t value) {
  return atomicAdd(wide(to), value);
}
__device__ inline std::uint32_t atomic_or(std::uint32_t* to, std::uint32_t bits) {
  return atomicOr(to, bits);
}
__device__ inline void atomic_max(std::uint64_t* to, std::uint64_t value) {
  atomicMax(wide(to), value);
}
__device__ inline void atomic_min(std::uint64_t* to, std::uint64_t value) {
  atomicMin(wide(to), value);
}
__device__ inline std::uint32_t atomic_swap_if(std::uint32_t* to, std::uint32_t expected,
                                               std::uint32_t value) {
  return atomicCAS(to, expected, value);
}
__device__ inline std::uint64_t atomic_swap_if(std::uint64_t* to, std::uint64_t expected,
                                               std::uint64_t value) {
  return atomicCAS(wide(to), expected, value);
}
__device__ inline int atomic_swap(int* to, int value) { return atomicExch(to, value); }

__device__ inline std::int64_t cycles() { return clock64(); }
[[noreturn]] __device__ inline void die() { __trap(); }

}  // namespace cpufree::gpu_p2p
