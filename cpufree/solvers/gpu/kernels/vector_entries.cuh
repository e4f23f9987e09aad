// What GPUs do with vectors before and after a solve, as a grid of kVectorThreads threads a block
// does it: the bodies of the kernels behind vectors.hpp.
#pragma once

#include <cstdint>

#include "cpufree/engines/gpu_p2p/threads.cuh"
#include "cpufree/solvers/gpu/kernels/vector_probe.hpp"

namespace cpufree {

__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(gpu_p2p::block_of_grid()) * kVectorThreads +
         gpu_p2p::thread_of_block();
}
__device__ inline std::int64_t stride() {
  return static_cast<std::int64_t>(gpu_p2p::blocks_of_grid()) * kVectorThreads;
}

// Bit patterns of numbers >= 0 are ordered as the numbers are. Called by whole warps.
__device__ inline void join(VectorProbe* probe, double largest, bool not_finite) {
  for (int half = 16; half > 0; half /= 2)
    largest = fmax(largest, gpu_p2p::of_lane_across(largest, half));
  const bool any = gpu_p2p::lanes_any(not_finite);
  if (gpu_p2p::thread_of_block() % 32 != 0) return;
  if (largest > 0.0)
    gpu_p2p::atomic_max(reinterpret_cast<std::uint64_t*>(&probe->largest),
                        __builtin_bit_cast(std::uint64_t, largest));
  if (any) gpu_p2p::atomic_or(&probe->not_finite, 1U);
}

template <class T>
__device__ void gather_entries(const T* from, const std::int32_t* row, std::int64_t count, T* to,
                               VectorProbe* probe) {
  double largest = 0.0;
  bool not_finite = false;
  for (std::int64_t j = first_index(); j < count; j += stride()) {
    const std::int32_t i = row[j];
    if (i < 0) continue;
    const T value = from[i];
    to[j] = value;
    const double size = fabs(static_cast<double>(value));
    if (size > largest) largest = size;  // false for a NaN
    not_finite = not_finite || !(size - size == 0.0);
  }
  if (probe != nullptr) join(probe, largest, not_finite);
}

template <class T>
__device__ void scale_entries(T* v, std::int64_t count, double factor) {
  for (std::int64_t j = first_index(); j < count; j += stride())
    v[j] = static_cast<T>(factor * static_cast<double>(v[j]));
}

template <class T>
__device__ void scatter_entries(const T* from, const std::int32_t* row, std::int64_t count,
                                double divisor, T* to, VectorProbe* probe) {
  bool not_finite = false;
  for (std::int64_t j = first_index(); j < count; j += stride()) {
    const std::int32_t i = row[j];
    if (i < 0) continue;
    const T value = static_cast<T>(static_cast<double>(from[j]) / divisor);
    to[i] = value;
    not_finite = not_finite || !(value - value == T{0});
  }
  join(probe, 0.0, not_finite);
}

template <class T>
__device__ void put_entries(const T* from, std::int64_t count, int column, int columns,
                            double factor, T* to) {
  for (std::int64_t j = first_index(); j < count; j += stride())
    to[j * columns + column] = static_cast<T>(factor * static_cast<double>(from[j]));
}

template <class T>
__device__ void take_entries(const T* from, std::int64_t count, int column, int columns, T* to) {
  for (std::int64_t j = first_index(); j < count; j += stride()) to[j] = from[j * columns + column];
}

}  // namespace cpufree
