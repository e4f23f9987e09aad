// What the program says of the vendor's GPUs, and which of them it serves.
#pragma once

#include <gpu_names.hpp>

#include <string>

inline constexpr const char* gpuVendor = "NVIDIA";
inline constexpr const char* gpuLister = "nvidia-smi -L";
inline constexpr const char* gpuVisibleVariable = "CUDA_VISIBLE_DEVICES";
inline constexpr const char* gpuLinkAdvice = "NVLink (nvidia-smi topo -m shows which are)";
// Its library of collectives among GPUs.
inline constexpr const char* gpuCollectives = "NCCL";
inline constexpr const char* gpuCollectivesFile = "libnccl.so.2";
inline constexpr const char* gpuCollectivesAdvice = "pip install nvidia-nccl-cu13";

inline std::string gpuVersionText(int version) {  // 13000 -> "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// What kernels for the GPU are called after; "": its compute capability says all.
inline std::string gpuKindOf(const gpuDeviceProp_t&) { return ""; }

// "" if there are kernels for it; else what it has, and what is needed, behind its name.
inline std::string gpuFlawOf(const gpuDeviceProp_t& of) {
  // The compute capability, times ten, that kernels can be compiled for; that those are for which
  // are part of this build, if any are.
  constexpr int kOldest = 80;
#if defined(CPUFREE_BUILT_FOR)
  constexpr int kBuiltFor = CPUFREE_BUILT_FOR;
#else
  constexpr int kBuiltFor = kOldest;
#endif
  const int own = 10 * of.major + of.minor;
  const std::string has =
      "has compute capability " + std::to_string(of.major) + "." + std::to_string(of.minor);
  if (own < kOldest) return has + "; 8.0 or newer is needed";
  if (own < kBuiltFor)
    return has + ", and the kernels of this build are for " + std::to_string(kBuiltFor / 10) + "." +
           std::to_string(kBuiltFor % 10) +
           " and newer: build with CMAKE_CUDA_ARCHITECTURES=" + std::to_string(own) +
           ", or with CPUFREE_KERNELS=USUAL";
  return "";
}
