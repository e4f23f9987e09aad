// HIP's own declarations beside those of the stand-in of a GPU's runtime, and what becomes of one
// in the other.
#pragma once

#if !defined(__HIP_PLATFORM_AMD__)
#define __HIP_PLATFORM_AMD__
#endif
#if !defined(__HIP_PLATFORM_HCC__)  // of ROCm 5
#define __HIP_PLATFORM_HCC__
#endif
#include <hip/hip_runtime_api.h>

#include "gpu_names.hpp"

namespace host_hip {

inline hipError_t status_of(gpuError_t status) {
  switch (status) {
    case gpuSuccess:
      return hipSuccess;
    case gpuErrorMemoryAllocation:
      return hipErrorOutOfMemory;
    case gpuErrorNotReady:
      return hipErrorNotReady;
    case gpuErrorInvalidDevice:
      return hipErrorInvalidDevice;
    case gpuErrorInvalidResourceHandle:
      return hipErrorInvalidHandle;
    case gpuErrorPeerAccessUnsupported:
      return hipErrorPeerAccessUnsupported;
    case gpuErrorLaunchFailure:
      return hipErrorLaunchFailure;
    default:
      return hipErrorInvalidValue;
  }
}

inline gpuStream_t own(hipStream_t stream) { return reinterpret_cast<gpuStream_t>(stream); }
inline gpuEvent_t own(hipEvent_t event) { return reinterpret_cast<gpuEvent_t>(event); }
inline gpuStream_t* own(hipStream_t* stream) { return reinterpret_cast<gpuStream_t*>(stream); }
inline gpuEvent_t* own(hipEvent_t* event) { return reinterpret_cast<gpuEvent_t*>(event); }

// As the environment has it: CPUFREE_STANDIN_DEVICES, their number (2), CPUFREE_STANDIN_ARCH
// (gfx942), CPUFREE_STANDIN_PEERS (1).
const char* setting(const char* name, const char* otherwise);

}  // namespace host_hip
