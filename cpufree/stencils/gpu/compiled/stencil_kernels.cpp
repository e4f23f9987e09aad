// Kernels for grids that are compiled on this machine when they are first wanted.
#include "cpufree/launch/gpu/compiled/store.hpp"
#include "cpufree/stencils/gpu/compiled/stencil_source.hpp"

namespace cpufree {

namespace {

// Null where the text is empty: there is no such kernel.
const void* kernel_of(const std::string& text, const StencilKernel& wanted) {
  return text.empty() ? nullptr : only_kernel(compiled_code({text}, wanted.devices)[0]);
}

}  // namespace

template <Study S, class T>
const void* cuda_wavefront_kernel(const StencilKernel& wanted) {
  return kernel_of(wavefront_source(wanted, S, sizeof(T)), wanted);
}
template <Study S, class T>
const void* cuda_registers_3d_kernel(const StencilKernel& wanted) {
  return kernel_of(registers_3d_source(wanted, S, sizeof(T)), wanted);
}
template <Study S, class T>
const void* cuda_time_tiles_kernel(const StencilKernel& wanted) {
  return kernel_of(time_tiles_source(wanted, S, sizeof(T)), wanted);
}

#define CPUFREE_COMPILED_STENCILS(S, T)                                      \
  template const void* cuda_wavefront_kernel<S, T>(const StencilKernel&);    \
  template const void* cuda_registers_3d_kernel<S, T>(const StencilKernel&); \
  template const void* cuda_time_tiles_kernel<S, T>(const StencilKernel&);
CPUFREE_COMPILED_STENCILS(Study::none, float)
CPUFREE_COMPILED_STENCILS(Study::none, double)
CPUFREE_COMPILED_STENCILS(Study::no_compute, float)
CPUFREE_COMPILED_STENCILS(Study::no_compute, double)
CPUFREE_COMPILED_STENCILS(Study::no_comm, float)
CPUFREE_COMPILED_STENCILS(Study::no_comm, double)

}  // namespace cpufree
