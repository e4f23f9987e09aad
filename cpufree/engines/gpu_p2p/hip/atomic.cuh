// Flags and packets among AMD's GPUs, at system scope (LLVM, "User Guide for AMDGPU Backend",
// memory model of gfx90a and gfx942). Heaps are fine-grained memory: of others, what is stored and
// loaded with these functions reaches the memory itself, past caches.
//
// A store or load of 8 bytes is as large as becomes visible at once. So a packet is made of words
// of 8 bytes, half of which are numbers of the exchange: whoever finds the number in all of them
// has all of it.
#pragma once

#include "cpufree/device/types.hpp"
#include "cpufree/engines/gpu_p2p/hip/threads.cuh"

namespace cpufree::gpu_p2p {

template <class T>
__device__ inline void store_far(T* to, T value) {
  __hip_atomic_store((InDevice<T>*)to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
template <class T>
__device__ inline T load_far(const T* from) {
  return __hip_atomic_load((InDevice<T>*)from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

// Values for another PE: past the caches, so that `fence_release_system` has none to write back.
template <class T>
__device__ inline void store_value(T* to, const T& value) {
  using Word = std::conditional_t<sizeof(T) % 8 == 0, std::uint64_t, std::uint32_t>;
  static_assert(sizeof(T) % sizeof(Word) == 0);
  struct Words {
    Word word[sizeof(T) / sizeof(Word)];
  };
  const Words words = __builtin_bit_cast(Words, value);
  for (unsigned k = 0; k < sizeof(T) / sizeof(Word); ++k)
    store_far(reinterpret_cast<Word*>(to) + k, words.word[k]);
}

__device__ inline void store_flag(Flag* flag, Epoch epoch) { store_far(&flag->value, epoch); }
__device__ inline Epoch load_flag(const Flag* flag) { return load_far(&flag->value); }

// All return what was there before.
__device__ inline Epoch count_in(Flag* counter) {
  return __hip_atomic_fetch_add((InDevice<Epoch>*)&counter->value, Epoch{1}, __ATOMIC_RELAXED,
                                __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline Epoch add_to_flag(Flag* flag, Epoch amount) {
  return __hip_atomic_fetch_add((InDevice<Epoch>*)&flag->value, amount, __ATOMIC_RELAXED,
                                __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ inline Epoch swap_flag_if(Flag* flag, Epoch expected, Epoch wanted) {
  __hip_atomic_compare_exchange_strong((InDevice<Epoch>*)&flag->value, &expected, wanted,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_SYSTEM);
  return expected;
}

// Words of packets: half a value, or a float, and the number.
__device__ inline std::uint64_t word_of(std::uint32_t part, std::uint32_t number) {
  return std::uint64_t{number} << 32U | part;
}
__device__ inline std::uint32_t part_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}
__device__ inline std::uint32_t number_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32U);
}
template <class P>
__device__ inline std::uint64_t* words_of(P* packet) {
  return reinterpret_cast<std::uint64_t*>(packet);
}
template <class P>
__device__ inline const std::uint64_t* words_of(const P* packet) {
  return reinterpret_cast<const std::uint64_t*>(packet);
}

// Of tags both words carry the lower half, 24 bits of the epoch: a launch with more exchanges than
// that ends with an error, as otherwise an old packet could be taken for a new one.
__device__ inline void store_packet(Packet* packet, double value, std::uint64_t tag) {
  if (tag >> 32U != 0) die();
  const auto bits = __builtin_bit_cast(std::uint64_t, value);
  const auto number = static_cast<std::uint32_t>(tag);
  store_far(words_of(packet), word_of(static_cast<std::uint32_t>(bits), number));
  store_far(words_of(packet) + 1, word_of(static_cast<std::uint32_t>(bits >> 32U), number));
}
// Where the words are of two epochs, the tag is that of the earlier one: nobody waits for it any
// more, as what a slot holds grows.
__device__ inline Packet load_packet(const Packet* packet) {
  const std::uint64_t low = load_far(words_of(packet)), high = load_far(words_of(packet) + 1);
  const std::uint32_t tag = number_of(low) < number_of(high) ? number_of(low) : number_of(high);
  const std::uint64_t bits = std::uint64_t{part_of(high)} << 32U | part_of(low);
  return {__builtin_bit_cast(double, bits), tag};
}

// Three words of the 32 bytes that this packet has here.
static_assert(sizeof(FloatPacket) == 32);
__device__ inline void store_packet(FloatPacket* packet, const float (&value)[3],
                                    std::uint32_t number) {
  for (int k = 0; k < 3; ++k)
    store_far(words_of(packet) + k, word_of(__builtin_bit_cast(std::uint32_t, value[k]), number));
}
// Where words are of two exchanges, the number is of the one before. Numbers wrap: of two that are
// two apart, the difference tells which comes first; a word that was never written has 0.
__device__ inline FloatPacket load_packet(const FloatPacket* packet) {
  FloatPacket out;
  for (int k = 0; k < 3; ++k) {
    const std::uint64_t word = load_far(words_of(packet) + k);
    out.value[k] = __builtin_bit_cast(float, part_of(word));
    const std::uint32_t number = number_of(word);
    if (k == 0 || static_cast<std::int32_t>(number - out.number) < 0) out.number = number;
  }
  return out;
}

// Among the blocks of a GPU: one word.
__device__ inline void store_packet(SmallPacket* packet, float value, std::uint32_t number) {
  __hip_atomic_store((InDevice<std::uint64_t>*)words_of(packet),
                     word_of(__builtin_bit_cast(std::uint32_t, value), number), __ATOMIC_RELAXED,
                     __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline SmallPacket load_packet(const SmallPacket* packet) {
  const std::uint64_t word = __hip_atomic_load((InDevice<std::uint64_t>*)words_of(packet),
                                               __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  return {__builtin_bit_cast(float, part_of(word)), number_of(word)};
}

// What goes to other PEs has been stored past the caches (store_value): it has arrived when this
// thread has waited for it, and those of its block before their last barrier (sync_threads). For
// blocks of this PE the fence writes back what its cache has of the GPU's own memory, if it has to.
__device__ inline void fence_release_gpu() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"); }
__device__ inline void fence_release_system() {
  fence_release_gpu();
  __builtin_amdgcn_s_waitcnt(0);
}
__device__ inline void fence_acquire_gpu() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent"); }
__device__ inline void fence_acquire_system() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, ""); }

// Four words that are moved together.
typedef std::uint32_t Quad __attribute__((ext_vector_type(4)));
// From device memory to shared memory; at once.
__device__ inline void copy_16_bytes(void* to, const void* from, bool really) {
  if (really) *(InBlock<Quad>*)to = *(InDevice<const Quad>*)from;
}
__device__ inline void end_copy_group() {}
template <int N>
__device__ inline void await_copy_groups() {}
__device__ inline void fetch_to_cache(const void*) {}

__device__ inline void add_on_the_way(std::uint64_t* sum, std::uint64_t amount) {
  __hip_atomic_fetch_add((InDevice<std::uint64_t>*)sum, amount, __ATOMIC_RELAXED,
                         __HIP_MEMORY_SCOPE_AGENT);
}

// A clock of 100 MHz.
__device__ inline std::uint64_t nanoseconds() { return 10 * __builtin_amdgcn_s_memrealtime(); }

}  // namespace cpufree::gpu_p2p
