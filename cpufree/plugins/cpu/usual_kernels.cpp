// The table of a build that has the usual kernels alone.
#include "cpufree/plugins/cpu/kernel_table.hpp"

#include <cpu_kernel_flags.hpp>

extern "C" const cpufree::CpuKernels* cpufree_cpu_kernels() {
  using namespace cpufree;
  static constexpr CpuKernels table = {.flags = kCpuKernelFlags,
                                       .in_float = {.solve = cpu_usual_kernel<float>},
                                       .in_double = {.solve = cpu_usual_kernel<double>}};
  return &table;
}
