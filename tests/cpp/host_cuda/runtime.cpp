// CUDA's runtime on the host, as far as the engine for GPUs uses it to lay out and solve systems:
// memory is the host's and holds nonsense at first, copies are done at once, and a kernel runs on a
// thread while its stream is busy. Five GPUs of two multiprocessors each; the last one has one, and
// less memory on chip.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "cpufree/engines/cuda_p2p/shared.hpp"
#include "host_kernel.hpp"

struct CUstream_st {
  std::atomic<bool> busy{false};
  std::jthread thread;
};

namespace {

constexpr int kGpus = 5;
constexpr std::size_t kMemory = std::size_t{1} << 36;
thread_local int current = 0;

cudaError_t allocate(void** p, std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  *p = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (*p == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*p, 0xa5, bytes);
  return cudaSuccess;
}

void wait_for(cudaStream_t stream) {
  if (stream != nullptr && stream->thread.joinable()) stream->thread.join();
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  wait_for(stream);
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kGpus) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the stand-in"; }

cudaError_t cudaMalloc(void** p, std::size_t bytes) { return allocate(p, bytes); }
cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) { return allocate(p, bytes); }
cudaError_t cudaFree(void* p) {
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = *all = kMemory;
  return cudaSuccess;
}
cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  std::memset(p, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream) {
  wait_for(stream);
  return cudaMemset(p, value, bytes);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return copy(to, from, bytes, nullptr);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return copy(to, from, bytes, stream);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return copy(to, from, bytes, stream);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  wait_for(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return stream->busy ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const bool small = device == kGpus - 1;
  *value = attribute == cudaDevAttrMultiProcessorCount            ? (small ? 1 : 2)
           : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? (small ? 20 << 10 : 227 << 10)
                                                                  : 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->totalGlobalMem = kMemory;
  properties->multiProcessorCount = device == kGpus - 1 ? 1 : 2;
  properties->major = 9;
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  *value = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void*) {
  *attributes = {};
  return cudaErrorInvalidValue;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int,
                                                          std::size_t) {
  *blocks = 1;
  return cudaSuccess;
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char*, cudaJitOption*, void**,
                                    unsigned, cudaLibraryOption*, void**, unsigned) {
  *library = reinterpret_cast<cudaLibrary_t>(&host_cuda::library);
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t, const char* name) {
  const void* const found = host_cuda::kernel_named(name);
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(found));
  return found != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** given,
                                        std::size_t bytes, cudaStream_t stream) {
  wait_for(stream);
  const auto& kernel = *static_cast<const host_cuda::Kernel*>(function);
  stream->busy = true;
  // As by CUDA, parameters are copied before the launch returns.
  const auto* const args = static_cast<const std::byte*>(given[1]);
  stream->thread = std::jthread([stream, kernel, grid, block, bytes,
                                 shared = *static_cast<const cpufree::cuda_p2p::Shared*>(given[0]),
                                 copied =
                                     std::vector<std::byte>(args, args + kernel.argument_bytes)] {
    kernel.run(shared, copied.data(), static_cast<int>(grid.x), static_cast<int>(block.x), bytes);
    stream->busy = false;
  });
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** given,
                             std::size_t bytes, cudaStream_t stream) {
  return cudaLaunchCooperativeKernel(function, grid, block, given, bytes, stream);
}

}  // extern "C"
