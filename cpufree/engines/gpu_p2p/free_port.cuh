// The port of kernels whose threads wait for no thread outside their team, a warp or a part of it:
// where a thread is, and atomics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/engines/gpu_p2p/threads.cuh"

namespace cpufree::gpu_p2p {

// Memory on chip of each lane's share of a team; blocks have 128 threads.
inline constexpr std::size_t kLaneBytes = 256;
__device__ inline std::byte* memory_on_chip() {
  alignas(16) __shared__ std::byte memory[128 * kLaneBytes];
  return memory;
}

template <int kLanes>
class TeamPort {
 public:
  __device__ static int block() { return static_cast<int>(block_of_grid()); }
  __device__ static int blocks() { return static_cast<int>(blocks_of_grid()); }
  __device__ static int lane() { return static_cast<int>(thread_of_block()); }
  __device__ static int lanes() { return static_cast<int>(threads_of_block()); }

  // Lanes of a team go on together, past sync_team, before which all see what each has written.
  __device__ static std::int64_t team() {
    return (std::int64_t{block()} * lanes() + lane()) / kLanes;
  }
  __device__ static std::int64_t teams() { return std::int64_t{blocks()} * lanes() / kLanes; }
  __device__ static int team_lane() { return lane() % kLanes; }
  __device__ static constexpr int team_lanes() { return kLanes; }
  __device__ static void sync_team() { sync_lanes(team_mask()); }
  static constexpr std::size_t kTeamBytes = kLanes * kLaneBytes;
  __device__ static std::byte* team_memory() {
    return memory_on_chip() + lane() / kLanes * kTeamBytes;
  }
  // The same threads in teams of a given number of lanes.
  template <int kOther>
  __device__ static TeamPort<kOther> in_teams() {
    return {};
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
    return atomic_add(to, value);
  }
  __device__ static std::uint64_t add(std::uint64_t* to, std::uint64_t value) {
    return atomic_add(to, value);
  }
  // Adds what all lanes of a team have, which call it together: a number in memory takes one
  // addition at a time.
  template <class V>
  __device__ static void add_together(V* to, V value) {
    value = sum_together(value);
    if (team_lane() == 0 && value != 0) add(to, value);
  }
  // The sum of what all lanes of a team have, in one order; they call it together.
  template <class V>
  __device__ static V sum_together(V value) {
    for (int half = kLanes / 2; half > 0; half /= 2)
      value += of_lane_across(value, half, team_mask());
    return value;
  }
  // What the lanes of a team before this one have together, and `all` of them; they call it
  // together.
  __device__ static std::int64_t before_lane(std::int64_t mine, std::int64_t& all) {
    std::int64_t sum = mine;
    for (int apart = 1; apart < kLanes; apart *= 2) {
      const std::int64_t other = of_lane_before(sum, apart, team_mask(), kLanes);
      if (team_lane() >= apart) sum += other;
    }
    all = of_lane(sum, kLanes - 1, team_mask(), kLanes);
    return sum - mine;
  }
  // How many of the lanes of a team before this one have this; `all`: of them.
  __device__ static int count_before_lane(bool mine, int& all) {
    const unsigned found = lanes_that(mine, team_mask()) & team_mask();
    const unsigned before = (1U << static_cast<unsigned>(lane() % 32)) - 1;
    all = bits_of(found);
    return bits_of(found & before);
  }
  __device__ static std::uint32_t join(std::uint32_t* to, std::uint32_t bits) {
    return atomic_or(to, bits);
  }
  __device__ static void raise(std::uint64_t* to, std::uint64_t value) { atomic_max(to, value); }
  __device__ static void lower(std::uint64_t* to, std::uint64_t value) { atomic_min(to, value); }
  __device__ static std::uint32_t swap_if(std::uint32_t* to, std::uint32_t expected,
                                          std::uint32_t value) {
    return atomic_swap_if(to, expected, value);
  }
  __device__ static std::uint64_t swap_if(std::uint64_t* to, std::uint64_t expected,
                                          std::uint64_t value) {
    return atomic_swap_if(to, expected, value);
  }

 private:
  // Lanes of this team, of its warp.
  __device__ static unsigned team_mask() {
    if constexpr (kLanes == 32) return 0xffffffffU;
    constexpr unsigned first = (std::uint64_t{1} << kLanes) - 1;
    return first << static_cast<unsigned>(lane() % 32 / kLanes * kLanes);
  }
};
using FreePort = TeamPort<32>;

}  // namespace cpufree::gpu_p2p
