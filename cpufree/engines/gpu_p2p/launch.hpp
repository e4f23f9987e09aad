// Launches a kernel: one grid for each PE, all launched before the host waits for any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cpufree/engines/gpu_p2p/shared.hpp"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/gpu/stream.hpp"

namespace cpufree::gpu_p2p {

// PEs that are on `device`: as often as it is named.
inline int pes_on(const std::vector<int>& devices, int device) {
  return static_cast<int>(std::ranges::count(devices, device));
}

// One stream for each PE, and the launches on them. `devices` has the device of each PE: one that
// is named several times is shared by as many PEs.
//
// Whether all blocks are resident together, which wait for one another: a PE that has a device to
// itself is launched cooperatively, which is refused where that cannot be. Cooperative grids of one
// device run one after the other, however little room they need; so those that share one are
// launched as others are, and the caller makes sure before (require_residency) that there is room
// for the blocks of all of them. They are blocks of one kernel and of one shape, of which a
// multiprocessor takes the same number in whatever order they come; no other grid of this process
// that waits for something is on the device (DeviceLocks), and all others end: so each block finds
// room in the end. Grids wait in no queue behind one another either: each stream has its own, as
// long as there are no more of them than connections (CUDA_DEVICE_MAX_CONNECTIONS).
//
// To use: `load`, `start`, then ask `ended` until
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

  // Launches `kernel(shared[k], args[k])` for every PE k. Throws EngineError where a launch is
  // refused; the caller makes the grids that run already leave.
  void start(const void* kernel, int blocks, int threads, std::vector<Shared>& shared,
             const std::vector<const void*>& args, std::size_t dynamic_bytes = 0) {
    on_each([&](std::size_t k) {
      void* parameters[] = {&shared[k], const_cast<void*>(args[k])};
      const gpu::Grid grid{blocks, threads, dynamic_bytes};
      if (pes_on(devices_, devices_[k]) > 1)
        gpu::launch(kernel, grid, parameters, streams_[k]);
      else
        gpu::launch_cooperative(kernel, grid, parameters, streams_[k]);
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
