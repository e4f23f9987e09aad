#include "cpufree/solvers/cpu/usual.hpp"

namespace cpufree {

template <>
CpuKernel<double> cpu_usual_kernel<double>(const SolveSpec& spec) {
  return cpu_kernel_if<double, true>(spec);
}

}  // namespace cpufree
