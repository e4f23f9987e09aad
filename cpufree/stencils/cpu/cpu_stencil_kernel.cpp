#include "cpufree/plugins/cpu/kernel.hpp"
#include "cpufree/stencils/jacobi.hpp"

namespace cpufree {

namespace {

template <Study S, int D, bool kSource, class T>
void kernel(cpu_threads::Port& port, const JacobiArgs<T>& args) {
  run_as<S>(port, [&](auto& p) { jacobi_kernel<D, kSource>(p, args); });
}

template <Study S, bool kSource, class T>
CpuStencilKernel<T> kernel_of(const Grid& grid) {
  return grid.dims == 2 ? kernel<S, 2, kSource, T> : kernel<S, 3, kSource, T>;
}

}  // namespace

template <class T>
CpuStencilKernel<T> cpu_stencil_kernel(const Grid& grid, bool source, Study study) {
  if (study == Study::no_compute) return kernel_of<Study::no_compute, false, T>(grid);
  if (study == Study::no_comm) return kernel_of<Study::no_comm, false, T>(grid);
  return source ? kernel_of<Study::none, true, T>(grid) : kernel_of<Study::none, false, T>(grid);
}

template CpuStencilKernel<float> cpu_stencil_kernel<float>(const Grid&, bool, Study);
template CpuStencilKernel<double> cpu_stencil_kernel<double>(const Grid&, bool, Study);

}  // namespace cpufree
