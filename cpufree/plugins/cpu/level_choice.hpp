// Which version of the CPU engine's kernels runs: the best that the processor can, or the one that
// is asked for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cpufree/base/error.hpp"
#include "cpufree/base/words.hpp"

namespace cpufree {

// Those of wheels, lowest first; each includes those before it. Names are those of the x86-64
// psABI, or of the vector instructions of Arm.
#ifdef __aarch64__
inline constexpr std::array<const char*, 2> kCpuLevels = {"neon", "sve"};
#else
inline constexpr std::array<const char*, 2> kCpuLevels = {"x86-64-v2", "x86-64-v3"};
#endif

// The number of the level to use, of which the processor can run the first `runnable`, and of which
// the first `gainful` are each better than the one before. `asked`: its name, or "" or "auto" for
// the best. Throws InvalidInput where there is no such level, Unsupported
// where the processor cannot run it.
inline std::size_t choose_cpu_level(const std::string& asked, std::size_t runnable,
                                    std::size_t gainful = kCpuLevels.size()) {
  if (runnable == 0)
    throw Unsupported(std::string("cpufree needs a processor of level ") + kCpuLevels[0] +
                      " (SSE 4.2)");
  if (asked.empty() || asked == "auto") return std::min(runnable, gainful) - 1;
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

// The same where the kernels come in one version, `level`: the name of a level is refused.
inline void refuse_cpu_level(const std::string& asked, const std::string& level) {
  if (asked.empty() || asked == "auto" || asked == level) return;
  choose_cpu_level(asked, kCpuLevels.size());  // which knows whether there is such a level
  throw Unsupported("CPUFREE_CPU_LEVEL is " + asked +
                    ", but this build has its CPU kernels in one version (" + level +
                    "): unset the variable, or build with CPUFREE_NATIVE=OFF");
}

// Those of the words of `needed` that are none of `present`, the features of a processor as
// /proc/cpuinfo lists them. None where `present` is empty: then it is not known.
inline std::string missing_features(std::string_view needed, std::string_view present) {
  std::string missing;
  const auto has = [&](std::string_view feature) {
    for (int k = 0;; ++k) {
      const std::string_view one = word(present, k);
      if (one.empty() || one == feature) return !one.empty();
    }
  };
  if (word(present, 0).empty()) return missing;
  for (int k = 0; !word(needed, k).empty(); ++k)
    if (const std::string_view feature = word(needed, k); !has(feature))
      missing.append(missing.empty() ? "" : " ").append(feature);
  return missing;
}

// The features of the first processor in a text of /proc/cpuinfo; empty where it lists none. Arm's
// are under another name.
inline std::string_view features_in(std::string_view cpuinfo) {
  const std::size_t flags = cpuinfo.find("\nflags");
  const std::size_t line = flags == std::string_view::npos ? cpuinfo.find("\nFeatures") : flags;
  if (line == std::string_view::npos) return {};
  const std::size_t begin = cpuinfo.find(':', line) + 1;
  return cpuinfo.substr(begin, cpuinfo.find('\n', begin) - begin);
}

}  // namespace cpufree
