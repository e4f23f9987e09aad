// Which GPUs there are, whether they reach one another's memory, and who may use them now.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "cpufree/engines/cuda_p2p/memory.hpp"

namespace cpufree::cuda_p2p {

inline int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
  return value;
}

// "" if every device can address every other one's memory, with atomics over the link; else a
// sentence that names the first pair for which that is not so. Starts nothing on the devices.
inline std::string peer_problem(const std::vector<int>& devices) {
  for (const int from : devices)
    for (const int to : devices) {
      if (from == to) continue;
      int reaches = 0;
      int atomics = 0;
      check(cudaDeviceCanAccessPeer(&reaches, from, to), "cudaDeviceCanAccessPeer");
      if (reaches != 0)
        check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to),
              "cudaDeviceGetP2PAttribute");
      if (reaches == 0 || atomics == 0)
        return "GPU " + std::to_string(from) + " cannot " +
               (reaches == 0 ? "address the memory of" : "do native atomics on") + " GPU " +
               std::to_string(to) +
               "; use one of them, or GPUs that are linked by NVLink (nvidia-smi topo -m shows "
               "which are)";
    }
  return "";
}

// Lets every device address every other one's memory. Throws Unsupported where that cannot be.
inline void connect(const std::vector<int>& devices) {
  if (const std::string problem = peer_problem(devices); !problem.empty())
    throw Unsupported(problem);
  for (const int from : devices) {
    const OnDevice here(from);
    for (const int to : devices) {
      if (from == to) continue;
      const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled)
        static_cast<void>(cudaGetLastError());
      else
        check(status, "cudaDeviceEnablePeerAccess");
    }
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
  // Those that nobody has, and no waiting: `all()` says whether they are all.
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

}  // namespace cpufree::cuda_p2p
