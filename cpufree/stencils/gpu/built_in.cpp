// Where kernels are built in, those that are traced are not: they are compiled when they are first
// used (compiled/stencil_kernels.cpp).
#include "cpufree/base/error.hpp"
#include "cpufree/stencils/gpu/kernel.hpp"

namespace cpufree {

namespace {
[[noreturn]] const void* refuse() {
  throw Unsupported(
      "stencils are traced by kernels that are compiled when they are first used, and this build "
      "has its kernels built in: build with CPUFREE_KERNELS=USUAL");
}
}  // namespace

#define CPUFREE_NOT_TRACED(T)                                                   \
  template <>                                                                   \
  const void* cuda_wavefront_kernel<Study::trace, T>(const StencilKernel&) {    \
    return refuse();                                                            \
  }                                                                             \
  template <>                                                                   \
  const void* cuda_registers_3d_kernel<Study::trace, T>(const StencilKernel&) { \
    return refuse();                                                            \
  }                                                                             \
  template <>                                                                   \
  const void* cuda_time_tiles_kernel<Study::trace, T>(const StencilKernel&) {   \
    return refuse();                                                            \
  }
CPUFREE_NOT_TRACED(float)
CPUFREE_NOT_TRACED(double)

}  // namespace cpufree
