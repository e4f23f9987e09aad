// How a block's part of values in memory falls to its warps (time_tiles.hpp). For host and kernels.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// Columns of a lane: 16 bytes, what one instruction loads.
template <class T>
inline constexpr int kStreamColumns = 16 / static_cast<int>(sizeof(T));

// In three dimensions, planes of a window are in a ring (plane_pass.hpp). Their rows have the
// values of a warp's lanes, and 16 bytes on either side. Two warps more have what is around the
// window: rows, and columns of which a lane has one row.
inline constexpr int kRingPlanes = 8;
inline constexpr int kPlaneRows = 2;  // of a warp
CPUFREE_FN constexpr int rim_warps(int dims) { return dims == 3 ? 2 : 0; }
template <class T>
CPUFREE_FN constexpr int plane_row() {
  return (32 + 2) * kStreamColumns<T>;
}
// Of the ring, and of two planes between two iterations. `warps`: of a window.
CPUFREE_FN constexpr std::int64_t plane_bytes(int warps, int layers) {
  const int rows = warps * kPlaneRows;
  const int ring = kRingPlanes * (rows + 2 * layers), between = layers > 1 ? 2 * (rows + 2) : 0;
  return std::int64_t{ring + between} * (32 + 2) * 16;
}

// Columns that a warp stores where a pass takes `layers` iterations.
CPUFREE_FN int time_tile_width(int columns, int layers) {
  return columns * (32 - 2 * ((layers + columns - 1) / columns));
}

// Where part `k` of `parts` begins.
CPUFREE_FN std::int32_t cut(std::int32_t extent, std::int32_t k, std::int32_t parts) {
  return static_cast<std::int32_t>(std::int64_t{extent} * k / parts);
}

// The next multiple of `of`, downwards.
CPUFREE_FN std::int32_t floor_to(std::int32_t i, std::int32_t of) {
  return i >= 0 ? i / of * of : -((-i + of - 1) / of * of);
}

}  // namespace cpufree
