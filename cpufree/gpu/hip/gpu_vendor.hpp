// What the program says of the vendor's GPUs, and which of them it serves.
#pragma once

#include <gpu_compiler.hpp>
#include <gpu_names.hpp>

#include <string>

inline constexpr const char* gpuVendor = "AMD";
inline constexpr const char* gpuLister = "rocminfo";
inline constexpr const char* gpuVisibleVariable = "HIP_VISIBLE_DEVICES (or ROCR_VISIBLE_DEVICES)";
inline constexpr const char* gpuLinkAdvice =
    "Infinity Fabric (rocm-smi --showtopo shows which are)";
// Its library of collectives among GPUs.
inline constexpr const char* gpuCollectives = "RCCL";
inline constexpr const char* gpuCollectivesFile = "librccl.so.1";
inline constexpr const char* gpuCollectivesAdvice = "install ROCm's package rccl";

inline std::string gpuVersionText(int version) {  // 60241133 -> "6.2"
  return std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100);
}

// What kernels for the GPU are called after.
inline std::string gpuKindOf(const gpuDeviceProp_t& of) { return gpuArchitecture(of); }

// "" if there are kernels for it; else what it is, and what is needed, behind its name. Others have
// waves of 32 threads, or instructions by which no kernel has been checked.
inline std::string gpuFlawOf(const gpuDeviceProp_t& of) {
  const std::string own = gpuKindOf(of);
  if (own == "gfx90a" || own == "gfx942") return "";
  return "is of architecture " + own + "; kernels are for gfx90a (MI200) and gfx942 (MI300)";
}
