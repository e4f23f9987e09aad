// Kernels of set-ups (formats/layout, multigrid/setup) by a warp. Lanes are fibers: which one goes
// on is drawn from a seed at every use of the port, so that a barrier that is missing shows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cpufree/base/index.hpp"
#include "cpufree/engines/cpu_fibers/schedule.hpp"
#include "cpufree/engines/cpu_threads/free_port.hpp"
#include "harness.hpp"

namespace lane_rig {

using namespace cpufree;

constexpr int kWarp = 32;

// What the lanes of a warp share.
struct Warp {
  struct Barrier {
    int here = 0, passed = 0;
  };
  cpu_fibers::Machine* machine = nullptr;
  alignas(16) std::array<std::byte, kWarp * 256> memory;
  std::array<double, kWarp> slot;
  Barrier all;
  std::array<Barrier, kWarp> group;  // of teams of fewer lanes
};

template <int kLanes>
class LanePort : public cpu_threads::FreePort {
  using Base = cpu_threads::FreePort;

 public:
  LanePort(Warp& warp, int lane) : FreePort(0, 1), warp_(warp), lane_(lane) {}
  int lane() const { return lane_; }
  static int lanes() { return kWarp; }
  std::int64_t team() const { return lane_ / kLanes; }
  static std::int64_t teams() { return kWarp / kLanes; }
  int team_lane() const { return lane_ % kLanes; }
  static constexpr int team_lanes() { return kLanes; }
  void sync_team() const {
    Warp::Barrier& barrier = kLanes == kWarp ? warp_.all : warp_.group[at(team())];
    const int before = barrier.passed;
    if (++barrier.here == kLanes) barrier.here = 0, ++barrier.passed;
    while (barrier.passed == before) warp_.machine->call();
  }
  static constexpr std::size_t kTeamBytes = kLanes * 256;
  std::byte* team_memory() const { return warp_.memory.data() + at(team()) * kTeamBytes; }
  template <int kOther>
  LanePort<kOther> in_teams() const {
    return {warp_, lane_};
  }

  template <class V>
  V get(const V* number) const {
    warp_.machine->call();
    return *number;
  }
  template <class V>
  V add(V* to, V value) const {
    warp_.machine->call();
    return Base::add(to, value);
  }
  std::uint32_t join(std::uint32_t* to, std::uint32_t bits) const {
    warp_.machine->call();
    return Base::join(to, bits);
  }
  template <class V>
  V swap_if(V* to, V expected, V value) const {
    warp_.machine->call();
    return Base::swap_if(to, expected, value);
  }
  template <class V>
  V sum_together(V value) const {
    double before = 0.0;
    return static_cast<V>(sums(static_cast<double>(value), before));
  }
  template <class V>
  void add_together(V* to, V value) const {
    const V all = sum_together(value);
    if (team_lane() == 0 && all != 0) add(to, all);
  }
  int count_before_lane(bool mine, int& all) const {
    double before = 0.0;
    all = static_cast<int>(sums(mine ? 1.0 : 0.0, before));
    return static_cast<int>(before);
  }
  std::int64_t before_lane(std::int64_t mine, std::int64_t& all) const {
    double before = 0.0;
    all = static_cast<std::int64_t>(sums(static_cast<double>(mine), before));
    return static_cast<std::int64_t>(before);
  }

 private:
  double sums(double mine, double& before) const {
    warp_.slot[at(lane_)] = mine;
    sync_team();
    double sum = 0.0;
    for (int k = 0; k < kLanes; ++k) {
      if (k == team_lane()) before = sum;
      sum += warp_.slot[at(static_cast<int>(team()) * kLanes + k)];
    }
    sync_team();
    return sum;
  }
  Warp& warp_;
  int lane_;
};

// The whole kernel, by one thread.
template <class K>
void run_by_one(const K& kernel) {
  kernel.run(cpu_threads::FreePort(0, 1));
}
// By a warp, each time in another order.
template <class K>
void run_by_warp(const K& kernel) {
  static std::uint64_t seed = 1;
  Warp warp;
  cpu_fibers::Config config;
  config.blocks = kWarp;
  config.seed = seed++;
  std::byte* const heap = nullptr;
  config.heaps = &heap;
  cpu_fibers::Machine machine(config,
                              [&](int, int lane) { kernel.run(LanePort<kWarp>(warp, lane)); });
  warp.machine = &machine;
  CHECK(machine.run());
}

}  // namespace lane_rig
