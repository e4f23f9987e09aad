// The kernels that lay a matrix out (formats/layout) and those that make a hierarchy of it
// (multigrid/setup), launched on GPUs.
#pragma once

#include <gpu_names.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

#include "cpufree/formats/layout/kernels.hpp"
#include "cpufree/multigrid/setup/kernels.hpp"

namespace cpufree {

// Of a launch for a number of items.
inline unsigned layout_blocks(std::int64_t items) {
  constexpr std::int64_t kMost = 16384;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + layout::kThreads - 1) / layout::kThreads, 1, kMost));
}

// Lanes of a team on a GPU: items of a kernel that has a team for each of its own.
inline constexpr std::int64_t kTeamItems = 32;

// Of a number of items, the threads that are to share them where each thread adds what it has found
// to numbers of all: a number takes one addition at a time, so that two million of them take longer
// than the rows that they are of. As many as run at once.
inline std::int64_t summing_threads(std::int64_t items) {
  constexpr std::int64_t kMost = std::int64_t{1} << 18;
  return std::min(items, kMost);
}

// Runs kernel K, a struct of its arguments, on `stream`, a stream of the device that is current,
// with a thread for each of `items` items, if they are not too many. Built in, or compiled when it
// is first used, as the build says.
template <class K>
void launch_layout(const K& kernel, std::int64_t items, gpuStream_t stream);

// Begins to compile the kernels that lay a matrix out, those of an approximate inverse, or those of
// a hierarchy, for values of a type, where kernels are compiled, for who is going to launch them on
// these devices.
template <class T>
void prepare_layout(std::span<const int> devices);
template <class T>
void prepare_inverse(std::span<const int> devices);
void prepare_hierarchy(std::span<const int> devices);

// X(K<T>) for all kernels and types of values.
#define CPUFREE_LAYOUT_FLOAT(K) CPUFREE_LAYOUT_ONE(layout::K<float>)
#define CPUFREE_LAYOUT_DOUBLE(K) CPUFREE_LAYOUT_ONE(layout::K<double>)
#define CPUFREE_SETUP(K) CPUFREE_LAYOUT_ONE(multigrid::setup::K)
#define CPUFREE_ALL_LAYOUT_KERNELS              \
  CPUFREE_LAYOUT_KERNELS(CPUFREE_LAYOUT_FLOAT)  \
  CPUFREE_LAYOUT_KERNELS(CPUFREE_LAYOUT_DOUBLE) \
  CPUFREE_MULTIGRID_KERNELS(CPUFREE_SETUP)

}  // namespace cpufree
