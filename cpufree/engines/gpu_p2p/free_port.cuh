// The port of kernels whose threads wait for nobody but their team, a warp: where a thread is, and
// atomics.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpufree::gpu_p2p {

class FreePort {
 public:
  __device__ static int block() { return static_cast<int>(blockIdx.x); }
  __device__ static int blocks() { return static_cast<int>(gridDim.x); }
  __device__ static int lane() { return static_cast<int>(threadIdx.x); }
  __device__ static int lanes() { return static_cast<int>(blockDim.x); }

  // Lanes of a team go on together, past sync_team, before which all see what each has written.
  static constexpr int kTeamLanes = 32;
  __device__ static std::int64_t team() {
    return (std::int64_t{block()} * lanes() + lane()) / kTeamLanes;
  }
  __device__ static std::int64_t teams() { return std::int64_t{blocks()} * lanes() / kTeamLanes; }
  __device__ static int team_lane() { return lane() % kTeamLanes; }
  __device__ static constexpr int team_lanes() { return kTeamLanes; }
  __device__ static void sync_team() { __syncwarp(); }
  // Memory on chip, of a team; blocks have 128 threads.
  static constexpr std::size_t kTeamBytes = 8192;
  __device__ static std::byte* team_memory() {
    __shared__ alignas(16) std::byte memory[4][kTeamBytes];
    return memory[lane() / kTeamLanes];
  }

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
  // Adds what all lanes of a team have, which call it together: a number in memory takes one
  // addition at a time.
  template <class V>
  __device__ static void add_together(V* to, V value) {
    for (int half = kTeamLanes / 2; half > 0; half /= 2)
      value += __shfl_xor_sync(0xffffffffU, value, half);
    if (team_lane() == 0 && value != 0) add(to, value);
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
  __device__ static std::uint32_t swap_if(std::uint32_t* to, std::uint32_t expected,
                                          std::uint32_t value) {
    return atomicCAS(to, expected, value);
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
