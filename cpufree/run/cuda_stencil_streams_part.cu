// The kernels of PEs that have two of them.
#include "cpufree/run/cuda_stencil_streams.cuh"

namespace cpufree {

template <class T>
const void* cuda_streams_part_kernel(const StencilKernel& wanted) {
  if (wanted.source) return nullptr;
  return find_streams_kernel<cuda_p2p::PartPort, Study::none, false, T>(wanted.dims, wanted.layers);
}

template const void* cuda_streams_part_kernel<float>(const StencilKernel&);
template const void* cuda_streams_part_kernel<double>(const StencilKernel&);

}  // namespace cpufree
