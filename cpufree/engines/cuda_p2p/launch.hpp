// Launches a kernel: one cooperative grid per GPU, all launched before the host waits for any.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "cpufree/engines/cuda_p2p/bootstrap.hpp"
#include "cpufree/engines/cuda_p2p/memory.hpp"
#include "cpufree/engines/cuda_p2p/shared.hpp"

namespace cpufree::cuda_p2p {

// Blocks of `threads` threads and `dynamic_bytes` of shared memory of `kernel` that are resident on
// `device` together. The kernel must be `load`ed with as many bytes before.
inline int resident_blocks(const void* kernel, int threads, int device,
                           std::size_t dynamic_bytes = 0) {
  const OnDevice here(device);
  int per_multiprocessor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, threads,
                                                      dynamic_bytes),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return per_multiprocessor * attribute(cudaDevAttrMultiProcessorCount, device);
}

// One stream per device, and the launches on them. To use: `load`, `start`, then ask `ended` until
// it says so. That is bounded as all waits of kernels are (Shared::wait_limit_ns), and sooner where
// the host sets the word at Shared::host_leave.
class Launch {
 public:
  explicit Launch(const std::vector<int>& devices) : devices_(devices) {
    for (const int device : devices_) streams_.emplace_back(device);
  }

  cudaStream_t stream(std::size_t k) const { return streams_[k]; }

  // Loads the kernel everywhere: loading it while another GPU spins would wait for that GPU.
  void load(const void* kernel, std::size_t dynamic_bytes = 0) const {
    for (const int device : devices_) {
      const OnDevice here(device);
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(dynamic_bytes)),
            "cudaFuncSetAttribute");
      cudaFuncAttributes attributes;
      check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    }
  }

  // Launches `kernel(shared[k], args[k])` cooperatively on every device k. Throws EngineError where
  // a launch is refused; the caller makes the grids that run already leave.
  void start(const void* kernel, int blocks, int threads, std::vector<Shared>& shared,
             const std::vector<const void*>& args, std::size_t dynamic_bytes = 0) {
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      const OnDevice here(devices_[k]);
      void* parameters[] = {&shared[k], const_cast<void*>(args[k])};
      check(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                                        dim3(static_cast<unsigned>(threads)), parameters,
                                        dynamic_bytes, streams_[k]),
            "cudaLaunchCooperativeKernel");
    }
  }

  // Launches as `start` does, but leaves it to the caller to know that all blocks find room: for
  // kernels that are resident together with others.
  void start_beside(const void* kernel, int blocks, int threads, std::vector<Shared>& shared,
                    const std::vector<const void*>& args, std::size_t dynamic_bytes) {
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      const OnDevice here(devices_[k]);
      void* parameters[] = {&shared[k], const_cast<void*>(args[k])};
      check(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                             dim3(static_cast<unsigned>(threads)), parameters, dynamic_bytes,
                             streams_[k]),
            "cudaLaunchKernel");
    }
  }

  // True once all grids have ended. Throws EngineError as soon as one has crashed, though others
  // still wait for it.
  bool ended() const {
    bool all = true;
    for (const Stream& stream : streams_) {
      const cudaError_t status = cudaStreamQuery(stream);
      if (status == cudaErrorNotReady)
        all = false;
      else
        check(status, "a solver kernel");
    }
    return all;
  }

  // Waits for every grid, crashed or not.
  void drain() const noexcept {
    for (const Stream& stream : streams_) static_cast<void>(cudaStreamSynchronize(stream));
  }

 private:
  std::vector<int> devices_;
  std::vector<Stream> streams_;
};

}  // namespace cpufree::cuda_p2p
