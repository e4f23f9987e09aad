// The kernels that lay a matrix out (formats/layout), launched on GPUs.
#pragma once

#include <gpu_names.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

#include "cpufree/formats/layout/kernels.hpp"

namespace cpufree {

// Of a launch for so many items.
inline unsigned layout_blocks(std::int64_t items) {
  constexpr std::int64_t kMost = 16384;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + layout::kThreads - 1) / layout::kThreads, 1, kMost));
}

// Runs kernel K, a struct of its arguments, on `stream`, a stream of the device that is current,
// with a thread for each of `items` items, if they are not too many. Built in, or compiled when it
// is first used, as the build says.
template <class K>
void launch_layout(const K& kernel, std::int64_t items, gpuStream_t stream);

// Begins to compile the kernels for values of a type, where kernels are compiled, for who is going
// to launch them on these devices.
template <class T>
void prepare_layout(std::span<const int> devices);

// X(K<T>) for all kernels and types of values.
#define CPUFREE_LAYOUT_FLOAT(K) CPUFREE_LAYOUT_ONE(layout::K<float>)
#define CPUFREE_LAYOUT_DOUBLE(K) CPUFREE_LAYOUT_ONE(layout::K<double>)
#define CPUFREE_ALL_LAYOUT_KERNELS             \
  CPUFREE_LAYOUT_KERNELS(CPUFREE_LAYOUT_FLOAT) \
  CPUFREE_LAYOUT_KERNELS(CPUFREE_LAYOUT_DOUBLE)

}  // namespace cpufree
