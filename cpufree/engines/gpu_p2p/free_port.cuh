// The port of kernels whose threads never wait: where a thread is, and atomics.
#pragma once

#include <cstdint>

namespace cpufree::gpu_p2p {

class FreePort {
 public:
  __device__ static int block() { return static_cast<int>(blockIdx.x); }
  __device__ static int blocks() { return static_cast<int>(gridDim.x); }
  __device__ static int lane() { return static_cast<int>(threadIdx.x); }
  __device__ static int lanes() { return static_cast<int>(blockDim.x); }

  // What others may be writing, as it is or was.
  template <class V>
  __device__ static V get(const V* number) {
    return *static_cast<const volatile V*>(number);
  }
  __device__ static void set(std::int32_t* number, std::int32_t value) {
    *static_cast<volatile std::int32_t*>(number) = value;
  }
  // What was there before.
  __device__ static std::uint32_t add(std::uint32_t* to, std::uint32_t value) {
    return atomicAdd(to, value);
  }
  __device__ static std::uint64_t add(std::uint64_t* to, std::uint64_t value) {
    return atomicAdd(wide(to), value);
  }
  __device__ static std::uint32_t join(std::uint32_t* to, std::uint32_t bits) {
    return atomicOr(to, bits);
  }
  __device__ static void raise(std::uint64_t* to, std::uint64_t value) {
    atomicMax(wide(to), value);
  }
  __device__ static void lower(std::uint64_t* to, std::uint64_t value) {
    atomicMin(wide(to), value);
  }
  __device__ static std::uint64_t swap_if(std::uint64_t* to, std::uint64_t expected,
                                          std::uint64_t value) {
    return atomicCAS(wide(to), expected, value);
  }

 private:
  __device__ static unsigned long long* wide(std::uint64_t* number) {
    return reinterpret_cast<unsigned long long*>(number);
  }
};

}  // namespace cpufree::gpu_p2p
