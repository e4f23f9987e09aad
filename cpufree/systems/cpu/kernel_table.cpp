#include "cpufree/systems/cpu/kernel_table.hpp"

extern "C" const cpufree::CpuKernels* cpufree_cpu_kernels() {
  using namespace cpufree;
  static constexpr CpuKernels table = {
      {cpu_kernel<float>, cpu_remote_kernel<float>, cpu_stencil_kernel<float>,
       cpu_columns_kernel<float, 2>, cpu_columns_kernel<float, 4>, cpu_columns_kernel<float, 8>},
      {cpu_kernel<double>, cpu_remote_kernel<double>, cpu_stencil_kernel<double>,
       cpu_columns_kernel<double, 2>, cpu_columns_kernel<double, 4>, cpu_columns_kernel<double, 8>},
      cpu_study_kernel};
  return &table;
}
