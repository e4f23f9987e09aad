// What the program says of the stand-in's GPUs.
#pragma once

#include <string>

#include "gpu_names.hpp"

inline constexpr const char* gpuVendor = "host";
inline constexpr const char* gpuLister = "the test";
inline constexpr const char* gpuVisibleVariable = "its settings";
inline constexpr const char* gpuLinkAdvice = "memory";
// Its library of collectives among GPUs.
inline constexpr const char* gpuCollectives = "NCCL";
inline constexpr const char* gpuCollectivesFile = "libnccl.so.2";
inline constexpr const char* gpuCollectivesAdvice = "pip install nvidia-nccl-cu13";
inline std::string gpuVersionText(int version) { return std::to_string(version); }
inline std::string gpuKindOf(const gpuDeviceProp_t&) { return ""; }
inline std::string gpuFlawOf(const gpuDeviceProp_t&) { return ""; }
