#include "cpufree/stencils/gpu/registers_3d.cuh"

namespace cpufree {

template const void* cuda_registers_3d_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_registers_3d_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
