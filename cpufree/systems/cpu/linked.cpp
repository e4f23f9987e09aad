// The CPU engine's kernels where they are linked into the program, in one version.
#include "cpufree/base/env.hpp"
#include "cpufree/systems/cpu/kernel_table.hpp"
#include "cpufree/systems/cpu/level_choice.hpp"

namespace cpufree {

namespace {

#ifdef CPUFREE_NATIVE
constexpr const char* kLevel = "native";
constexpr const char* kTarget = "the processor that it was compiled on (CPUFREE_NATIVE=ON)";
#else
constexpr const char* kLevel = "baseline";
constexpr const char* kTarget = "all processors of its kind";
#endif

}  // namespace

const CpuKernels& cpu_kernels() {
  refuse_cpu_level(cpu_level_asked_for(), kTarget);
  return *cpufree_cpu_kernels();
}

std::string cpu_level() {
  refuse_cpu_level(cpu_level_asked_for(), kTarget);
  return kLevel;
}

std::vector<std::string> cpu_levels() { return {kLevel}; }

}  // namespace cpufree
