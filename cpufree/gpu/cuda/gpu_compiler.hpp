// What cpufree/gpu/compiler.hpp has to know of the vendor's compiler of kernels at run time, NVRTC:
// the one file that has its names (NVRTC 13.0 documentation, CUDA).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "cpufree/base/error.hpp"

inline constexpr const char* gpuCompilerName = "NVRTC";
inline constexpr const char* gpuCompilerFile = "libnvrtc.so.13";
inline constexpr int gpuCompilerOldest = 13;  // major version
inline constexpr const char* gpuCompilerAdvice =
    "install it with pip install 'nvidia-cuda-nvrtc>=13,<14', or install the CUDA toolkit 13";
// Where the toolkit puts it, besides the loader's own places.
inline constexpr const char* gpuCompilerPlace = "/usr/local/cuda/lib64/libnvrtc.so.13";

// How names of its functions begin; what machine code is called in them, and code that drivers
// compile (null: there is none); whether it lists the architectures that it knows.
inline constexpr const char* gpuCompilerPrefix = "nvrtc";
inline constexpr const char* gpuCompilerCode = "CUBIN";
inline constexpr const char* gpuCompilerPortable = "PTX";
inline constexpr bool gpuCompilerLists = true;
inline constexpr const char* gpuCompilerTarget = "--gpu-architecture=";
inline constexpr const char* gpuCompilerExact = "-fmad=false";  // no product is fused with a sum
// What all kernels are compiled with, besides the architecture. All functions are device functions
// where they do not say what they are; device_std.hpp has move and forward.
inline std::vector<std::string> gpuCompilerOptions() {
  return {"-std=c++20", "-default-device", "-builtin-move-forward=false"};
}
// A kernel's text as the compiler is to have it.
inline std::string gpuCompilerText(const std::string& source) { return source; }

// The oldest compute capability that kernels are made for, times ten: 16-byte copies of a thread
// that run by themselves, and barriers in shared memory, came with 8.0 (PTX ISA 8.x).
inline constexpr int gpuOldest = 80;

// The name of an architecture of machine code, by compute capability.
inline std::string gpuArchitecture(int major, int minor) {
  return "sm_" + std::to_string(major) + std::to_string(minor);
}
template <class Properties>
std::string gpuArchitecture(const Properties& of) {
  return gpuArchitecture(of.major, of.minor);
}
// The architecture of code for a GPU where another one's is asked for ("sm_80"): portable code
// ("compute_80"), which the driver compiles for the GPU. Throws InvalidInput for what no such GPU
// runs.
inline std::string gpuPortableArchitecture(const std::string& asked, int major, int minor) {
  const std::string digits = asked.starts_with("sm_") ? asked.substr(3) : "";
  const bool number = (digits.size() == 2 || digits.size() == 3) &&
                      std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  const int wanted = number ? std::stoi(digits) : 0;
  const int own = 10 * major + minor;
  if (wanted < gpuOldest || wanted > own)
    throw cpufree::InvalidInput("CPUFREE_ARCH is '" + asked + "'; it takes sm_" +
                                std::to_string(gpuOldest) + " to " + gpuArchitecture(major, minor) +
                                ", which this GPU has; unset it");
  return wanted == own ? asked : "compute_" + digits;
}
template <class Properties>
std::string gpuPortableArchitecture(const std::string& asked, const Properties& of) {
  return gpuPortableArchitecture(asked, of.major, of.minor);
}
