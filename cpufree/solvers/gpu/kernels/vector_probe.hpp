// What a look at a vector found, and how large blocks of threads are that look. For host and
// kernels.
#pragma once

#include <cstdint>

namespace cpufree {

inline constexpr int kVectorThreads = 256;

// In device memory; zeroed before use.
struct VectorProbe {
  double largest = 0.0;          // largest |entry| that is a number
  std::uint32_t not_finite = 0;  // 1 if some entry is not finite
};

}  // namespace cpufree
