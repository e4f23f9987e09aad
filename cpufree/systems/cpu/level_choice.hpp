// Which version of the CPU engine's kernels runs: the best that the processor can, or the one that
// is asked for.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "cpufree/base/error.hpp"

namespace cpufree {

// Lowest first; each includes those before it. Names are those of the x86-64 psABI.
inline constexpr std::array<const char*, 3> kCpuLevels = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};

// The number of the level to use, of which the processor can run the first `runnable`. `asked`: its
// name, or "" or "auto" for the best. Throws InvalidInput where there is no such level, Unsupported
// where the processor cannot run it.
inline std::size_t choose_cpu_level(const std::string& asked, std::size_t runnable) {
  if (runnable == 0)
    throw Unsupported(std::string("cpufree needs a processor of level ") + kCpuLevels[0] +
                      " (SSE 4.2)");
  if (asked.empty() || asked == "auto") return runnable - 1;
  std::string names = "auto";
  for (std::size_t k = 0; k < kCpuLevels.size(); ++k) {
    names += std::string(", ") + kCpuLevels[k];
    if (asked != kCpuLevels[k]) continue;
    if (k < runnable) return k;
    throw Unsupported("CPUFREE_CPU_LEVEL is " + asked + ", but this processor can run " +
                      kCpuLevels[runnable - 1] + " at most");
  }
  throw InvalidInput("CPUFREE_CPU_LEVEL is '" + asked + "'; it takes " + names);
}

// The same where the kernels come in one version, compiled for `target`: a name is refused.
inline void refuse_cpu_level(const std::string& asked, const std::string& target) {
  if (asked.empty() || asked == "auto") return;
  choose_cpu_level(asked, kCpuLevels.size());  // which knows whether there is such a level
  throw Unsupported("CPUFREE_CPU_LEVEL is " + asked +
                    ", but this build has its CPU kernels in one version, for " + target +
                    ": unset the variable, or build without CPUFREE_NATIVE");
}

}  // namespace cpufree
