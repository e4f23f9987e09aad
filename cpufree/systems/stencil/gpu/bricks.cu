#include "cpufree/systems/stencil/gpu/bricks.cuh"

namespace cpufree {

std::span<const BrickShape> brick_shapes(std::size_t value_bytes) {
  return value_bytes == 4 ? std::span<const BrickShape>(kBricksOfFloat)
                          : std::span<const BrickShape>(kBricksOfDouble);
}

template const void* cuda_bricks_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_bricks_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
