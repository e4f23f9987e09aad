// The table of a build that has all kernels that solves of users run.
#include "cpufree/plugins/cpu/kernel_table.hpp"

#include <cpu_kernel_flags.hpp>

namespace cpufree {

namespace {

template <class T>
CpuKernel<T> solve(const SolveSpec& spec) {
  const CpuKernel<T> usual = cpu_usual_kernel<T>(spec);
  return usual != nullptr ? usual : cpu_other_kernel<T>(spec);
}

template <class T>
constexpr CpuKernels::Of<T> kAll = {.solve = solve<T>,
                                    .stencil = cpu_stencil_kernel<T>,
                                    .two = cpu_columns_kernel<T, 2>,
                                    .four = cpu_columns_kernel<T, 4>,
                                    .eight = cpu_columns_kernel<T, 8>};

}  // namespace

}  // namespace cpufree

extern "C" const cpufree::CpuKernels* cpufree_cpu_kernels() {
  using namespace cpufree;
  static constexpr CpuKernels table = {kCpuKernelFlags, kAll<float>, kAll<double>};
  return &table;
}
