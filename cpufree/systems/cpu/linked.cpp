// The CPU engine's kernels where they are linked into the program, in one version.
#include "cpufree/systems/cpu/kernel_table.hpp"

namespace cpufree {

const CpuKernels& cpu_kernels() { return *cpufree_cpu_kernels(); }

std::string cpu_level() {
#ifdef CPUFREE_NATIVE
  return "native";
#else
  return "baseline";
#endif
}

std::vector<std::string> cpu_levels() { return {cpu_level()}; }

}  // namespace cpufree
