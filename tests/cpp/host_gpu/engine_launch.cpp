// Kernels by their addresses on the host, as the engines for GPUs launch them: each on a thread of
// its own, while its stream is busy. Five GPUs of two multiprocessors each, the last one of which
// is small.
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cpufree/engines/gpu_p2p/shared.hpp"
#include "cpufree/engines/remote/nccl/blocks.hpp"
#include "gpu_names.hpp"
#include "host_kernel.hpp"

namespace {

const bool configured = [] {
  host_gpu::Settings settings;
  settings.devices = 5;
  settings.small = 4;
  host_gpu::configure(settings);
  return true;
}();

struct Running {
  std::atomic<bool> ended{false};
  std::jthread thread;
};

}  // namespace

gpuError_t gpuFuncSetSharedMemory(const void*, std::size_t) { return gpuSuccess; }
gpuError_t gpuFuncGetAttributes(gpuFuncAttributes_t* attributes, const void*) {
  *attributes = {};
  return gpuSuccess;
}
gpuError_t gpuOccupancyMaxActiveBlocks(int* blocks, const void*, int, std::size_t) {
  *blocks = 1;
  return gpuSuccess;
}

gpuError_t gpuLibraryLoad(gpuLibrary_t* library, const char*) {
  *library = &host_engine::library;
  return gpuSuccess;
}
gpuError_t gpuLibraryGetKernel(const void** kernel, gpuLibrary_t, const char* name) {
  *kernel = host_engine::kernel_named(name);
  return *kernel != nullptr ? gpuSuccess : gpuErrorSymbolNotFound;
}
// Those of kernels that call NCCL: made with 2.32.3.
gpuError_t gpuLibraryGetVariable(void** begin, std::size_t* bytes, gpuLibrary_t library,
                                 const char* name) {
  static std::map<std::string, int> numbers = {
      {"cpufree_nccl_version", 23203}, {"cpufree_nccl_near", 1}, {"cpufree_nccl_far", 2}};
  static cpufree::nccl::Blocks blocks;
  if (std::string(name) == "cpufree_nccl_blocks") {
    *begin = &blocks;
    *bytes = sizeof blocks;
    return gpuSuccess;
  }
  const auto number = numbers.find(name);
  *begin = number == numbers.end() ? library : &number->second;
  *bytes = number == numbers.end() ? sizeof(host_engine::Library) : sizeof number->second;
  return gpuSuccess;
}

// The work of the stream is ready once the thread has ended, which begins when it is first asked.
gpuError_t gpuLaunchGrid(const void* function, int blocks, int threads, void** given,
                         std::size_t bytes, gpuStream_t stream) {
  const auto& kernel = *static_cast<const host_engine::Kernel*>(function);
  // Arguments are copied before the launch returns.
  const auto* const args = static_cast<const std::byte*>(given[1]);
  const auto running = std::make_shared<Running>();
  const auto ready = [=, shared = *static_cast<const cpufree::gpu_p2p::Shared*>(given[0]),
                      copied = std::vector<std::byte>(args, args + kernel.argument_bytes)] {
    if (!running->thread.joinable())
      running->thread = std::jthread([=, &ended = running->ended] {
        kernel.run(shared, copied.data(), blocks, threads, bytes);
        ended = true;
      });
    return running->ended.load();
  };
  return host_gpu::launch(stream, {ready, {}, {}, 0, {}, {}});
}
gpuError_t gpuLaunchCooperativeKernel(const void* function, int blocks, int threads, void** given,
                                      std::size_t bytes, gpuStream_t stream) {
  return gpuLaunchGrid(function, blocks, threads, given, bytes, stream);
}
