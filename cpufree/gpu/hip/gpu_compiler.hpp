// What cpufree/gpu/compiler.hpp has to know of the vendor's compiler of kernels at run time,
// hiprtc: the one file that has its names (HIP documentation, "HIP RTC Programming Guide").
#pragma once

#include <string>
#include <vector>

#include "cpufree/base/error.hpp"

inline constexpr const char* gpuCompilerName = "hiprtc";
inline constexpr const char* gpuCompilerFile = "libhiprtc.so";
inline constexpr int gpuCompilerOldest = 5;  // major version of HIP; hiprtc of ROCm 5 says 9
inline constexpr const char* gpuCompilerAdvice =
    "install ROCm 6.0 or newer (package hip-runtime-amd)";
inline constexpr const char* gpuCompilerPlace = "/opt/rocm/lib/libhiprtc.so";
inline constexpr const char* gpuCompilerPrefix = "hiprtc";
inline constexpr const char* gpuCompilerCode = "Code";
inline constexpr const char* gpuCompilerPortable = nullptr;
inline constexpr bool gpuCompilerLists = false;
inline constexpr const char* gpuCompilerTarget = "--offload-arch=";
inline constexpr const char* gpuCompilerExact = "-ffp-contract=off";
inline std::vector<std::string> gpuCompilerOptions() { return {"-std=c++20", "-O3"}; }
inline std::string gpuCompilerText(const std::string& source) {
  return "#include \"cpufree/gpu/hip/prelude.hpp\"\n#line 1\n" + source +
         "\n#include \"cpufree/gpu/hip/end.hpp\"\n";
}

// "gfx942" of "gfx942:sramecc+:xnack-".
template <class Properties>
std::string gpuArchitecture(const Properties& of) {
  const std::string name = of.gcnArchName;
  return name.substr(0, name.find(':'));
}
// There is no code that drivers compile.
template <class Properties>
std::string gpuPortableArchitecture(const std::string& asked, const Properties& of) {
  if (asked != gpuArchitecture(of))
    throw cpufree::InvalidInput("CPUFREE_ARCH is '" + asked + "', and this GPU runs code for " +
                                gpuArchitecture(of) + " alone; unset it");
  return asked;
}
