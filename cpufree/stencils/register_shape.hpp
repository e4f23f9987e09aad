// Which tiles fit the registers of a block (registers.hpp), and what they take of its shared
// memory. For host and kernels.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// Columns of a thread, and most rows.
struct RegisterShape {
  int columns = 1, rows = 1;

  CPUFREE_FN std::int64_t most_width() const { return std::int64_t{32} * columns; }
  // Whether `warps` warps hold a tile. Their rows differ by one at most; the first lane has one
  // side of the halo only.
  CPUFREE_FN bool holds(std::int64_t height, std::int64_t width, int warps) const {
    const std::int64_t used = (height + rows - 1) / rows;
    return width >= columns && width <= most_width() && used <= warps &&
           used * (rows - 1) <= height;
  }
};

// What kernels are made for. The last ones are as large as registers allow: 64 floats a thread, 32
// doubles.
inline constexpr RegisterShape kRegistersOfFloat[] = {{1, 1}, {1, 2}, {1, 4},  {2, 4},
                                                      {4, 4}, {4, 8}, {4, 12}, {4, 16}};
inline constexpr RegisterShape kRegistersOfDouble[] = {{1, 1}, {1, 2},  {1, 4}, {2, 4},
                                                       {2, 8}, {2, 12}, {2, 16}};

// The shared memory of a block of `warps` warps, in values: two parities of the rows that warps
// read of one another (0: above the tile, 2 y + 1 and 2 y + 2: first and last of warp y, last:
// below the tile), each warp's halo beside it, the columns that leave it, the source term.
template <class T, int C, int R>
struct RegisterRoom {
  static constexpr std::int64_t kWidth = 32 * C;

  CPUFREE_FN static std::int64_t row(int warps, int parity, int number) {
    return (std::int64_t{parity} * (2 * warps + 2) + number) * kWidth;
  }
  CPUFREE_FN static std::int64_t edge(int warps, int warp) {
    return row(warps, 2, 0) + std::int64_t{warp} * 2 * R;
  }
  CPUFREE_FN static std::int64_t leaving(int warps, int warp) {
    return edge(warps, (warps + 1) / 2 * 2) + std::int64_t{warp} * 2 * R * C;  // at 16 bytes
  }
  CPUFREE_FN static std::int64_t source(int warps, int warp) {
    return leaving(warps, warps) + warp * kWidth;
  }
  CPUFREE_FN static std::int64_t bytes(int warps, bool with_source) {
    const std::int64_t rows_of_source = with_source ? R : 0;
    return (source(warps, 0) + rows_of_source * warps * kWidth) * std::int64_t{sizeof(T)};
  }
};

}  // namespace cpufree
