// Kernels by their addresses on the host, as the engines for GPUs launch them: each on a thread of
// its own, while its stream is busy. Five GPUs of two multiprocessors each, the last one of which
// is small.
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "cpufree/engines/gpu_p2p/shared.hpp"
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
