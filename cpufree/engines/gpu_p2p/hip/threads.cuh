// The same on AMD's GPUs, by builtin functions of clang (LLVM, "User Guide for AMDGPU Backend").
// They run 64 threads in lockstep, a wave: a warp of 32 is one half of it, so that formats, and the
// order of sums, are the same on all GPUs. Whatever one half waits for, the other one waits for,
// too: a thread must not wait for what another thread of its wave does later.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpufree::gpu_p2p {

__device__ inline unsigned thread_of_block() { return __builtin_amdgcn_workitem_id_x(); }
__device__ inline unsigned threads_of_block() { return __builtin_amdgcn_workgroup_size_x(); }
__device__ inline unsigned block_of_grid() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline unsigned blocks_of_grid() {
  return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
}

// All that threads have stored is where it goes before any of them goes on: one of them may publish
// it for all, which the fence of a block does not promise.
__device__ inline void sync_threads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_waitcnt(0);
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

inline constexpr int kMostWaves = 16;  // of a block

__device__ inline int lane_of_wave() {
  return static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0U, __builtin_amdgcn_mbcnt_lo(~0U, 0U)));
}
__device__ inline void sync_lanes(unsigned = 0xffffffffU) {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}
// Bit k: of lane k of the wave, where it is here.
__device__ inline std::uint64_t wave_that(bool value) {
#if __has_builtin(__builtin_amdgcn_ballot_w64)
  return __builtin_amdgcn_ballot_w64(value);
#else  // ROCm 5
  return __builtin_amdgcn_uicmp(value ? 1U : 0U, 0U, 33);  // 33: not equal
#endif
}
// Of my half.
__device__ inline unsigned lanes_that(bool value, unsigned lanes = 0xffffffffU) {
  const std::uint64_t both = wave_that(value);
  return static_cast<unsigned>(both >> static_cast<unsigned>(lane_of_wave() & 32)) & lanes;
}
__device__ inline bool lanes_all(bool value) { return lanes_that(!value) == 0U; }
__device__ inline bool lanes_any(bool value) { return lanes_that(value) != 0U; }

__device__ inline bool sync_threads_and(bool value) {
  __shared__ unsigned failed[kMostWaves];
  const unsigned wave = thread_of_block() / 64, waves = (threads_of_block() + 63) / 64;
  const bool some = wave_that(!value) != 0;
  if (lane_of_wave() == 0) failed[wave] = some ? 1U : 0U;
  sync_threads();
  unsigned any = 0;
  for (unsigned k = 0; k < waves; ++k) any |= failed[k];
  sync_threads();  // before the next one is written
  return any == 0U;
}

// What the lane of this number, of the wave, has; 4 bytes at a time.
template <class T>
__device__ inline T of_wave_lane(T value, int lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  struct Words {
    int word[sizeof(T) / 4];
  };
  Words words = __builtin_bit_cast(Words, value);
  for (int& word : words.word) word = __builtin_amdgcn_ds_bpermute(4 * lane, word);
  return __builtin_bit_cast(T, words);
}
template <class T>
__device__ inline T of_lane_across(T value, int bits, unsigned = 0xffffffffU) {
  return of_wave_lane(value, lane_of_wave() ^ bits);
}
template <class T>
__device__ inline T of_lane(T value, int lane, unsigned = 0xffffffffU, int wide = 32) {
  return of_wave_lane(value, (lane_of_wave() & ~(wide - 1)) | (lane & (wide - 1)));
}
template <class T>
__device__ inline T of_lane_before(T value, int apart, unsigned = 0xffffffffU, int wide = 32) {
  const int me = lane_of_wave();
  return of_wave_lane(value, (me & (wide - 1)) >= apart ? me - apart : me);
}
template <class T>
__device__ inline T of_next_lane(T value) {
  const int me = lane_of_wave();
  return of_wave_lane(value, (me & 31) < 31 ? me + 1 : me);
}
__device__ inline unsigned lanes_or(unsigned bits) {
  for (int half = 16; half > 0; half /= 2) bits |= of_lane_across(bits, half);
  return bits;
}
__device__ inline int bits_of(unsigned bits) { return __builtin_popcount(bits); }
__device__ inline int lowest_of(unsigned bits) { return bits == 0U ? -1 : __builtin_ctz(bits); }

__device__ inline float rounded_product(float a, float b) {
#pragma clang fp contract(off)
  return a * b;
}
__device__ inline double rounded_product(double a, double b) {
#pragma clang fp contract(off)
  return a * b;
}
__device__ inline double near_reciprocal(double x) { return __builtin_amdgcn_rcp(x); }
__device__ inline double near_reciprocal_root(double x) { return __builtin_amdgcn_rsq(x); }

template <class T>
__device__ inline T fresh(T value) {
  return value;  // half of the registers of a wave are scalar: they hold what all threads share
}

template <class T>
using InDevice = __attribute__((address_space(1))) T;
template <class T>
using InBlock = __attribute__((address_space(3))) T;
template <class T>
__device__ inline T* in_device_memory(T* values) {
  return (T*)(InDevice<T>*)values;
}
template <class T>
__device__ inline T* in_block_memory(T* values) {
  return (T*)(InBlock<T>*)values;
}

// A kernel's arguments, where they are: given by value they would be copied to memory of each
// thread. `before`: bytes of those before it.
template <class T>
__device__ inline const T& argument(const T&, std::size_t before) {
  using Bytes = const __attribute__((address_space(4))) char;
  const std::size_t at = (before + alignof(T) - 1) / alignof(T) * alignof(T);
  return *(const T*)((Bytes*)__builtin_amdgcn_kernarg_segment_ptr() + at);
}

// Of the GPU's own memory, or a block's; what was there before.
template <class T>
__device__ inline T atomic_add(T* to, T value) {
  return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline std::uint32_t atomic_or(std::uint32_t* to, std::uint32_t bits) {
  return __hip_atomic_fetch_or(to, bits, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline void atomic_max(std::uint64_t* to, std::uint64_t value) {
  __hip_atomic_fetch_max(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline void atomic_min(std::uint64_t* to, std::uint64_t value) {
  __hip_atomic_fetch_min(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
__device__ inline T atomic_swap_if(T* to, T expected, T value) {
  __hip_atomic_compare_exchange_strong(to, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
__device__ inline int atomic_swap(int* to, int value) {
  return __hip_atomic_exchange(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__device__ inline std::int64_t cycles() {
  return static_cast<std::int64_t>(__builtin_readcyclecounter());
}
[[noreturn]] __device__ inline void die() { __builtin_trap(); }

}  // namespace cpufree::gpu_p2p
