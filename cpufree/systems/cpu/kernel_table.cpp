#include "cpufree/systems/cpu/kernel_table.hpp"

extern "C" const cpufree::CpuKernels* cpufree_cpu_kernels() {
  using namespace cpufree;
  static constexpr CpuKernels table = {
      {cpu_kernel<float>, cpu_remote_kernel<float>, cpu_stencil_kernel<float>},
      {cpu_kernel<double>, cpu_remote_kernel<double>, cpu_stencil_kernel<double>},
      cpu_study_kernel};
  return &table;
}
