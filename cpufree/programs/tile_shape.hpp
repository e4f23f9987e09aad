// How fields lie in the tiles of blocks: what a generated kernel whose values come on chip knows of
// sizes, as plain data (tile_runtime.hpp).
#pragma once

#include <cstdint>

#include "cpufree/device/types.hpp"
#include "cpufree/programs/stages.hpp"

namespace cpufree::programs {

// How blocks divide what a PE has.
struct BlockGrid {
  int rows = 1, columns = 1;  // of blocks
  std::int64_t width = 1;     // points along the second axis, of the widest field
  int room = 0;               // bytes of fast memory before the tiles: for reductions
  std::int64_t tiles = 0;     // where there is no fast memory: where tiles lie in the heap, and how
  std::int64_t tile_bytes = 0;  // many bytes a block has
};

// How a field lies in tiles, in the heap, and in the packets of exchanges. A field of one
// dimension has one column; the third axis, `depth`, is not divided.
struct TileShape {
  int rows = 1, columns = 1, depth = 1;        // of the largest part
  int around = 0, beside = 0;                  // ghost rows, columns, on either side
  std::int64_t n0 = 1, n1 = 1;                 // of the whole field
  bool ring0 = false, ring1 = false;           // its ends are neighbours
  bool corners = false;                        // ghosts that lie aside along both axes are read
  std::int64_t heap_row = 1, heap_column = 1;  // distances
  int heap_below = 0, heap_above = 0;          // ghost rows that are kept there
  std::int64_t packets = 0, slot = 0;          // offset in the heap; packets of a slot
};

// A field: in the heap, and its tile.
template <class T>
struct Tiled : Array<T, 1> {
  int tile = 0;  // bytes, in the block's memory
  CPUFREE_FN void take(const Tiled& other) { take_values(other), this->id = other.id; }
  CPUFREE_FN void take_values(const Tiled& other) {
    Array<T, 1>::take_values(other);
    tile = other.tile;
  }
};

// A field in an exchange.
template <class T>
struct Exchanged {
  Tiled<T>& field;
  const TileShape& shape;
  Epoch& epoch;  // exchanges of this field
};

// First and one behind the last of some points.
struct Part {
  int first, end;
};

}  // namespace cpufree::programs
