#include "cpufree/run/cuda_stencil_brick_packets.cuh"

namespace cpufree {

template const void* cuda_brick_packets_kernel<Study::none, float>(const StencilKernel&);
template const void* cuda_brick_packets_kernel<Study::none, double>(const StencilKernel&);

}  // namespace cpufree
