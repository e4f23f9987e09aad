// Flags and packets among GPUs of one host: our own PTX, at system scope (PTX ISA 8.x, memory
// consistency model). Relaxed system-scope accesses bypass L1 and are single-copy atomic up to 16
// bytes; the fences around them are the port's.
#pragma once

#include "cpufree/device/types.hpp"
#include "cpufree/engines/gpu_p2p/cuda/generation.cuh"

namespace cpufree::gpu_p2p {

// Values for another PE: stores that `fence_release_system` orders.
template <class T>
__device__ inline void store_value(T* to, const T& value) {
  *to = value;
}

__device__ inline void store_flag(Flag* flag, Epoch epoch) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(&flag->value), "l"(epoch) : "memory");
}

__device__ inline Epoch load_flag(const Flag* flag) {
  Epoch epoch;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(epoch) : "l"(&flag->value) : "memory");
  return epoch;
}

// All return what was there before. The counter is in memory of this GPU.
__device__ inline Epoch count_in(Flag* counter) {
  Epoch before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;"
               : "=l"(before)
               : "l"(&counter->value)
               : "memory");
  return before;
}
__device__ inline Epoch add_to_flag(Flag* flag, Epoch amount) {
  Epoch before;
  asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(&flag->value), "l"(amount)
               : "memory");
  return before;
}
__device__ inline Epoch swap_flag_if(Flag* flag, Epoch expected, Epoch wanted) {
  Epoch before;
  asm volatile("atom.relaxed.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(&flag->value), "l"(expected), "l"(wanted)
               : "memory");
  return before;
}

// One 16-byte scalar store: value and tag become visible together (the vector forms .v2 and .v4 are
// modelled as independent stores).
__device__ inline void store_packet(Packet* packet, double value, std::uint64_t tag) {
  asm volatile(
      "{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.sys.global.b128 [%0], both; }" ::"l"(
          packet),
      "l"(__double_as_longlong(value)), "l"(tag)
      : "memory");
}

__device__ inline Packet load_packet(const Packet* packet) {
  long long value;
  std::uint64_t tag;
  asm volatile(
      "{ .reg .b128 both; ld.relaxed.sys.global.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
      : "=l"(value), "=l"(tag)
      : "l"(packet)
      : "memory");
  return {__longlong_as_double(value), tag};
}

// The same for three floats and a number. What goes is the number xor the bits of all values, so
// that no load of a packet can do without any part of it. Where a caller has no use for some
// values, ptxas (13.0) makes 4-byte loads of the others out of a 16-byte load, relaxed as it is: a
// value of one exchange was read beside the number of the next.
__device__ inline std::uint32_t with_values(std::uint32_t number, const float (&value)[3]) {
  return number ^ __float_as_uint(value[0]) ^ __float_as_uint(value[1]) ^ __float_as_uint(value[2]);
}

__device__ inline void store_packet(FloatPacket* packet, const float (&value)[3],
                                    std::uint32_t number) {
  asm volatile(
      "{ .reg .b64 low, high; .reg .b128 all; mov.b64 low, {%1, %2}; mov.b64 high, {%3, %4};"
      "mov.b128 all, {low, high}; st.relaxed.sys.global.b128 [%0], all; }" ::"l"(packet),
      "f"(value[0]), "f"(value[1]), "f"(value[2]), "r"(with_values(number, value))
      : "memory");
}

__device__ inline FloatPacket load_packet(const FloatPacket* packet) {
  FloatPacket out;
  asm volatile(
      "{ .reg .b64 low, high; .reg .b128 all; ld.relaxed.sys.global.b128 all, [%4];"
      "mov.b128 {low, high}, all; mov.b64 {%0, %1}, low; mov.b64 {%2, %3}, high; }"
      : "=f"(out.value[0]), "=f"(out.value[1]), "=f"(out.value[2]), "=r"(out.number)
      : "l"(packet)
      : "memory");
  out.number = with_values(out.number, out.value);
  return out;
}

// One float among the blocks of a GPU, in 8 bytes; the number as above.
__device__ inline void store_packet(SmallPacket* packet, float value, std::uint32_t number) {
  asm volatile(
      "{ .reg .b64 both; mov.b64 both, {%1, %2}; st.relaxed.gpu.global.b64 [%0], both; }" ::"l"(
          packet),
      "f"(value), "r"(number ^ __float_as_uint(value))
      : "memory");
}
__device__ inline SmallPacket load_packet(const SmallPacket* packet) {
  SmallPacket out;
  asm volatile("{ .reg .b64 both; ld.relaxed.gpu.global.b64 both, [%2]; mov.b64 {%0, %1}, both; }"
               : "=f"(out.value), "=r"(out.number)
               : "l"(packet)
               : "memory");
  out.number ^= __float_as_uint(out.value);
  return out;
}

// Before compute capability 9.0 one fence is both.
__device__ inline void fence_release_system() {
  if constexpr (kSinceHopper)
    asm volatile("fence.release.sys;" ::: "memory");
  else
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}
__device__ inline void fence_release_gpu() {
  if constexpr (kSinceHopper)
    asm volatile("fence.release.gpu;" ::: "memory");
  else
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
__device__ inline void fence_acquire_system() {
  if constexpr (kSinceHopper)
    asm volatile("fence.acquire.sys;" ::: "memory");
  else
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}
__device__ inline void fence_acquire_gpu() {
  if constexpr (kSinceHopper)
    asm volatile("fence.acquire.gpu;" ::: "memory");
  else
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

// From device memory to shared memory, past the L1 cache.
__device__ inline void copy_16_bytes(void* to, const void* from, bool really) {
  asm volatile(
      "{ .reg .pred really; setp.ne.u32 really, %2, 0;"
      "@really cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(
          static_cast<unsigned>(__cvta_generic_to_shared(to))),
      "l"(__cvta_generic_to_global(from)), "r"(really ? 1U : 0U)
      : "memory");
}
__device__ inline void end_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ inline void await_copy_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Brings the line into the L2 cache; of any memory but the device's, nothing.
__device__ inline void fetch_to_cache(const void* from) {
  asm volatile("prefetch.L2 [%0];" ::"l"(from));
}

// Adds to a sum that no other thread has, without waiting for what was there.
__device__ inline void add_on_the_way(std::uint64_t* sum, std::uint64_t amount) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(sum), "l"(amount) : "memory");
}

__device__ inline std::uint64_t nanoseconds() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

}  // namespace cpufree::gpu_p2p
