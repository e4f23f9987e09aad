// Launches a kernel: one cooperative grid per GPU, all launched before the host waits for any.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "cpufree/engines/cuda_p2p/memory.cuh"
#include "cpufree/engines/cuda_p2p/port.cuh"

namespace cpufree::cuda_p2p {

// Blocks of `threads` threads of `kernel` that are resident on `device` together.
inline int resident_blocks(const void* kernel, int threads, int device) {
  const OnDevice here(device);
  int per_multiprocessor = 0;
  int multiprocessors = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, threads, 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  return per_multiprocessor * multiprocessors;
}

// One stream per device, and the launches on them. To use: `load`, `start`, then ask `ended` until
// it says so. That is bounded as all waits of kernels are (Shared::wait_limit_ns), and sooner where
// the host sets the word at Shared::host_leave.
class Launch {
 public:
  explicit Launch(const std::vector<int>& devices) : devices_(devices) {
    for (const int device : devices_) {
      const OnDevice here(device);
      streams_.emplace_back();
      check(cudaStreamCreateWithFlags(&streams_.back(), cudaStreamNonBlocking), "cudaStreamCreate");
    }
  }
  ~Launch() {
    for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // Loads the kernel everywhere: loading it while another GPU spins would wait for that GPU.
  void load(const void* kernel) const {
    for (const int device : devices_) {
      const OnDevice here(device);
      cudaFuncAttributes attributes;
      check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    }
  }

  // Launches `kernel(shared[k], args[k])` cooperatively on every device k. Throws EngineError where
  // a launch is refused; grids that run already leave when their waits expire.
  template <class Args>
  void start(const void* kernel, int blocks, int threads, std::vector<Shared>& shared,
             const std::vector<const Args*>& args) {
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      const OnDevice here(devices_[k]);
      const Args* argument = args[k];
      void* parameters[] = {&shared[k], &argument};
      check(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                                        dim3(static_cast<unsigned>(threads)), parameters, 0,
                                        streams_[k]),
            "cudaLaunchCooperativeKernel");
    }
  }

  // True once all grids have ended.
  bool ended() const {
    for (const cudaStream_t stream : streams_) {
      const cudaError_t status = cudaStreamQuery(stream);
      if (status == cudaErrorNotReady) return false;
      check(status, "kernel");
    }
    return true;
  }

 private:
  std::vector<int> devices_;
  std::vector<cudaStream_t> streams_;
};

}  // namespace cpufree::cuda_p2p
