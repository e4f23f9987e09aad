// Launches a kernel: one cooperative grid per GPU, all launched before the host waits for any.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "cpufree/base/standby.hpp"
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
  // `together`: each device's launches come from a thread of its own. A launch takes some 9 us of
  // the processor, so that one thread is 60 us late for the last of eight GPUs.
  Launch(const std::vector<int>& devices, bool together)
      : devices_(devices), together_(together), standby_(together ? devices.size() : 0) {
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

  // A launch is near.
  void get_ready() {
    if (together_) standby_.wake();
  }

  // Launches `kernel(shared[k], args[k])` cooperatively on every device k. Throws EngineError where
  // a launch is refused; the caller makes the grids that run already leave.
  void start(const void* kernel, int blocks, int threads, std::vector<Shared>& shared,
             const std::vector<const void*>& args, std::size_t dynamic_bytes = 0) {
    on_each([&](std::size_t k) {
      void* parameters[] = {&shared[k], const_cast<void*>(args[k])};
      check(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                                        dim3(static_cast<unsigned>(threads)), parameters,
                                        dynamic_bytes, streams_[k]),
            "cudaLaunchCooperativeKernel");
    });
  }

  // Launches as `start` does, but leaves it to the caller to know that all blocks find room: for
  // kernels that are resident together with others.
  void start_beside(const void* kernel, int blocks, int threads, std::vector<Shared>& shared,
                    const std::vector<const void*>& args, std::size_t dynamic_bytes) {
    on_each([&](std::size_t k) {
      void* parameters[] = {&shared[k], const_cast<void*>(args[k])};
      check(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                             dim3(static_cast<unsigned>(threads)), parameters, dynamic_bytes,
                             streams_[k]),
            "cudaLaunchKernel");
    });
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
  // f(k), with device k current.
  template <class F>
  void on_each(F&& f) {
    const auto on_device = [&](std::size_t k) {
      const OnDevice here(devices_[k]);
      f(k);
    };
    if (!together_) {
      for (std::size_t k = 0; k < devices_.size(); ++k) on_device(k);
      return;
    }
    const std::thread::id caller = std::this_thread::get_id();
    standby_.call([&](std::size_t k) {
      if (std::this_thread::get_id() == caller) return on_device(k);
      stay_on(devices_[k]);
      f(k);
    });
  }

  std::vector<int> devices_;
  std::vector<Stream> streams_;
  bool together_;
  Standby standby_;
};

}  // namespace cpufree::cuda_p2p
