// The CPU engine's kernels where they are linked into the program, in one version: all of them.
#include "cpufree/base/env.hpp"
#include "cpufree/plugins/cpu/kernel_table.hpp"
#include "cpufree/plugins/cpu/level_choice.hpp"
#include "cpufree/plugins/cpu/levels.hpp"

namespace cpufree {

const CpuKernels* cpu_kernels() {
  refuse_cpu_level(cpu_level_asked_for(), CPUFREE_CPU_LEVEL);
  static const CpuKernels table = [] {
    CpuKernels all = *cpufree_cpu_kernels();
    all.in_float.remote = cpu_remote_kernel<float>;
    all.in_double.remote = cpu_remote_kernel<double>;
    all.study = cpu_study_kernel;
    return all;
  }();
  return &table;
}

std::string cpu_level() {
  refuse_cpu_level(cpu_level_asked_for(), CPUFREE_CPU_LEVEL);
  return CPUFREE_CPU_LEVEL;
}

std::vector<std::string> cpu_levels() { return {CPUFREE_CPU_LEVEL}; }

std::string cpu_lacks() { return ""; }

}  // namespace cpufree
