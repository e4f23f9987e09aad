#include "cpufree/solvers/cpu/usual.hpp"

namespace cpufree {

template <>
CpuKernel<float> cpu_usual_kernel<float>(const SolveSpec& spec) {
  return cpu_kernel_if<float, true>(spec);
}

}  // namespace cpufree
