#include "cpufree/systems/stencil/gpu/time_tiles.cuh"

namespace cpufree {

namespace {
constexpr int kLayers2d[] = {1, 2, 4, 8};
constexpr int kLayers3d[] = {1, 2};
}  // namespace

std::span<const int> time_tile_layers(int dims) {
  return dims == 2 ? std::span<const int>(kLayers2d) : std::span<const int>(kLayers3d);
}

template const void* cuda_time_tiles_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_time_tiles_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
