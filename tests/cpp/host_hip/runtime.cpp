// A stand-in of libamdhip64.so on the host, for tests of the engine for AMD's GPUs: HIP's functions
// by those of host_gpu. Devices and memory; streams.cpp has the others.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "hip_names.hpp"

using host_hip::status_of;

namespace host_hip {

const char* setting(const char* name, const char* otherwise) {
  const char* const given = std::getenv(("CPUFREE_STANDIN_" + std::string(name)).c_str());
  return given != nullptr ? given : otherwise;
}

}  // namespace host_hip

namespace {

// When the first function is called: host_gpu has settings of its own before.
void prepare() {
  static const bool once = [] {
    host_gpu::Settings settings;
    settings.devices = std::atoi(host_hip::setting("DEVICES", "2"));
    settings.peers = std::string(host_hip::setting("PEERS", "1")) == "1";
    settings.memory = std::size_t{64} << 30;
    host_gpu::configure(settings);
    return true;
  }();
  static_cast<void>(once);
}

constexpr int kSharedOfBlock = 64 << 10;  // LDS of gfx90a and gfx942

}  // namespace

extern "C" {

const char* hipGetErrorString(hipError_t status) {
  switch (status) {
    case hipSuccess:
      return "no error";
    case hipErrorNoDevice:
      return "no ROCm-capable device is detected";
    case hipErrorNoBinaryForGpu:
      return "no kernel image is available for execution on the device";
    case hipErrorNotFound:
      return "named symbol not found";
    case hipErrorOutOfMemory:
      return "out of memory";
    default:
      return "error of the stand-in";
  }
}
hipError_t hipGetLastError(void) { return status_of(gpuGetLastError()); }
hipError_t hipDriverGetVersion(int* version) {
  *version = HIP_VERSION;
  return hipSuccess;
}
hipError_t hipGetDeviceCount(int* count) {
  prepare();
  static_cast<void>(gpuGetDeviceCount(count));
  return *count == 0 ? hipErrorNoDevice : hipSuccess;
}
hipError_t hipGetDevice(int* device) { return status_of(gpuGetDevice(device)); }
hipError_t hipSetDevice(int device) { return status_of(gpuSetDevice(device)); }
hipError_t hipDeviceSynchronize(void) { return status_of(gpuDeviceSynchronize()); }
hipError_t hipGetDeviceProperties(hipDeviceProp_t* to, int device) {
  gpuDeviceProp_t own;
  static_cast<void>(gpuGetDeviceProperties(&own, device));
  *to = {};
  std::snprintf(to->name, sizeof to->name, "AMD Instinct (stand-in)");
  std::snprintf(to->gcnArchName, sizeof to->gcnArchName, "%s:sramecc+:xnack-",
                host_hip::setting("ARCH", "gfx942"));
  to->totalGlobalMem = own.totalGlobalMem;
  to->multiProcessorCount = own.multiProcessorCount;
  to->major = std::strncmp(to->gcnArchName, "gfx9", 4) == 0 ? 9 : 11;
  to->minor = to->gcnArchName[4] == '4' ? 4 : 0;
  to->l2CacheSize = 4 << 20;
  return hipSuccess;
}
hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device) {
  std::memset(uuid, 0, sizeof *uuid);
  uuid->bytes[0] = static_cast<char>(device + 1);
  return hipSuccess;
}
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t which, int device) {
  switch (which) {
    case hipDeviceAttributeMultiprocessorCount:
      return status_of(gpuMultiprocessors(value, device));
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      *value = kSharedOfBlock;
      return hipSuccess;
    case hipDeviceAttributeCooperativeLaunch:
      *value = 1;
      return hipSuccess;
    default:
      return hipErrorInvalidValue;
  }
}
hipError_t hipDeviceCanAccessPeer(int* reaches, int from, int to) {
  return status_of(gpuDeviceCanAccessPeer(reaches, from, to));
}
hipError_t hipDeviceEnablePeerAccess(int to, unsigned flags) {
  return status_of(gpuDeviceEnablePeerAccess(to, flags));
}
hipError_t hipDeviceGetP2PAttribute(int* value, hipDeviceP2PAttr which, int from, int to) {
  if (which != hipDevP2PAttrNativeAtomicSupported) return hipErrorInvalidValue;
  return status_of(gpuPeerAtomics(value, from, to));
}
hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned*, int* active) {
  return status_of(gpuIsStarted(active, device));
}
hipError_t hipPointerGetAttribute(void* data, hipPointer_attribute which, hipDeviceptr_t p) {
  int device = -1;
  static_cast<void>(gpuDeviceOf(&device, p));
  if (device < 0) return hipErrorInvalidValue;
  if (which == HIP_POINTER_ATTRIBUTE_MEMORY_TYPE)
    *static_cast<hipMemoryType*>(data) = hipMemoryTypeDevice;
  else
    *static_cast<int*>(data) = device;
  return hipSuccess;
}

// Memory that other GPUs store into must be fine-grained.
hipError_t hipExtMallocWithFlags(void** p, std::size_t bytes, unsigned flags) {
  if (flags != hipDeviceMallocFinegrained) return hipErrorInvalidValue;
  return status_of(gpuMalloc(p, bytes));
}
hipError_t hipMallocManaged(void** p, std::size_t bytes, unsigned) {
  return status_of(gpuMallocManaged(p, bytes));
}
hipError_t hipFree(void* p) { return status_of(p == nullptr ? gpuStart() : gpuFree(p)); }
hipError_t hipHostMalloc(void** p, std::size_t bytes, unsigned) {
  return status_of(gpuHostAlloc(p, bytes));
}
hipError_t hipHostFree(void* p) { return status_of(gpuFreeHost(p)); }
hipError_t hipMemGetInfo(std::size_t* free, std::size_t* all) {
  return status_of(gpuMemGetInfo(free, all));
}
hipError_t hipMemset(void* p, int value, std::size_t bytes) {
  return status_of(gpuMemset(p, value, bytes));
}
hipError_t hipMemsetAsync(void* p, int value, std::size_t bytes, hipStream_t stream) {
  return status_of(gpuMemsetAsync(p, value, bytes, host_hip::own(stream)));
}
hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  return status_of(gpuMemcpy(to, from, bytes, kind));
}
hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream) {
  return status_of(gpuMemcpyAsync(to, from, bytes, kind, host_hip::own(stream)));
}
hipError_t hipMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                            std::size_t from_pitch, std::size_t width, std::size_t rows,
                            hipMemcpyKind kind, hipStream_t stream) {
  return status_of(
      gpuMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kind, host_hip::own(stream)));
}
hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              std::size_t bytes, hipStream_t stream) {
  return status_of(
      gpuMemcpyPeerAsync(to, to_device, from, from_device, bytes, host_hip::own(stream)));
}

}  // extern "C"
