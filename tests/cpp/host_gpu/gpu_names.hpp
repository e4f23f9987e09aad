// A GPU runtime on the host, for tests: the names of cpufree/gpu/cuda/gpu_names.hpp.
//
// Streams are queues. In deferred mode nothing runs when it is launched: whenever the program calls
// the runtime, some queues go on, drawn from a seed, and a thread that waits makes them go on. Any
// order that streams and events allow can come up, so a missing event shows as a wrong result in
// some schedule. Graphs run their nodes in any order that their edges allow. Kernels by address,
// those of the engines, run on threads of their own (engine_launch.cpp). New memory holds nonsense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

inline constexpr const char* gpuPrefix = "gpu";
inline constexpr const char* gpuRuntimeName = "the stand-in";
inline constexpr int gpuRuntimeVersion = 13000;

enum gpuError_t {
  gpuSuccess = 0,
  gpuErrorInvalidValue,
  gpuErrorMemoryAllocation,
  gpuErrorNotReady,
  gpuErrorPeerAccessAlreadyEnabled,
  gpuErrorInvalidDevice,
  gpuErrorInvalidResourceHandle,  // a stream or event of another device than the current one
  gpuErrorPeerAccessUnsupported,
  gpuErrorCaptureUnsupported,
  gpuErrorCaptureUnjoined,
  gpuErrorLaunchFailure,
  gpuErrorSymbolNotFound,
  gpuErrorInsufficientDriver,
  gpuErrorNoDevice,
};
inline bool gpuIsSticky(gpuError_t) { return false; }

namespace host_gpu {

// A piece of work of a stream, or a node of a graph: `run` once `ready`; or `body` as long as the
// word of `loop` is not 0.
struct Work {
  std::function<bool()> ready;  // empty: always
  std::function<void()> run;
  std::vector<std::size_t> after;  // nodes of the same graph
  int device = 0;
  std::shared_ptr<std::vector<Work>> body;
  std::shared_ptr<unsigned> loop;
};
using Nodes = std::vector<Work>;

struct Stream;
struct Event;
struct Graph {
  std::shared_ptr<Nodes> nodes = std::make_shared<Nodes>();
  bool owned = true;
};

// What the tests set and ask.
struct Settings {
  int devices = 4;
  bool peers = true;  // devices reach one another's memory
  bool deferred = false;
  unsigned seed = 1;
  bool ignore_waits = false;      // for events and NVSHMEM's signals: schedules must then go wrong
  std::size_t sparse_buffer = 8;  // bytes that the sparse library asks for
  bool peer_words = true;         // streams write words of other devices
  int small = -1;                 // a device with one multiprocessor, and less memory on chip
  bool peer_memory = true;        // the driver has room for one more device that is reached
  std::size_t memory = std::size_t{1} << 36;  // of a device, of which none is ever taken
  int multiprocessors = 2;
};
// Nothing may be under way.
void configure(const Settings& settings);
// Nothing runs on a device any more once `after` kernels and copies have run, until `configure`.
void stop_device(int device, std::size_t after);
// Launches on a device fail once `after` kernels and copies have run, until `configure`.
void break_device(int device, std::size_t after);
// Kernels, copies and collectives that ran since `configure`.
std::size_t executed();
// The most bytes of devices' memory that were taken at once since `configure`.
std::size_t most_taken();
// Those of one device that are taken now.
std::size_t taken_on(int device);
// The bytes of each of its arrays.
std::vector<std::size_t> arrays_on(int device);
// Devices on which this process has had a context since `configure`.
std::set<int> contexts();

gpuError_t launch(Stream* stream, Work work);
int device_of(const Stream* stream);
std::size_t sparse_buffer();

}  // namespace host_gpu

using gpuStream_t = host_gpu::Stream*;
using gpuEvent_t = host_gpu::Event*;
using gpuGraph_t = host_gpu::Graph*;
using gpuGraphExec_t = host_gpu::Graph*;
using gpuLoopHandle_t = std::shared_ptr<unsigned>;
using gpuLibrary_t = void*;
struct gpuDeviceProp_t {
  char name[32];
  std::size_t totalGlobalMem;
  int multiProcessorCount, major, minor, l2CacheSize;
  struct {
    char bytes[16];
  } uuid;
};
struct gpuFuncAttributes_t {
  std::size_t sharedSizeBytes;
};
inline constexpr int gpuMemcpyDefault = 4;

const char* gpuGetErrorString(gpuError_t status);
gpuError_t gpuGetLastError();
gpuError_t gpuDriverGetVersion(int* version);
gpuError_t gpuGetDeviceCount(int* count);
gpuError_t gpuGetDevice(int* device);
gpuError_t gpuSetDevice(int device);
gpuError_t gpuStart();
gpuError_t gpuDeviceSynchronize();
gpuError_t gpuGetDeviceProperties(gpuDeviceProp_t* properties, int device);
gpuError_t gpuDeviceCanAccessPeer(int* reaches, int from, int to);
gpuError_t gpuDeviceEnablePeerAccess(int to, unsigned flags);
gpuError_t gpuPeerAtomics(int* offered, int from, int to);
gpuError_t gpuMultiprocessors(int* count, int device);
gpuError_t gpuSharedMemoryOfBlock(int* bytes, int device);
gpuError_t gpuSharedMemoryOfMultiprocessor(int* bytes, int device);
gpuError_t gpuReservedSharedMemory(int* bytes, int device);
gpuError_t gpuCooperativeLaunch(int* offered, int device);
gpuError_t gpuIsStarted(int* started, int device);
gpuError_t gpuDeviceOf(int* device, const void* p);
gpuError_t gpuMemGetInfo(std::size_t* free, std::size_t* all);
gpuError_t gpuMalloc(void** p, std::size_t bytes);
gpuError_t gpuMallocManaged(void** p, std::size_t bytes);
// Of a process with itself: there is one.
struct gpuIpcMemHandle_t {
  void* p;
  char rest[56];
};
gpuError_t gpuIpcGetMemHandle(gpuIpcMemHandle_t* handle, void* p);
gpuError_t gpuIpcOpenMemHandle(void** p, gpuIpcMemHandle_t handle);
gpuError_t gpuIpcCloseMemHandle(void* p);
gpuError_t gpuFree(void* p);
gpuError_t gpuHostAlloc(void** p, std::size_t bytes);
gpuError_t gpuHostAllocMapped(void** p, std::size_t bytes);
gpuError_t gpuFreeHost(void* p);
gpuError_t gpuMemset(void* p, int value, std::size_t bytes);
gpuError_t gpuMemcpy(void* to, const void* from, std::size_t bytes, int kind);
gpuError_t gpuMemsetAsync(void* p, int value, std::size_t bytes, gpuStream_t stream);
gpuError_t gpuMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind,
                          gpuStream_t stream);
gpuError_t gpuMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                            std::size_t from_pitch, std::size_t width, std::size_t rows, int kind,
                            gpuStream_t stream);
gpuError_t gpuMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              std::size_t bytes, gpuStream_t stream);
gpuError_t gpuStreamCreate(gpuStream_t* stream);
gpuError_t gpuStreamCreateUrgent(gpuStream_t* stream);
gpuError_t gpuStreamDestroy(gpuStream_t stream);
gpuError_t gpuStreamQuery(gpuStream_t stream);
gpuError_t gpuStreamSynchronize(gpuStream_t stream);
gpuError_t gpuStreamWaitEvent(gpuStream_t stream, gpuEvent_t event, unsigned flags);
gpuError_t gpuStreamWaitWord(gpuStream_t stream, const void* address, unsigned long long value);
gpuError_t gpuStreamWriteWord(gpuStream_t stream, void* address, unsigned long long value);
gpuError_t gpuEventCreate(gpuEvent_t* event);
gpuError_t gpuEventCreateUntimed(gpuEvent_t* event);
gpuError_t gpuEventDestroy(gpuEvent_t event);
gpuError_t gpuEventRecord(gpuEvent_t event, gpuStream_t stream);
gpuError_t gpuEventQuery(gpuEvent_t event);
gpuError_t gpuEventSynchronize(gpuEvent_t event);
gpuError_t gpuEventElapsedTime(float* milliseconds, gpuEvent_t from, gpuEvent_t to);
gpuError_t gpuStreamBeginCapture(gpuStream_t stream);
gpuError_t gpuStreamBeginCaptureInto(gpuStream_t stream, gpuGraph_t graph);
gpuError_t gpuStreamEndCapture(gpuStream_t stream, gpuGraph_t* graph);
gpuError_t gpuGraphCreate(gpuGraph_t* graph, unsigned flags);
gpuError_t gpuGraphDestroy(gpuGraph_t graph);
gpuError_t gpuGraphInstantiate(gpuGraphExec_t* exec, gpuGraph_t graph);
gpuError_t gpuGraphExecDestroy(gpuGraphExec_t exec);
gpuError_t gpuGraphUpload(gpuGraphExec_t exec, gpuStream_t stream);
gpuError_t gpuGraphLaunch(gpuGraphExec_t exec, gpuStream_t stream);
gpuError_t gpuGraphLoopHandle(gpuLoopHandle_t* handle, gpuGraph_t graph);
gpuError_t gpuGraphAddLoop(gpuGraph_t graph, const gpuLoopHandle_t& handle, gpuGraph_t* body);
gpuError_t gpuFuncSetSharedMemory(const void* kernel, std::size_t bytes);
gpuError_t gpuFuncPreferSharedMemory(const void* kernel, int percent);
gpuError_t gpuFuncGetAttributes(gpuFuncAttributes_t* attributes, const void* kernel);
gpuError_t gpuOccupancyMaxActiveBlocks(int* blocks, const void* kernel, int threads,
                                       std::size_t shared_bytes);
gpuError_t gpuLaunchCooperativeKernel(const void* kernel, int blocks, int threads, void** arguments,
                                      std::size_t shared_bytes, gpuStream_t stream);
gpuError_t gpuLaunchGrid(const void* kernel, int blocks, int threads, void** arguments,
                         std::size_t shared_bytes, gpuStream_t stream);
gpuError_t gpuLibraryLoad(gpuLibrary_t* library, const char* file);
// Nothing is compiled for the host.
inline gpuError_t gpuLibraryLoadData(gpuLibrary_t*, const void*, std::size_t) {
  return gpuErrorNoDevice;
}
gpuError_t gpuLibraryGetKernel(const void** kernel, gpuLibrary_t library, const char* name);
gpuError_t gpuLibraryGetVariable(void** begin, std::size_t* bytes, gpuLibrary_t library,
                                 const char* name);
void gpuRelax();
