// Which tiles fit the registers of a block in three dimensions (registers_3d.hpp), what they take
// of its shared memory, and of mailboxes. For host and kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// Columns of a thread, and most planes.
struct Tile3dShape {
  int columns = 1, planes = 4;

  CPUFREE_FN std::int64_t most_width() const { return std::int64_t{32} * columns; }
  // Whether `warps` warps hold a tile, one row of all planes each. Tiles may have one plane less;
  // the first lane has one side of the halo only.
  CPUFREE_FN bool holds(std::int64_t depth, std::int64_t height, std::int64_t width,
                        int warps) const {
    return depth <= planes && depth >= planes - 1 && height <= warps && width >= columns &&
           width <= most_width();
  }
};

// How the faces of a 3-D tile travel as packets of `values` values each: 3 floats, 1 double. All
// packets of a warp lie side by side, so that its stores are whole lines of memory.
struct Tile3dPacking {
  int columns = 1, planes = 4, values = 3;

  // A row of a warp, which crosses axis 0. A lane has `own` packets full of its columns, and `rest`
  // columns more: lanes 2 k and 2 k + 1 have one packet for those of both, where they fit.
  constexpr int own() const { return columns / values; }
  constexpr int rest() const { return columns % values; }
  constexpr bool paired() const { return rest() > 0 && 2 * rest() <= values; }
  constexpr int of_lane() const { return own() + (rest() > 0 ? 1 : 0); }
  constexpr int row() const { return 32 * own() + (rest() == 0 ? 0 : paired() ? 16 : 32); }

  // Rows of several planes, which cross axis 1. A lane has its columns of `group` planes in as many
  // packets.
  constexpr int group() const {
    return values == 1 ? 1 : 8 / columns < planes ? 8 / columns : planes;
  }
  constexpr int groups() const { return planes / group(); }
  constexpr int of_group() const { return (group() * columns + values - 1) / values; }

  // The column of a warp in all planes, which crosses axis 2.
  constexpr int column() const { return (planes + values - 1) / values; }

  // Packets that a halo across an axis takes in a mailbox, of `warps` warps: whole lines.
  constexpr std::int64_t mailbox(int axis, int warps) const {
    const std::int64_t packets = axis == 0   ? std::int64_t{warps} * row()
                                 : axis == 1 ? std::int64_t{groups()} * of_group() * 32
                                             : std::int64_t{warps} * column();
    return (packets + 7) / 8 * 8;
  }
};
// Of packets with values of N bytes.
constexpr Tile3dPacking packing_of(const Tile3dShape& shape, std::size_t value_bytes) {
  return {shape.columns, shape.planes, value_bytes == 4 ? 3 : 1};
}

// What kernels are made for. The last ones are as large as registers allow: 64 floats a thread, 32
// doubles.
inline constexpr Tile3dShape kTiles3dOfFloat[] = {{1, 4}, {2, 4}, {4, 4}, {2, 8}, {4, 8}, {4, 16}};
inline constexpr Tile3dShape kTiles3dOfDouble[] = {{1, 4}, {2, 4}, {1, 8}, {2, 8}, {2, 16}};

// The shared memory of a block of `warps` warps, in values: the rows of all planes with one above
// (-1) and one below the tile, those of the planes before (-1) and after it, each warp's halo
// beside it, the source term, the first and the last columns of each warp, on their way out.
template <class T, int C, int Z>
struct Tile3dRoom {
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
  CPUFREE_FN static std::int64_t leaving(int warps, bool with_source, int warp) {
    return source(warps, with_source ? Z : 0, 0) + std::int64_t{warp} * 2 * Z * C;
  }
  CPUFREE_FN static std::int64_t bytes(int warps, bool with_source) {
    return leaving(warps, with_source, warps) * std::int64_t{sizeof(T)};
  }
};

}  // namespace cpufree
