#include "cpufree/stencils/gpu/time_tiles.cuh"

namespace cpufree {

template const void* cuda_time_tiles_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_time_tiles_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
