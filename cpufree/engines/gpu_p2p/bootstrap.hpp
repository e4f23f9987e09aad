// Which GPUs there are, whether they reach one another's memory, and who may use them now.
#pragma once

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include <gpu_vendor.hpp>

#include "cpufree/gpu/device.hpp"

namespace cpufree::gpu_p2p {

// "" if every device can address every other one's memory, with atomics over the link; else a
// sentence that names the first pair for which that is not so. Starts nothing on the devices.
inline std::string peer_problem(const std::vector<int>& devices) {
  for (const int from : devices)
    for (const int to : devices) {
      if (from == to) continue;
      const bool reaches = gpu::reaches(from, to);
      if (!reaches || !gpu::reaches_with_atomics(from, to))
        return "GPU " + std::to_string(from) + " cannot " +
               (!reaches ? "address the memory of" : "do native atomics on") + " GPU " +
               std::to_string(to) + "; use one of them, or GPUs that are linked by " +
               gpuLinkAdvice;
    }
  return "";
}

// Lets every device address every other one's memory. Throws Unsupported where that cannot be.
inline void connect(const std::vector<int>& devices) {
  if (const std::string problem = peer_problem(devices); !problem.empty())
    throw Unsupported(problem);
  for (const int from : devices) {
    const gpu::OnDevice here(from);
    for (const int to : devices)
      if (from != to) gpu::reach(to);
  }
}

// Keeps a set of devices for one user of this process at a time. Kernels that need all
// multiprocessors cannot run side by side: two solves on the same two GPUs could each hold one and
// wait for the other. And an allocation waits for the kernels that run, which may wait for one that
// the allocation keeps from being launched. Taken in increasing order, hence without deadlock;
// again by a thread that has them already, for the progress function of a solve may free another
// System, or make one: all grids of its solve have been launched by then, so what it does only
// waits.
class DeviceLocks {
 public:
  explicit DeviceLocks(const std::vector<int>& devices) {
    for (const int device : in_order(devices)) locks_.emplace_back(mutex_of(device));
  }
  // Does not wait: locks the devices that are free; `all()` says whether these are all.
  DeviceLocks(const std::vector<int>& devices, std::try_to_lock_t) {
    for (const int device : in_order(devices))
      locks_.emplace_back(mutex_of(device), std::try_to_lock);
  }
  bool all() const {
    return std::ranges::all_of(locks_, [](const auto& lock) { return lock.owns_lock(); });
  }

 private:
  static std::vector<int> in_order(std::vector<int> devices) {
    std::ranges::sort(devices);
    const auto repeated = std::ranges::unique(devices);
    devices.erase(repeated.begin(), repeated.end());
    return devices;
  }
  static std::recursive_mutex& mutex_of(int device) {
    return mutexes()[static_cast<std::size_t>(device) % kMutexes];
  }

  static constexpr std::size_t kMutexes = 256;  // more than a host has GPUs
  static std::array<std::recursive_mutex, kMutexes>& mutexes() {
    static std::array<std::recursive_mutex, kMutexes> all;
    return all;
  }
  std::vector<std::unique_lock<std::recursive_mutex>> locks_;
};

}  // namespace cpufree::gpu_p2p
