#include "cpufree/stencils/gpu/registers.cuh"

namespace cpufree {

template const void* cuda_registers_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_registers_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
