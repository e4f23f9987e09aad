// The names by which the program calls the GPU's runtime, for HIP: the same as those of
// cpufree/gpu/cuda/gpu_names.hpp. Compiled, never run on such a GPU.
#pragma once

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cpufree/gpu/hip/library.hpp"

inline constexpr const char* gpuPrefix = "hip";
inline constexpr const char* gpuRuntimeName = "HIP";
inline constexpr int gpuRuntimeVersion = HIP_VERSION;

using gpuError_t = hipError_t;
using gpuStream_t = hipStream_t;
using gpuEvent_t = hipEvent_t;
using gpuGraph_t = hipGraph_t;
using gpuGraphExec_t = hipGraphExec_t;
using gpuLoopHandle_t = unsigned long long;
using gpuLibrary_t = cpufree::gpu_hip::Library*;
using gpuIpcMemHandle_t = hipIpcMemHandle_t;
struct gpuFuncAttributes_t {
  std::size_t sharedSizeBytes;
};
struct gpuDeviceProp_t {
  char name[256];
  char gcnArchName[256];  // "gfx942:sramecc+:xnack-"
  std::size_t totalGlobalMem;
  int multiProcessorCount, major, minor, l2CacheSize;
  hipUUID uuid;
};

inline constexpr gpuError_t gpuSuccess = hipSuccess;
inline constexpr gpuError_t gpuErrorNotReady = hipErrorNotReady;
inline constexpr gpuError_t gpuErrorMemoryAllocation = hipErrorOutOfMemory;
inline constexpr gpuError_t gpuErrorPeerAccessAlreadyEnabled = hipErrorPeerAccessAlreadyEnabled;
inline constexpr gpuError_t gpuErrorInsufficientDriver = hipErrorInsufficientDriver;
inline constexpr gpuError_t gpuErrorNoDevice = hipErrorNoDevice;

// Errors after which every further call of the process fails.
inline bool gpuIsSticky(gpuError_t status) {
  switch (status) {
    case hipErrorIllegalAddress:
    case hipErrorLaunchFailure:
    case hipErrorLaunchTimeOut:
    case hipErrorECCNotCorrectable:
    case hipErrorAssert:
      return true;
    default:
      return false;
  }
}
inline const char* gpuGetErrorString(gpuError_t status) {
  using Text = const char*(hipError_t);
  static auto* const text = reinterpret_cast<Text*>(cpufree::gpu_hip::find("hipGetErrorString"));
  return text == nullptr ? "libamdhip64.so was not found: install ROCm" : text(status);
}
inline gpuError_t gpuGetLastError() { return CPUFREE_HIP_CALL(hipGetLastError, (void)); }
inline gpuError_t gpuDriverGetVersion(int* version) {
  return CPUFREE_HIP_CALL(hipDriverGetVersion, (int*), version);
}

// Devices.
inline gpuError_t gpuGetDeviceCount(int* count) {
  return CPUFREE_HIP_CALL(hipGetDeviceCount, (int*), count);
}
inline gpuError_t gpuGetDevice(int* device) { return cpufree::gpu_hip::current(device); }
inline gpuError_t gpuSetDevice(int device) { return CPUFREE_HIP_CALL(hipSetDevice, (int), device); }
inline gpuError_t gpuDeviceSynchronize() { return CPUFREE_HIP_CALL(hipDeviceSynchronize, (void)); }
inline gpuError_t gpuGetDeviceProperties(gpuDeviceProp_t* to, int device) {
  hipDeviceProp_t all;
  const gpuError_t status =
      CPUFREE_HIP_CALL(hipGetDeviceProperties, (hipDeviceProp_t*, int), &all, device);
  if (status != hipSuccess) return status;
  std::memcpy(to->name, all.name, sizeof to->name);
  std::memcpy(to->gcnArchName, all.gcnArchName, sizeof to->gcnArchName);
  to->totalGlobalMem = all.totalGlobalMem;
  to->multiProcessorCount = all.multiProcessorCount;
  to->major = all.major;
  to->minor = all.minor;
  to->l2CacheSize = all.l2CacheSize;
  return CPUFREE_HIP_CALL(hipDeviceGetUuid, (hipUUID*, hipDevice_t), &to->uuid, device);
}
inline gpuError_t gpuDeviceAttribute(int* value, hipDeviceAttribute_t which, int device) {
  return CPUFREE_HIP_CALL(hipDeviceGetAttribute, (int*, hipDeviceAttribute_t, int), value, which,
                          device);
}
inline gpuError_t gpuMultiprocessors(int* count, int device) {
  return gpuDeviceAttribute(count, hipDeviceAttributeMultiprocessorCount, device);
}
inline gpuError_t gpuSharedMemoryOfBlock(int* bytes, int device) {
  return gpuDeviceAttribute(bytes, hipDeviceAttributeMaxSharedMemoryPerBlock, device);
}
inline gpuError_t gpuSharedMemoryOfMultiprocessor(int* bytes, int device) {
  return gpuDeviceAttribute(bytes, hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, device);
}
inline gpuError_t gpuReservedSharedMemory(int* bytes, int) {
  *bytes = 0;
  return hipSuccess;
}
inline gpuError_t gpuCooperativeLaunch(int* offered, int device) {
  return gpuDeviceAttribute(offered, hipDeviceAttributeCooperativeLaunch, device);
}
inline gpuError_t gpuDeviceCanAccessPeer(int* reaches, int from, int to) {
  return CPUFREE_HIP_CALL(hipDeviceCanAccessPeer, (int*, int, int), reaches, from, to);
}
inline gpuError_t gpuDeviceEnablePeerAccess(int to, unsigned flags) {
  return CPUFREE_HIP_CALL(hipDeviceEnablePeerAccess, (int, unsigned), to, flags);
}
inline gpuError_t gpuPeerAtomics(int* offered, int from, int to) {
  return CPUFREE_HIP_CALL(hipDeviceGetP2PAttribute, (int*, hipDeviceP2PAttr, int, int), offered,
                          hipDevP2PAttrNativeAtomicSupported, from, to);
}
inline gpuError_t gpuStart() {
  return CPUFREE_HIP_CALL(hipFree, (void*), static_cast<void*>(nullptr));
}
inline gpuError_t gpuIsStarted(int* started, int device) {
  unsigned flags = 0;
  return CPUFREE_HIP_CALL(hipDevicePrimaryCtxGetState, (hipDevice_t, unsigned*, int*), device,
                          &flags, started);
}
// The device whose memory `p` is in; -1: of none.
inline gpuError_t gpuDeviceOf(int* device, const void* p) {
  void* const address = const_cast<void*>(p);
  *device = -1;
  hipMemoryType type{};
  const auto ask = [&](hipPointer_attribute what, void* to) {
    return CPUFREE_HIP_CALL(hipPointerGetAttribute, (void*, hipPointer_attribute, hipDeviceptr_t),
                            to, what, address);
  };
  const gpuError_t status = ask(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, &type);
  if (status != hipSuccess || type != hipMemoryTypeDevice) return status;
  return ask(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device);
}

// Memory. All of it is fine-grained: what other GPUs store while a kernel runs is not seen in any
// other, and this file does not know which of it they will store to.
inline constexpr auto gpuMemcpyDefault = hipMemcpyDefault;
inline gpuError_t gpuMalloc(void** p, std::size_t bytes) {
  return CPUFREE_HIP_CALL(hipExtMallocWithFlags, (void**, std::size_t, unsigned), p, bytes,
                          unsigned{hipDeviceMallocFinegrained});
}
inline gpuError_t gpuMallocManaged(void** p, std::size_t bytes) {
  return CPUFREE_HIP_CALL(hipMallocManaged, (void**, std::size_t, unsigned), p, bytes,
                          unsigned{hipMemAttachGlobal});
}
inline gpuError_t gpuFree(void* p) { return CPUFREE_HIP_CALL(hipFree, (void*), p); }
inline gpuError_t gpuFreeHost(void* p) { return CPUFREE_HIP_CALL(hipHostFree, (void*), p); }
inline gpuError_t gpuMemGetInfo(std::size_t* free, std::size_t* all) {
  return CPUFREE_HIP_CALL(hipMemGetInfo, (std::size_t*, std::size_t*), free, all);
}
inline gpuError_t gpuIpcGetMemHandle(gpuIpcMemHandle_t* handle, void* p) {
  return CPUFREE_HIP_CALL(hipIpcGetMemHandle, (hipIpcMemHandle_t*, void*), handle, p);
}
inline gpuError_t gpuIpcOpenMemHandle(void** p, gpuIpcMemHandle_t handle) {
  return CPUFREE_HIP_CALL(hipIpcOpenMemHandle, (void**, hipIpcMemHandle_t, unsigned), p, handle,
                          unsigned{hipIpcMemLazyEnablePeerAccess});
}
inline gpuError_t gpuIpcCloseMemHandle(void* p) {
  return CPUFREE_HIP_CALL(hipIpcCloseMemHandle, (void*), p);
}
inline gpuError_t gpuMemset(void* p, int value, std::size_t bytes) {
  return CPUFREE_HIP_CALL(hipMemset, (void*, int, std::size_t), p, value, bytes);
}
inline gpuError_t gpuMemsetAsync(void* p, int value, std::size_t bytes, gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipMemsetAsync, (void*, int, std::size_t, hipStream_t), p, value, bytes,
                          stream);
}
inline gpuError_t gpuMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  return CPUFREE_HIP_CALL(hipMemcpy, (void*, const void*, std::size_t, hipMemcpyKind), to, from,
                          bytes, kind);
}
inline gpuError_t gpuMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                 gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipMemcpyAsync,
                          (void*, const void*, std::size_t, hipMemcpyKind, hipStream_t), to, from,
                          bytes, kind, stream);
}
inline gpuError_t gpuMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                   std::size_t from_pitch, std::size_t width, std::size_t rows,
                                   hipMemcpyKind kind, gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipMemcpy2DAsync,
                          (void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t,
                           hipMemcpyKind, hipStream_t),
                          to, to_pitch, from, from_pitch, width, rows, kind, stream);
}
inline gpuError_t gpuMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                     std::size_t bytes, gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipMemcpyPeerAsync,
                          (void*, int, const void*, int, std::size_t, hipStream_t), to, to_device,
                          from, from_device, bytes, stream);
}
// Pinned, and at the same address for every GPU; not cached by GPUs.
inline gpuError_t gpuHostAlloc(void** p, std::size_t bytes) {
  return CPUFREE_HIP_CALL(hipHostMalloc, (void**, std::size_t, unsigned), p, bytes,
                          unsigned{hipHostMallocPortable});
}
inline gpuError_t gpuHostAllocMapped(void** p, std::size_t bytes) {
  return CPUFREE_HIP_CALL(
      hipHostMalloc, (void**, std::size_t, unsigned), p, bytes,
      unsigned{hipHostMallocPortable | hipHostMallocMapped | hipHostMallocCoherent});
}

// Streams and events.
inline gpuError_t gpuStreamCreate(gpuStream_t* stream) {
  return CPUFREE_HIP_CALL(hipStreamCreateWithFlags, (hipStream_t*, unsigned), stream,
                          unsigned{hipStreamNonBlocking});
}
inline gpuError_t gpuStreamCreateUrgent(gpuStream_t* stream) {
  int lowest = 0, highest = 0;
  const gpuError_t status =
      CPUFREE_HIP_CALL(hipDeviceGetStreamPriorityRange, (int*, int*), &lowest, &highest);
  if (status != hipSuccess) return status;
  return CPUFREE_HIP_CALL(hipStreamCreateWithPriority, (hipStream_t*, unsigned, int), stream,
                          unsigned{hipStreamNonBlocking}, highest);
}
inline gpuError_t gpuStreamDestroy(gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipStreamDestroy, (hipStream_t), stream);
}
inline gpuError_t gpuStreamQuery(gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipStreamQuery, (hipStream_t), stream);
}
inline gpuError_t gpuStreamSynchronize(gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipStreamSynchronize, (hipStream_t), stream);
}
inline gpuError_t gpuStreamWaitEvent(gpuStream_t stream, gpuEvent_t event, unsigned flags) {
  return CPUFREE_HIP_CALL(hipStreamWaitEvent, (hipStream_t, hipEvent_t, unsigned), stream, event,
                          flags);
}
inline gpuError_t gpuEventCreate(gpuEvent_t* event) {
  return CPUFREE_HIP_CALL(hipEventCreate, (hipEvent_t*), event);
}
inline gpuError_t gpuEventCreateUntimed(gpuEvent_t* event) {
  return CPUFREE_HIP_CALL(hipEventCreateWithFlags, (hipEvent_t*, unsigned), event,
                          unsigned{hipEventDisableTiming});
}
inline gpuError_t gpuEventDestroy(gpuEvent_t event) {
  return CPUFREE_HIP_CALL(hipEventDestroy, (hipEvent_t), event);
}
inline gpuError_t gpuEventRecord(gpuEvent_t event, gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipEventRecord, (hipEvent_t, hipStream_t), event, stream);
}
inline gpuError_t gpuEventQuery(gpuEvent_t event) {
  return CPUFREE_HIP_CALL(hipEventQuery, (hipEvent_t), event);
}
inline gpuError_t gpuEventSynchronize(gpuEvent_t event) {
  return CPUFREE_HIP_CALL(hipEventSynchronize, (hipEvent_t), event);
}
inline gpuError_t gpuEventElapsedTime(float* milliseconds, gpuEvent_t from, gpuEvent_t to) {
  return CPUFREE_HIP_CALL(hipEventElapsedTime, (float*, hipEvent_t, hipEvent_t), milliseconds, from,
                          to);
}
inline gpuError_t gpuStreamWaitWord(gpuStream_t stream, const void* address,
                                    unsigned long long value) {
  return CPUFREE_HIP_CALL(hipStreamWaitValue64,
                          (hipStream_t, void*, std::uint64_t, unsigned, std::uint64_t), stream,
                          const_cast<void*>(address), std::uint64_t{value},
                          unsigned{hipStreamWaitValueGte}, ~std::uint64_t{0});
}
inline gpuError_t gpuStreamWriteWord(gpuStream_t stream, void* address, unsigned long long value) {
  return CPUFREE_HIP_CALL(hipStreamWriteValue64, (hipStream_t, void*, std::uint64_t, unsigned),
                          stream, address, std::uint64_t{value}, 0U);
}

// Graphs. There are no loops in HIP's.
inline gpuError_t gpuStreamBeginCapture(gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipStreamBeginCapture, (hipStream_t, hipStreamCaptureMode), stream,
                          hipStreamCaptureModeThreadLocal);
}
inline gpuError_t gpuStreamBeginCaptureInto(gpuStream_t, gpuGraph_t) {
  return hipErrorNotSupported;
}
inline gpuError_t gpuStreamEndCapture(gpuStream_t stream, gpuGraph_t* graph) {
  return CPUFREE_HIP_CALL(hipStreamEndCapture, (hipStream_t, hipGraph_t*), stream, graph);
}
inline gpuError_t gpuGraphCreate(gpuGraph_t* graph, unsigned flags) {
  return CPUFREE_HIP_CALL(hipGraphCreate, (hipGraph_t*, unsigned), graph, flags);
}
inline gpuError_t gpuGraphDestroy(gpuGraph_t graph) {
  return CPUFREE_HIP_CALL(hipGraphDestroy, (hipGraph_t), graph);
}
inline gpuError_t gpuGraphInstantiate(gpuGraphExec_t* exec, gpuGraph_t graph) {
  return CPUFREE_HIP_CALL(
      hipGraphInstantiate, (hipGraphExec_t*, hipGraph_t, hipGraphNode_t*, char*, std::size_t), exec,
      graph, static_cast<hipGraphNode_t*>(nullptr), static_cast<char*>(nullptr), std::size_t{0});
}
inline gpuError_t gpuGraphExecDestroy(gpuGraphExec_t exec) {
  return CPUFREE_HIP_CALL(hipGraphExecDestroy, (hipGraphExec_t), exec);
}
inline gpuError_t gpuGraphLaunch(gpuGraphExec_t exec, gpuStream_t stream) {
  return CPUFREE_HIP_CALL(hipGraphLaunch, (hipGraphExec_t, hipStream_t), exec, stream);
}
// An upload only makes the first launch sooner.
inline gpuError_t gpuGraphUpload(gpuGraphExec_t, gpuStream_t) { return hipSuccess; }
inline gpuError_t gpuGraphLoopHandle(gpuLoopHandle_t*, gpuGraph_t) { return hipErrorNotSupported; }
inline gpuError_t gpuGraphAddLoop(gpuGraph_t, gpuLoopHandle_t, gpuGraph_t*) {
  return hipErrorNotSupported;
}

// Kernels, as a library has them: all are compiled when they are first used.
inline gpuError_t gpuFuncGetAttributes(gpuFuncAttributes_t* attributes, const void* kernel) {
  hipFunction_t function = nullptr;
  int bytes = 0;
  gpuError_t status = cpufree::gpu_hip::function_of(kernel, &function);
  if (status == hipSuccess)
    status = CPUFREE_HIP_CALL(hipFuncGetAttribute, (int*, hipFunction_attribute, hipFunction_t),
                              &bytes, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  attributes->sharedSizeBytes = static_cast<std::size_t>(bytes);
  return status;
}
// A launch says how much it wants, of what a block may have, and fails where that is too much.
inline gpuError_t gpuFuncSetSharedMemory(const void* kernel, std::size_t) {
  hipFunction_t function = nullptr;
  return cpufree::gpu_hip::function_of(kernel, &function);
}
// Shared memory is not taken from a cache.
inline gpuError_t gpuFuncPreferSharedMemory(const void*, int) { return hipSuccess; }
inline gpuError_t gpuOccupancyMaxActiveBlocks(int* blocks, const void* kernel, int threads,
                                              std::size_t shared_bytes) {
  hipFunction_t function = nullptr;
  const gpuError_t status = cpufree::gpu_hip::function_of(kernel, &function);
  if (status != hipSuccess) return status;
  return CPUFREE_HIP_CALL(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor,
                          (int*, hipFunction_t, int, std::size_t), blocks, function, threads,
                          shared_bytes);
}
inline gpuError_t gpuLaunchCooperativeKernel(const void* kernel, int blocks, int threads,
                                             void** arguments, std::size_t shared_bytes,
                                             gpuStream_t stream) {
  hipFunction_t function = nullptr;
  const gpuError_t status = cpufree::gpu_hip::function_of(kernel, &function);
  if (status != hipSuccess) return status;
  const auto x = static_cast<unsigned>(blocks), lanes = static_cast<unsigned>(threads);
  return CPUFREE_HIP_LATER(hipModuleLaunchCooperativeKernel,
                           (hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, unsigned, hipStream_t, void**),
                           function, x, 1U, 1U, lanes, 1U, 1U, static_cast<unsigned>(shared_bytes),
                           stream, arguments);
}
inline gpuError_t gpuLaunchGrid(const void* kernel, int blocks, int threads, void** arguments,
                                std::size_t shared_bytes, gpuStream_t stream) {
  hipFunction_t function = nullptr;
  const gpuError_t status = cpufree::gpu_hip::function_of(kernel, &function);
  if (status != hipSuccess) return status;
  const auto x = static_cast<unsigned>(blocks), lanes = static_cast<unsigned>(threads);
  return CPUFREE_HIP_CALL(hipModuleLaunchKernel,
                          (hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, unsigned, hipStream_t, void**, void**),
                          function, x, 1U, 1U, lanes, 1U, 1U, static_cast<unsigned>(shared_bytes),
                          stream, arguments, static_cast<void**>(nullptr));
}
inline gpuError_t gpuLaunchKernel(const void* kernel, unsigned blocks, int threads,
                                  void** arguments, gpuStream_t stream) {
  return gpuLaunchGrid(kernel, static_cast<int>(blocks), threads, arguments, 0, stream);
}
inline gpuError_t gpuLibraryLoadData(gpuLibrary_t* library, const void* code, std::size_t bytes) {
  *library = new cpufree::gpu_hip::Library(std::string(static_cast<const char*>(code), bytes));
  return hipSuccess;
}
inline gpuError_t gpuLibraryLoad(gpuLibrary_t* library, const char* file) {
  std::ifstream in(file, std::ios::binary);
  const std::string code(std::istreambuf_iterator<char>(in), {});
  if (code.empty()) return hipErrorFileNotFound;
  return gpuLibraryLoadData(library, code.data(), code.size());
}
inline gpuError_t gpuLibraryGetKernel(const void** kernel, gpuLibrary_t library, const char* name) {
  return library->find(kernel, name);
}
inline gpuError_t gpuLibraryGetVariable(void** begin, std::size_t* bytes, gpuLibrary_t library,
                                        const char* name) {
  return library->variable(begin, bytes, name);
}

// While the host waits for memory that a GPU writes.
inline void gpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
