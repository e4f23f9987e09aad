// The names by which the program calls the GPU's runtime: the one file that knows CUDA's. A runtime
// of another vendor is a folder with a file of this name and these functions; which one is taken is
// up to the include path. The tests have one for the host (tests/cpp/host_gpu).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

// For messages: how the vendor's functions begin, and what the vendor calls the whole.
inline constexpr const char* gpuPrefix = "cuda";
inline constexpr const char* gpuRuntimeName = "CUDA";
// The version that the program is built with, and linked to.
inline constexpr int gpuRuntimeVersion = CUDART_VERSION;

using gpuError_t = cudaError_t;
using gpuStream_t = cudaStream_t;
using gpuEvent_t = cudaEvent_t;
using gpuGraph_t = cudaGraph_t;
using gpuGraphExec_t = cudaGraphExec_t;
using gpuLoopHandle_t = cudaGraphConditionalHandle;
using gpuLibrary_t = cudaLibrary_t;
using gpuDeviceProp_t = cudaDeviceProp;
using gpuIpcMemHandle_t = cudaIpcMemHandle_t;
using gpuFuncAttributes_t = cudaFuncAttributes;

inline constexpr gpuError_t gpuSuccess = cudaSuccess;
inline constexpr gpuError_t gpuErrorNotReady = cudaErrorNotReady;
inline constexpr gpuError_t gpuErrorMemoryAllocation = cudaErrorMemoryAllocation;
inline constexpr gpuError_t gpuErrorPeerAccessAlreadyEnabled = cudaErrorPeerAccessAlreadyEnabled;
inline constexpr gpuError_t gpuErrorInsufficientDriver = cudaErrorInsufficientDriver;
inline constexpr gpuError_t gpuErrorNoDevice = cudaErrorNoDevice;

// Errors after which every further call of the process fails.
inline bool gpuIsSticky(gpuError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

#define gpuGetErrorString cudaGetErrorString
#define gpuGetLastError cudaGetLastError
#define gpuDriverGetVersion cudaDriverGetVersion

// Devices.
#define gpuGetDeviceCount cudaGetDeviceCount
#define gpuGetDevice cudaGetDevice
#define gpuSetDevice cudaSetDevice
#define gpuGetDeviceProperties cudaGetDeviceProperties
#define gpuDeviceSynchronize cudaDeviceSynchronize
#define gpuDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define gpuDeviceEnablePeerAccess cudaDeviceEnablePeerAccess
inline gpuError_t gpuMultiprocessors(int* count, int device) {
  return cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}
// Bytes of shared memory that a block may have.
inline gpuError_t gpuSharedMemoryOfBlock(int* bytes, int device) {
  return cudaDeviceGetAttribute(bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
}
inline gpuError_t gpuSharedMemoryOfMultiprocessor(int* bytes, int device) {
  return cudaDeviceGetAttribute(bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
}
inline gpuError_t gpuReservedSharedMemory(int* bytes, int device) {
  return cudaDeviceGetAttribute(bytes, cudaDevAttrReservedSharedMemoryPerBlock, device);
}
inline gpuError_t gpuCooperativeLaunch(int* offered, int device) {
  return cudaDeviceGetAttribute(offered, cudaDevAttrCooperativeLaunch, device);
}
inline gpuError_t gpuPeerAtomics(int* offered, int from, int to) {
  return cudaDeviceGetP2PAttribute(offered, cudaDevP2PAttrNativeAtomicSupported, from, to);
}
// Starts the runtime on the device that is current.
inline gpuError_t gpuStart() { return cudaFree(nullptr); }
// Whether the runtime has been started on a device in this process. The driver's
// function is asked for by name: nothing is linked with the driver, which may be missing.
inline gpuError_t gpuIsStarted(int* started, int device) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const gpuError_t status = cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &entry,
                                                             12000, cudaEnableDefault, &found);
  if (status != cudaSuccess) return status;
  *started = 0;
  if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
  unsigned flags = 0;
  // Devices have the same numbers in the driver: both count what CUDA_VISIBLE_DEVICES leaves.
  const auto ask = reinterpret_cast<int (*)(int, unsigned*, int*)>(entry);
  return static_cast<gpuError_t>(ask(device, &flags, started));
}
// The device whose memory `p` is in; -1: of none.
inline gpuError_t gpuDeviceOf(int* device, const void* p) {
  cudaPointerAttributes attributes{};
  const gpuError_t status = cudaPointerGetAttributes(&attributes, p);
  const bool there =
      attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  *device = status == cudaSuccess && there ? attributes.device : -1;
  return status;
}

// Memory. Copies know from the addresses which way they go.
inline constexpr auto gpuMemcpyDefault = cudaMemcpyDefault;
#define gpuMalloc cudaMalloc
#define gpuFree cudaFree
#define gpuFreeHost cudaFreeHost
#define gpuMemGetInfo cudaMemGetInfo
// Memory of another process.
#define gpuIpcGetMemHandle cudaIpcGetMemHandle
#define gpuIpcCloseMemHandle cudaIpcCloseMemHandle
inline gpuError_t gpuIpcOpenMemHandle(void** p, gpuIpcMemHandle_t handle) {
  return cudaIpcOpenMemHandle(p, handle, cudaIpcMemLazyEnablePeerAccess);
}
// Pages that move to the processor that uses them.
inline gpuError_t gpuMallocManaged(void** p, std::size_t bytes) {
  return cudaMallocManaged(p, bytes, cudaMemAttachGlobal);
}
#define gpuMemset cudaMemset
#define gpuMemsetAsync cudaMemsetAsync
#define gpuMemcpy cudaMemcpy
#define gpuMemcpyAsync cudaMemcpyAsync
#define gpuMemcpy2DAsync cudaMemcpy2DAsync
#define gpuMemcpyPeerAsync cudaMemcpyPeerAsync
// Pinned, and at the same address for every GPU.
inline gpuError_t gpuHostAlloc(void** p, std::size_t bytes) {
  return cudaHostAlloc(p, bytes, cudaHostAllocPortable);
}
// Reached by kernels, too.
inline gpuError_t gpuHostAllocMapped(void** p, std::size_t bytes) {
  return cudaHostAlloc(p, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
}

// Streams and events.
#define gpuStreamDestroy cudaStreamDestroy
#define gpuStreamQuery cudaStreamQuery
#define gpuStreamSynchronize cudaStreamSynchronize
#define gpuStreamWaitEvent cudaStreamWaitEvent
#define gpuEventCreate cudaEventCreate
#define gpuEventDestroy cudaEventDestroy
#define gpuEventRecord cudaEventRecord
#define gpuEventQuery cudaEventQuery
#define gpuEventSynchronize cudaEventSynchronize
#define gpuEventElapsedTime cudaEventElapsedTime
// One that waits for no other stream.
inline gpuError_t gpuStreamCreate(gpuStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}
// Highest priority: what it carries is short, and others wait for it.
inline gpuError_t gpuStreamCreateUrgent(gpuStream_t* stream) {
  int lowest = 0;
  int highest = 0;
  const gpuError_t status = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
  return status != cudaSuccess
             ? status
             : cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, highest);
}
inline gpuError_t gpuEventCreateUntimed(gpuEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}

// Words of memory that streams wait for and write: functions of the driver, asked for by name.
// `address`: of a device's memory, or of mapped memory of the host.
inline gpuError_t gpuDriverFunction(void** entry, const char* name) {
  cudaDriverEntryPointQueryResult found{};
  const gpuError_t status =
      cudaGetDriverEntryPointByVersion(name, entry, 12000, cudaEnableDefault, &found);
  return status != cudaSuccess || found == cudaDriverEntryPointSuccess ? status
                                                                       : cudaErrorNotSupported;
}
using gpuStreamWordCall = int(gpuStream_t, unsigned long long, unsigned long long, unsigned);
inline gpuError_t gpuStreamWordFunction(gpuStreamWordCall** call, const char* name) {
  void* entry = nullptr;
  const gpuError_t status = gpuDriverFunction(&entry, name);
  *call = reinterpret_cast<gpuStreamWordCall*>(entry);
  return status;
}
// The driver's numbers of errors are the runtime's. What follows in the stream waits until the word
// is `value` or more, in differences of signed 64 bits.
inline gpuError_t gpuStreamWaitWord(gpuStream_t stream, const void* address,
                                    unsigned long long value) {
  static gpuStreamWordCall* call = nullptr;
  static const gpuError_t found = gpuStreamWordFunction(&call, "cuStreamWaitValue64");
  constexpr unsigned kAtLeast = 0;
  return found != cudaSuccess
             ? found
             : static_cast<gpuError_t>(
                   call(stream, reinterpret_cast<unsigned long long>(address), value, kAtLeast));
}
// Once earlier work of the stream has ended; its results are visible to readers of the word.
inline gpuError_t gpuStreamWriteWord(gpuStream_t stream, void* address, unsigned long long value) {
  static gpuStreamWordCall* call = nullptr;
  static const gpuError_t found = gpuStreamWordFunction(&call, "cuStreamWriteValue64");
  return found != cudaSuccess
             ? found
             : static_cast<gpuError_t>(
                   call(stream, reinterpret_cast<unsigned long long>(address), value, 0U));
}

// Graphs.
#define gpuStreamEndCapture cudaStreamEndCapture
#define gpuGraphCreate cudaGraphCreate
#define gpuGraphDestroy cudaGraphDestroy
#define gpuGraphExecDestroy cudaGraphExecDestroy
#define gpuGraphLaunch cudaGraphLaunch
#define gpuGraphUpload cudaGraphUpload
#define gpuGraphSetLoop cudaGraphSetConditional  // in a kernel: the handle's value
// Other threads go on calling the runtime meanwhile.
inline gpuError_t gpuStreamBeginCapture(gpuStream_t stream) {
  return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
}
inline gpuError_t gpuStreamBeginCaptureInto(gpuStream_t stream, gpuGraph_t graph) {
  return cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                       cudaStreamCaptureModeThreadLocal);
}
inline gpuError_t gpuGraphInstantiate(gpuGraphExec_t* exec, gpuGraph_t graph) {
  return cudaGraphInstantiate(exec, graph, 0);
}
// A loop in `graph`: `body` runs as long as the handle's value is not 0; it is 1 at every launch.
inline gpuError_t gpuGraphAddLoop(gpuGraph_t graph, gpuLoopHandle_t handle, gpuGraph_t* body) {
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  const gpuError_t status = cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params);
  if (status == cudaSuccess) *body = params.conditional.phGraph_out[0];
  return status;
}
inline gpuError_t gpuGraphLoopHandle(gpuLoopHandle_t* handle, gpuGraph_t graph) {
  return cudaGraphConditionalHandleCreate(handle, graph, 1, cudaGraphCondAssignDefault);
}

// Kernels, by the addresses of their host functions or as a library has them.
#define gpuFuncGetAttributes cudaFuncGetAttributes
#define gpuOccupancyMaxActiveBlocks cudaOccupancyMaxActiveBlocksPerMultiprocessor
inline gpuError_t gpuFuncSetSharedMemory(const void* kernel, std::size_t bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}
// How much of a multiprocessor's memory is shared memory, at least, in percent of the most there
// may be; the rest is its L1 cache.
inline gpuError_t gpuFuncPreferSharedMemory(const void* kernel, int percent) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, percent);
}
// All blocks are resident together, or it fails.
inline gpuError_t gpuLaunchCooperativeKernel(const void* kernel, int blocks, int threads,
                                             void** arguments, std::size_t shared_bytes,
                                             gpuStream_t stream) {
  return cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                                     dim3(static_cast<unsigned>(threads)), arguments, shared_bytes,
                                     stream);
}
// The same without that promise: the blocks begin as they find room.
inline gpuError_t gpuLaunchGrid(const void* kernel, int blocks, int threads, void** arguments,
                                std::size_t shared_bytes, gpuStream_t stream) {
  return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                          dim3(static_cast<unsigned>(threads)), arguments, shared_bytes, stream);
}
inline gpuError_t gpuLaunchKernel(const void* kernel, unsigned blocks, int threads,
                                  void** arguments, gpuStream_t stream) {
  return cudaLaunchKernel(kernel, dim3(blocks), dim3(static_cast<unsigned>(threads)), arguments, 0,
                          stream);
}
inline gpuError_t gpuLibraryLoad(gpuLibrary_t* library, const char* file) {
  return cudaLibraryLoadFromFile(library, file, nullptr, nullptr, 0, nullptr, nullptr, 0);
}
// Of machine code in memory, which is copied.
inline gpuError_t gpuLibraryLoadData(gpuLibrary_t* library, const void* code, std::size_t) {
  return cudaLibraryLoadData(library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}
inline gpuError_t gpuLibraryGetKernel(const void** kernel, gpuLibrary_t library, const char* name) {
  cudaKernel_t found = nullptr;
  const gpuError_t status = cudaLibraryGetKernel(&found, library, name);
  *kernel = found;
  return status;
}
inline gpuError_t gpuLibraryGetVariable(void** begin, std::size_t* bytes, gpuLibrary_t library,
                                        const char* name) {
  return cudaLibraryGetGlobal(begin, bytes, library, name);
}

// While the host waits for memory that a GPU writes.
inline void gpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
