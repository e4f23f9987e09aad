// For which processors the CPU engine's kernels were compiled (kernel_table.hpp).
#pragma once

#include <string>
#include <vector>

namespace cpufree {

// The level in use, such as "x86-64-v3"; "native" or "baseline" where there is one version. Throws
// as `cpu_kernels` does.
std::string cpu_level();

// The levels that this processor can run, lowest first.
std::vector<std::string> cpu_levels();

// What this processor lacks of the one that the kernels were built for, by the names of
// /proc/cpuinfo; empty where it has all. Then `cpu_kernels` is an empty table.
std::string cpu_lacks();

}  // namespace cpufree
