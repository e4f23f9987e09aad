#include "cpufree/systems/stencil/gpu/registers.cuh"

namespace cpufree {

std::span<const RegisterShape> register_shapes(std::size_t value_bytes) {
  return value_bytes == 4 ? std::span<const RegisterShape>(kOfFloat)
                          : std::span<const RegisterShape>(kOfDouble);
}

template const void* cuda_registers_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_registers_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
