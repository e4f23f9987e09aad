// For which processors the CPU engine's kernels were compiled (kernel_table.hpp).
#pragma once

#include <string>
#include <vector>

namespace cpufree {

struct CpuKernels;

// The table of the kernels in use; null where this processor lacks something of the one that they
// were built for. Throws Unsupported where the level asked for (CPUFREE_CPU_LEVEL) is not that of
// this processor, and InvalidInput where there is no such level.
const CpuKernels* cpu_kernels();

// The level in use, such as "x86-64-v3"; "native" or "baseline" where there is one version. Throws
// as `cpu_kernels` does.
std::string cpu_level();

// The levels that this processor can run, lowest first.
std::vector<std::string> cpu_levels();

// What this processor lacks of the one that the kernels were built for, by the names of
// /proc/cpuinfo; empty where it has all.
std::string cpu_lacks();

}  // namespace cpufree
