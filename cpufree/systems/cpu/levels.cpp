// Chooses and loads the version of the CPU engine's kernels that suits the processor at hand.
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "cpufree/base/env.hpp"
#include "cpufree/base/shared_library.hpp"
#include "cpufree/systems/cpu/kernel_table.hpp"
#include "cpufree/systems/cpu/level_choice.hpp"

namespace cpufree {

namespace {

// What each of kCpuLevels asks of processor and operating system: what cmake/cpu_levels.cmake uses.
constexpr std::array<bool (*)(), kCpuLevels.size()> kRuns = {
    [] { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"); },
    [] {
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    },
    [] {
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }};
constexpr std::array<const char*, kCpuLevels.size()> kFiles = {"_cpu_v2.so", "_cpu_v3.so",
                                                               "_cpu_v4.so"};

std::size_t runnable() {
  std::size_t count = 0;
  while (count < kRuns.size() && kRuns[count]()) ++count;
  return count;
}

std::size_t chosen() { return choose_cpu_level(cpu_level_asked_for(), runnable()); }

const CpuKernels* load(std::size_t level) {
  const std::string path = folder_of(reinterpret_cast<const void*>(&load)) + kFiles[level];
  const std::string name = std::string("cpufree's CPU kernels for ") + kCpuLevels[level];
  const SharedLibrary library(path.c_str(), name.c_str(), "the one of the same build",
                              "install cpufree anew");
  std::function<const CpuKernels*()> table;
  library.find("cpufree_cpu_kernels", table);
  return table();
}

}  // namespace

const CpuKernels& cpu_kernels() {
  static const CpuKernels* const table = load(chosen());  // tried again after an exception
  return *table;
}

std::string cpu_level() { return kCpuLevels[chosen()]; }

std::vector<std::string> cpu_levels() {
  const std::size_t count = runnable();
  return {kCpuLevels.begin(), kCpuLevels.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace cpufree
