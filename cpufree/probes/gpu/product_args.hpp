// What a kernel is told that multiplies tiles. Plain data, for host and device code.
#pragma once

#include <cstdint>

namespace cpufree {

// A block of 32 x 8 threads computes 32 x 32 entries, four of a column by each thread; rows of a
// tile are a multiple of 32.
inline constexpr int kTileEdge = 32, kTileThreads = 256;

struct ProductArgs {
  const double* a = nullptr;
  const double* b = nullptr;
  double* c = nullptr;
  std::int32_t rows = 0;
  bool first = false;  // C = A B; else C + A B
};

}  // namespace cpufree
