// Which tiles fit the registers of a block in three dimensions (bricks.hpp), what they take of its
// shared memory, and of mailboxes. For host and kernels.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// Columns of a thread, and most planes.
struct BrickShape {
  int columns = 1, planes = 4;

  CPUFREE_FN std::int64_t most_width() const { return std::int64_t{32} * columns; }
  // Whether `warps` warps hold a tile, one row of all planes each. Tiles may have one plane less;
  // the first lane has one side of the halo only.
  CPUFREE_FN bool holds(std::int64_t depth, std::int64_t height, std::int64_t width,
                        int warps) const {
    return depth <= planes && depth >= planes - 1 && height <= warps && width >= columns &&
           width <= most_width();
  }
  // Values that a halo across an axis takes in a mailbox: rows as long as a warp's, columns as long
  // as a thread's. Of `warps` warps.
  CPUFREE_FN std::int64_t mailbox(int axis, int warps) const {
    const std::int64_t values = axis == 0   ? warps * most_width()
                                : axis == 1 ? planes * most_width()
                                            : std::int64_t{warps} * planes;
    return (values + 31) / 32 * 32;
  }
};

// What kernels are made for. The last ones are as large as registers allow: 64 floats a thread, 32
// doubles.
inline constexpr BrickShape kBricksOfFloat[] = {{1, 4}, {2, 4}, {4, 4}, {2, 8}, {4, 8}, {4, 16}};
inline constexpr BrickShape kBricksOfDouble[] = {{1, 4}, {2, 4}, {1, 8}, {2, 8}, {2, 16}};

// The shared memory of a block of `warps` warps, in values: the rows of all planes with one above
// (-1) and one below the tile, those of the planes before (-1) and after it, each warp's halo
// beside it, the source term.
template <class T, int C, int Z>
struct BrickRoom {
  static constexpr std::int64_t kWidth = 32 * C;

  CPUFREE_FN static std::int64_t row(int warps, int z, int y) {
    return ((std::int64_t{z} + 1) * (warps + 2) + y + 1) * kWidth;
  }
  CPUFREE_FN static std::int64_t edge(int warps, int warp) {
    return row(warps, Z + 1, -1) + std::int64_t{warp} * 2 * Z;
  }
  CPUFREE_FN static std::int64_t source(int warps, int z, int warp) {
    return edge(warps, warps) + (std::int64_t{z} * warps + warp) * kWidth;
  }
  CPUFREE_FN static std::int64_t bytes(int warps, bool with_source) {
    return source(warps, with_source ? Z : 0, 0) * std::int64_t{sizeof(T)};
  }
};

}  // namespace cpufree
