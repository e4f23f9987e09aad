#include "cpufree/systems/cpu/usual.hpp"

namespace cpufree {

template <class T>
CpuKernel<T> cpu_usual_kernel(const SolveSpec& spec) {
  return cpu_kernel_if<T, true>(spec);
}

template CpuKernel<float> cpu_usual_kernel<float>(const SolveSpec&);
template CpuKernel<double> cpu_usual_kernel<double>(const SolveSpec&);

}  // namespace cpufree
