#include "cpufree/stencils/gpu/wavefront.cuh"

namespace cpufree {

template const void* cuda_wavefront_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_wavefront_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
