// What the kernels for grids are made for, built in or compiled when first used.
#include "cpufree/stencils/gpu/kernel.hpp"

namespace cpufree {

namespace {
constexpr int kLayers2d[] = {1, 2, 4, 8};
constexpr int kLayers3d[] = {1, 2};
}  // namespace

std::span<const Tile3dShape> tile3d_shapes(std::size_t value_bytes) {
  return value_bytes == 4 ? std::span<const Tile3dShape>(kTiles3dOfFloat)
                          : std::span<const Tile3dShape>(kTiles3dOfDouble);
}

std::span<const int> time_tile_layers(int dims) {
  return dims == 2 ? std::span<const int>(kLayers2d) : std::span<const int>(kLayers3d);
}

}  // namespace cpufree
