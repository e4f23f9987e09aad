// Chooses and loads the version of the CPU engine's kernels that suits the processor at hand.
#ifdef __aarch64__
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "cpufree/base/env.hpp"
#include "cpufree/base/shared_library.hpp"
#include "cpufree/plugins/cpu/level_choice.hpp"
#include "cpufree/plugins/cpu/levels.hpp"

namespace cpufree {

namespace {

// Those that were built (cmake/cpu_kernels.cmake): "v2 v3", or one.
constexpr std::string_view kBuilt = CPUFREE_CPU_LEVELS;
constexpr bool kOneVersion = kBuilt.find(' ') == std::string_view::npos;

// What each of kCpuLevels asks of processor and operating system: what cmake/cpu_kernels.cmake
// uses.
bool has_first() {
#ifdef __x86_64__
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#else
  return true;  // all Arm processors of 64 bits have NEON
#endif
}
bool has_second() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
#else
  return false;
#endif
}

std::size_t runnable() { return has_first() ? (has_second() ? 2 : 1) : 0; }

// SVE gains nothing where its vectors are no longer than NEON's (docs/platforms.md).
std::size_t gainful() {
#ifdef __aarch64__
  const int length = prctl(PR_SVE_GET_VL);  // -1: no SVE
  if (length >= 0 && (length & PR_SVE_VL_LEN_MASK) <= 16) return 1;
#endif
  return kCpuLevels.size();
}

std::size_t chosen() { return choose_cpu_level(cpu_level_asked_for(), runnable(), gainful()); }

const CpuKernels* load(const std::string& version) {
  const std::string path =
      path_of_part(reinterpret_cast<const void*>(&load), "_cpu_" + version + ".so");
  const std::string name = "cpufree's CPU kernels (" + version + ")";
  const SharedLibrary library(path.c_str(), name.c_str(), "the one of the same build",
                              "install cpufree again");
  std::function<const CpuKernels*()> table;
  library.find("cpufree_cpu_kernels", table);
  return table();
}

const CpuKernels* load_chosen() {
  if (!cpu_lacks().empty()) return nullptr;
  return load(std::string(kOneVersion ? kBuilt : word(kBuilt, static_cast<int>(chosen()))));
}

}  // namespace

const CpuKernels* cpu_kernels() {
  if constexpr (kOneVersion) refuse_cpu_level(cpu_level_asked_for(), std::string(kBuilt));
  static const CpuKernels* const table = load_chosen();  // tried again after an exception
  return table;
}

std::string cpu_level() {
  if constexpr (!kOneVersion) return kCpuLevels[chosen()];
  refuse_cpu_level(cpu_level_asked_for(), std::string(kBuilt));
  return std::string(kBuilt);
}

std::vector<std::string> cpu_levels() {
  if constexpr (kOneVersion) return {std::string(kBuilt)};
  return {kCpuLevels.begin(), kCpuLevels.begin() + static_cast<std::ptrdiff_t>(runnable())};
}

std::string cpu_lacks() {
  return missing_features(CPUFREE_NATIVE_FEATURES, features_in(text_of("/proc/cpuinfo")));
}

}  // namespace cpufree
