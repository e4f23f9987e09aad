// What the kernels of a host-driven program are made of: each is one sweep, and the host does what
// is between them. The counterpart of grid_runtime.hpp, for comparison: the same sweeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "cpufree/programs/args.hpp"
#include "cpufree/programs/python_numbers.hpp"

namespace cpufree::programs {

// The block of a launch that a kernel is.
struct LaunchedBlock {
  int block, blocks, lane;
};

class HostedRuntime {
 public:
  CPUFREE_KERNEL_FN HostedRuntime(const HostedPlace& place, LaunchedBlock me, std::int64_t rows)
      : place_(place), me_(me), rows_(rows) {}

  // As GridRuntime's.
  template <class T, class... S>
  CPUFREE_KERNEL_FN auto field(std::int64_t offset, std::int64_t rows, int id, S... strides) const {
    T* const base = reinterpret_cast<T*>(place_.heap + offset);
    return Array<T, 1 + sizeof...(S)>{base, 0, {strides..., 1}, rows, 0, id};
  }
  template <class T>
  CPUFREE_KERNEL_FN static T scalar(const std::int64_t& word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
  CPUFREE_KERNEL_FN std::int64_t lo() const { return rows_ * place_.pe / place_.pes; }
  CPUFREE_KERNEL_FN std::int64_t hi() const { return rows_ * (place_.pe + 1) / place_.pes; }
  // As GridRuntime's.
  CPUFREE_KERNEL_FN std::int64_t first(std::int64_t start, std::int64_t step) const {
    const std::int64_t before = lo() - start;
    return before <= 0 ? 0 : (before + step - 1) / step;
  }
  CPUFREE_KERNEL_FN std::int64_t end(std::int64_t start, std::int64_t step,
                                     std::int64_t count) const {
    const std::int64_t before = hi() - start;
    const std::int64_t all = before <= 0 ? 0 : (before + step - 1) / step;
    return all < count ? all : count;
  }
  template <int Lanes, TileOrder Order, class F>
  CPUFREE_KERNEL_FN void sweep(int tiles, F&& f) {
    for (int tile = me_.block; tile < tiles; tile += me_.blocks) f(tile, me_.lane);
  }
  CPUFREE_KERNEL_FN void fail(Fault fault, std::int64_t line) {
    if (place_.pe != 0 || me_.block != 0 || me_.lane != 0 || place_.faults[0] != 0) return;
    place_.faults[0] = static_cast<std::int64_t>(fault);
    place_.faults[1] = line;
  }

 private:
  const HostedPlace& place_;
  LaunchedBlock me_;
  std::int64_t rows_;
};

// A region of three axes, and where its values go: offsets in heaps, steps in values.
struct RegionCopy {
  std::int64_t from, from_step[3];
  std::int64_t to, to_step[3];
  std::uint32_t count[3];
};
// By `threads` of each block of a launch.
template <class T>
CPUFREE_KERNEL_FN void copy_region(const std::byte* from, std::byte* to, const RegionCopy& r,
                                   LaunchedBlock me, int threads) {
  if (me.lane >= threads) return;
  const T* const source = reinterpret_cast<const T*>(from + r.from);
  T* const target = reinterpret_cast<T*>(to + r.to);
  const std::uint32_t all = r.count[0] * r.count[1] * r.count[2];
  const auto step = static_cast<std::uint32_t>(me.blocks * threads);
  for (auto k = static_cast<std::uint32_t>(me.block * threads + me.lane); k < all; k += step) {
    const std::uint32_t rest = k / r.count[2];
    const std::uint32_t at[3] = {rest / r.count[1], rest % r.count[1], k % r.count[2]};
    std::int64_t here = 0, there = 0;
    for (int axis = 0; axis < 3; ++axis) {
      here += at[axis] * r.from_step[axis];
      there += at[axis] * r.to_step[axis];
    }
    target[there] = source[here];
  }
}

}  // namespace cpufree::programs
