#include "cpufree/systems/stencil/gpu/registers_3d.cuh"

namespace cpufree {

std::span<const Tile3dShape> tile3d_shapes(std::size_t value_bytes) {
  return value_bytes == 4 ? std::span<const Tile3dShape>(kTiles3dOfFloat)
                          : std::span<const Tile3dShape>(kTiles3dOfDouble);
}

template const void* cuda_registers_3d_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_registers_3d_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
