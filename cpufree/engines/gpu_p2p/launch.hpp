// Launches a kernel: one cooperative grid per GPU, all launched before the host waits for any.
#pragma once

#include <cstddef>
#include <vector>

#include "cpufree/engines/gpu_p2p/shared.hpp"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/gpu/stream.hpp"

namespace cpufree::gpu_p2p {

// One stream per device, and the launches on them. To use: `load`, `start`, then ask `ended` until
// it says so. That is bounded as all waits of kernels are (Shared::wait_limit_ns), and sooner where
// the host sets the word at Shared::host_leave.
class Launch {
 public:
  explicit Launch(const std::vector<int>& devices) : devices_(devices) {
    for (const int device : devices_) streams_.emplace_back(device);
  }

  const gpu::Stream& stream(std::size_t k) const { return streams_[k]; }

  // Loads the kernel everywhere: loading it while another GPU spins would wait for that GPU.
  void load(const void* kernel, std::size_t dynamic_bytes = 0) const {
    for (const int device : devices_) {
      const gpu::OnDevice here(device);
      gpu::load(kernel, dynamic_bytes);
    }
  }

  // Launches `kernel(shared[k], args[k])` cooperatively on every device k. Throws EngineError where
  // a launch is refused; the caller makes the grids that run already leave.
  void start(const void* kernel, int blocks, int threads, std::vector<Shared>& shared,
             const std::vector<const void*>& args, std::size_t dynamic_bytes = 0) {
    on_each([&](std::size_t k) {
      void* parameters[] = {&shared[k], const_cast<void*>(args[k])};
      gpu::launch_cooperative(kernel, {blocks, threads, dynamic_bytes}, parameters, streams_[k]);
    });
  }

  // True once all grids have ended. Throws EngineError as soon as one has crashed, though others
  // still wait for it.
  bool ended() const {
    bool all = true;
    for (const gpu::Stream& stream : streams_) all = stream.done("a solver kernel") && all;
    return all;
  }

  // Waits for every grid, crashed or not.
  void drain() const noexcept {
    for (const gpu::Stream& stream : streams_) stream.settle();
  }

 private:
  // f(k), with device k current.
  template <class F>
  void on_each(F&& f) {
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      const gpu::OnDevice here(devices_[k]);
      f(k);
    }
  }

  std::vector<int> devices_;
  std::vector<gpu::Stream> streams_;
};

}  // namespace cpufree::gpu_p2p
