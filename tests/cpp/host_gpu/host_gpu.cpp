// The runtime's functions: devices, memory and copies. Those of streams are in host_streams.cpp.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "schedule.hpp"

using namespace host_gpu;

namespace host_gpu {

int lies_on(const void* p) {
  const auto& memory = machine().memory;
  auto found = memory.upper_bound(p);
  if (found == memory.begin()) return -1;
  --found;
  const auto offset = static_cast<const char*>(p) - static_cast<const char*>(found->first);
  const bool inside =
      static_cast<std::size_t>(offset) < std::max<std::size_t>(found->second.bytes, 1);
  return inside ? found->second.device : -1;
}

}  // namespace host_gpu

namespace {

// Bytes of ones are NaNs: until something is written, and behind the end, so that even a read in
// vain, whose value is multiplied by zero, shows.
constexpr std::size_t kBehind = 4096;
gpuError_t allocate(void** p, std::size_t bytes) {
  need_context();
  const std::size_t all = (bytes + kBehind + 255) / 256 * 256;
  *p = std::aligned_alloc(256, all);  // as CUDA's
  if (*p == nullptr) return fail(gpuErrorMemoryAllocation);
  std::memset(*p, 0xff, all);
  return gpuSuccess;
}

// Nothing writes behind the end, either.
void check_behind(const void* p, std::size_t bytes) {
  const auto* const end = static_cast<const unsigned char*>(p) + bytes;
  for (std::size_t k = 0; k < kBehind; ++k) {
    if (end[k] == 0xff) continue;
    std::fprintf(stderr, "host_gpu: byte %zu behind %zu bytes was written\n", k, bytes);
    std::abort();
  }
}

// A copy. One of a word may be a flag, which kernels read meanwhile.
void move(void* to, const void* from, std::size_t bytes) {
  using Word = unsigned long long;
  if (bytes == sizeof(Word) && reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) == 0) {
    Word word;
    std::memcpy(&word, from, sizeof(word));
    std::atomic_ref<Word>(*static_cast<Word*>(to)).store(word, std::memory_order_release);
  } else {
    std::memcpy(to, from, bytes);
  }
}

bool is_small(int device) { return device == machine().settings.small; }

}  // namespace

const char* gpuGetErrorString(gpuError_t status) {
  static const char* const texts[] = {"no error",
                                      "invalid argument",
                                      "out of memory",
                                      "not ready",
                                      "peer access is enabled already",
                                      "invalid device ordinal",
                                      "invalid resource handle",
                                      "peer access is not supported",
                                      "operation not permitted while a stream is captured",
                                      "unjoined work in a capture",
                                      "unspecified launch failure",
                                      "named symbol not found",
                                      "the driver is too old",
                                      "no device"};
  return texts[status];
}
gpuError_t gpuGetLastError() { return std::exchange(last_error, gpuSuccess); }

gpuError_t gpuDriverGetVersion(int* version) {
  *version = gpuRuntimeVersion;
  return gpuSuccess;
}
gpuError_t gpuGetDeviceCount(int* count) {
  *count = machine().settings.devices;
  return gpuSuccess;
}
gpuError_t gpuGetDevice(int* device) {
  *device = current_device;
  return gpuSuccess;
}
gpuError_t gpuSetDevice(int device) {
  if (device < 0 || device >= machine().settings.devices) return fail(gpuErrorInvalidDevice);
  current_device = device;
  need_context();
  return gpuSuccess;
}
gpuError_t gpuStart() {
  need_context();
  return gpuSuccess;
}
gpuError_t gpuIsStarted(int* started, int device) {
  const Guard guard(machine().mutex);
  *started = machine().contexts.contains(device) ? 1 : 0;
  return gpuSuccess;
}
gpuError_t gpuDeviceSynchronize() {
  const Guard guard(machine().mutex);
  finish_all();
  return gpuSuccess;
}
gpuError_t gpuGetDeviceProperties(gpuDeviceProp_t* properties, int device) {
  int multiprocessors = 0;
  static_cast<void>(gpuMultiprocessors(&multiprocessors, device));
  *properties = {"stand-in", machine().settings.memory, multiprocessors, 9, 0, 0, {}};
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  return gpuSuccess;
}
gpuError_t gpuDeviceCanAccessPeer(int* reaches, int, int) {
  *reaches = machine().settings.peers ? 1 : 0;
  return gpuSuccess;
}
gpuError_t gpuPeerAtomics(int* offered, int from, int to) {
  return gpuDeviceCanAccessPeer(offered, from, to);
}
gpuError_t gpuDeviceEnablePeerAccess(int, unsigned) {
  if (!machine().settings.peer_memory) return fail(gpuErrorMemoryAllocation);
  return machine().settings.peers ? gpuSuccess : fail(gpuErrorPeerAccessUnsupported);
}
gpuError_t gpuMultiprocessors(int* count, int device) {
  *count = is_small(device) ? 1 : machine().settings.multiprocessors;
  return gpuSuccess;
}
gpuError_t gpuSharedMemoryOfBlock(int* bytes, int device) {
  *bytes = (is_small(device) ? 20 : 227) << 10;
  return gpuSuccess;
}
gpuError_t gpuSharedMemoryOfMultiprocessor(int* bytes, int device) {
  *bytes = (is_small(device) ? 21 : 228) << 10;
  return gpuSuccess;
}
gpuError_t gpuReservedSharedMemory(int* bytes, int) {
  *bytes = 1 << 10;
  return gpuSuccess;
}
gpuError_t gpuFuncPreferSharedMemory(const void*, int percent) {
  return percent >= 0 && percent <= 100 ? gpuSuccess : gpuErrorInvalidValue;
}
gpuError_t gpuCooperativeLaunch(int* offered, int) {
  *offered = 1;
  return gpuSuccess;
}
gpuError_t gpuDeviceOf(int* device, const void* p) {
  const Guard guard(machine().mutex);
  *device = lies_on(p);
  return gpuSuccess;
}

gpuError_t gpuMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = *all = machine().settings.memory;
  return gpuSuccess;
}
gpuError_t gpuMalloc(void** p, std::size_t bytes) {
  if (const gpuError_t status = allocate(p, bytes); status != gpuSuccess) return status;
  const Guard guard(machine().mutex);
  machine().memory[*p] = {current_device, bytes};
  machine().taken += bytes;
  machine().most_taken = std::max(machine().most_taken, machine().taken);
  return gpuSuccess;
}
gpuError_t gpuFree(void* p) {
  const Guard guard(machine().mutex);
  finish_all();
  if (const auto known = machine().memory.find(p); known != machine().memory.end()) {
    check_behind(p, known->second.bytes);
    machine().taken -= known->second.bytes;
    machine().memory.erase(known);
  }
  std::free(p);
  return gpuSuccess;
}
gpuError_t gpuMallocManaged(void** p, std::size_t bytes) { return allocate(p, bytes); }
gpuError_t gpuIpcGetMemHandle(gpuIpcMemHandle_t* handle, void* p) {
  *handle = {p, {}};
  return gpuSuccess;
}
gpuError_t gpuIpcOpenMemHandle(void** p, gpuIpcMemHandle_t handle) {
  *p = handle.p;
  return gpuSuccess;
}
gpuError_t gpuIpcCloseMemHandle(void*) { return gpuSuccess; }
gpuError_t gpuHostAlloc(void** p, std::size_t bytes) { return allocate(p, bytes); }
gpuError_t gpuHostAllocMapped(void** p, std::size_t bytes) { return allocate(p, bytes); }
gpuError_t gpuFreeHost(void* p) {
  const Guard guard(machine().mutex);
  finish_all();
  std::free(p);
  return gpuSuccess;
}
gpuError_t gpuMemset(void* p, int value, std::size_t bytes) {
  std::memset(p, value, bytes);
  return gpuSuccess;
}
gpuError_t gpuMemcpy(void* to, const void* from, std::size_t bytes, int) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return gpuSuccess;
}
gpuError_t gpuMemsetAsync(void* p, int value, std::size_t bytes, gpuStream_t stream) {
  return launch(stream, {{}, [=] { std::memset(p, value, bytes); }, {}, 0, {}, {}});
}
gpuError_t gpuMemcpyAsync(void* to, const void* from, std::size_t bytes, int, gpuStream_t stream) {
  return launch(stream, {{}, [=] { move(to, from, bytes); }, {}, 0, {}, {}});
}
gpuError_t gpuMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                            std::size_t from_pitch, std::size_t width, std::size_t rows, int,
                            gpuStream_t stream) {
  const auto copy = [=] {
    for (std::size_t k = 0; k < rows; ++k)
      std::memcpy(static_cast<std::byte*>(to) + k * to_pitch,
                  static_cast<const std::byte*>(from) + k * from_pitch, width);
  };
  return launch(stream, {{}, copy, {}, 0, {}, {}});
}
gpuError_t gpuMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                              std::size_t bytes, gpuStream_t stream) {
  {
    const Guard guard(machine().mutex);
    if (lies_on(to) != to_device || lies_on(from) != from_device) return fail(gpuErrorInvalidValue);
  }
  return launch(stream, {{}, [=] { move(to, from, bytes); }, {}, 0, {}, {}});
}
