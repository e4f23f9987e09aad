#include "cpufree/solvers/cpu/usual.hpp"

namespace cpufree {

template <class T>
CpuKernel<T> cpu_other_kernel(const SolveSpec& spec) {
  return cpu_kernel_if<T, false>(spec);
}

template CpuKernel<float> cpu_other_kernel<float>(const SolveSpec&);
template CpuKernel<double> cpu_other_kernel<double>(const SolveSpec&);

}  // namespace cpufree
