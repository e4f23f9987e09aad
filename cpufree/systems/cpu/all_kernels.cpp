// The table of a build that has all kernels.
#include "cpufree/systems/cpu/kernel_table.hpp"

#include <cpu_kernel_flags.hpp>

namespace cpufree {

namespace {

template <class T>
CpuKernel<T> solve(const SolveSpec& spec) {
  const CpuKernel<T> usual = cpu_usual_kernel<T>(spec);
  return usual != nullptr ? usual : cpu_other_kernel<T>(spec);
}

template <class T>
constexpr CpuKernels::Of<T> kAll = {solve<T>,
                                    cpu_remote_kernel<T>,
                                    cpu_stencil_kernel<T>,
                                    cpu_columns_kernel<T, 2>,
                                    cpu_columns_kernel<T, 4>,
                                    cpu_columns_kernel<T, 8>};

}  // namespace

}  // namespace cpufree

extern "C" const cpufree::CpuKernels* cpufree_cpu_kernels() {
  using namespace cpufree;
  static constexpr CpuKernels table = {kCpuKernelFlags, kAll<float>, kAll<double>,
                                       cpu_study_kernel};
  return &table;
}
