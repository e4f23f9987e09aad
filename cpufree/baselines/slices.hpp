// What kernels are given besides their functor. Plain structs.
#pragma once

#include <cstdint>

#include "cpufree/device/types.hpp"
#include "cpufree/formats/warp_slices.hpp"

namespace cpufree::baselines {

inline constexpr int kMaxPes = 16;
inline constexpr int kMaxSums = 5;    // of one reduction
inline constexpr int kThreads = 256;  // of a block

// A matrix in slices of 32 rows, from row 0 on: the format of the persistent kernels.
template <class T>
struct SliceView {
  WarpSlices<T> matrix;
  std::int32_t rows = 0;
};

// Sums that go to all PEs as packets, out of the kernel that has computed them.
struct SumPackets {
  std::uint64_t* epoch = nullptr;  // null: none are sent
  Packet* slots[kMaxPes] = {};     // on each PE: 2 parities x PEs x kMaxSums
  std::int32_t pe = 0;
  std::int32_t pes = 0;

  CPUFREE_FN static std::int64_t place(std::uint64_t epoch, int pes, int from, int k) {
    return (static_cast<std::int64_t>(epoch & 1U) * pes + from) * kMaxSums + k;
  }
};

// Where the sums of a kernel go: out[k] = base[k] + the sum over all threads.
struct SumTarget {
  double* partial = nullptr;    // kMaxSums for each block
  unsigned* arrived = nullptr;  // 0 between kernels
  const double* base = nullptr;
  double* out = nullptr;
  SumPackets packets;
};

// The bound of a wait inside a kernel, and who is told when it is over.
struct WaitBound {
  std::uint64_t limit_ns = 0;
  unsigned* abort[kMaxPes] = {};  // on each PE: not 0 when all are to give up
  std::int32_t pe = 0;
  std::int32_t pes = 0;
  std::int32_t* report = nullptr;  // host: 1 + what was waited for, by the first who gave up
};

}  // namespace cpufree::baselines
