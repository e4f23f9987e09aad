// Devices: which one is current, what they are and have, and whether they reach one another.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "cpufree/gpu/error.hpp"

namespace cpufree::gpu {

inline int current_device() {
  int device = 0;
  check_call(gpuGetDevice(&device), "GetDevice");
  return device;
}

// Makes `device` current; puts the one before back.
class OnDevice {
 public:
  explicit OnDevice(int device) : device_(device) {
    before_ = current_device();
    if (device_ != before_) check_call(gpuSetDevice(device), "SetDevice");
  }
  ~OnDevice() {
    if (device_ != before_) static_cast<void>(gpuSetDevice(before_));
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int device_;
  int before_ = 0;
};

// Makes `device` current for good, in a thread that has nothing else to do with GPUs. Going back to
// the device before, as OnDevice does, would start the runtime on that: device 0, where the thread
// never named one, which may belong to another process.
inline void stay_on(int device) { check_call(gpuSetDevice(device), "SetDevice"); }

// Starts the runtime on the device that is current, which takes a while.
inline void start() { check(gpuStart(), (std::string("the start of ") + gpuRuntimeName).c_str()); }

// Whether the runtime has been started on a device in this process; starts nothing.
inline bool is_started(int device) {
  int started = 0;
  check_call(gpuIsStarted(&started, device), "DevicePrimaryCtxGetState");
  return started != 0;
}

inline int multiprocessors(int device) {
  int count = 0;
  check_call(gpuMultiprocessors(&count, device), "DeviceGetAttribute");
  return count;
}
// Bytes of shared memory that a block may have.
inline std::size_t shared_memory_of_block(int device) {
  int bytes = 0;
  check_call(gpuSharedMemoryOfBlock(&bytes, device), "DeviceGetAttribute");
  return static_cast<std::size_t>(bytes);
}
inline bool offers_cooperative_launch(int device) {
  int offered = 0;
  check_call(gpuCooperativeLaunch(&offered, device), "DeviceGetAttribute");
  return offered != 0;
}
// Asked for once: they do not change, and the driver takes its time for them.
inline gpuDeviceProp_t properties_of(int device) {
  static std::mutex asking;
  static std::map<int, gpuDeviceProp_t> known;
  const std::lock_guard lock(asking);
  const auto found = known.find(device);
  if (found != known.end()) return found->second;
  gpuDeviceProp_t properties;
  check_call(gpuGetDeviceProperties(&properties, device), "GetDeviceProperties");
  return known[device] = properties;
}

// Bytes of the device that is current.
struct MemoryInfo {
  std::size_t free = 0, all = 0;
};
inline MemoryInfo memory_info() {
  MemoryInfo bytes;
  check_call(gpuMemGetInfo(&bytes.free, &bytes.all), "MemGetInfo");
  return bytes;
}

// Whether one device addresses the memory of another one, and with atomics of the hardware. Starts
// nothing on the devices.
inline bool reaches(int from, int to) {
  int yes = 0;
  check_call(gpuDeviceCanAccessPeer(&yes, from, to), "DeviceCanAccessPeer");
  return yes != 0;
}
inline bool reaches_with_atomics(int from, int to) {
  int yes = 0;
  check_call(gpuPeerAtomics(&yes, from, to), "DeviceGetP2PAttribute");
  return yes != 0;
}
// Lets the device that is current address the memory of `to`.
inline void reach(int to) {
  const gpuError_t status = gpuDeviceEnablePeerAccess(to, 0);
  if (status == gpuErrorPeerAccessAlreadyEnabled)
    static_cast<void>(gpuGetLastError());
  else if (status == gpuErrorMemoryAllocation)  // seen with 16 processes on each of 4 GPUs
    fail(status, std::string(gpuPrefix) +
                     "DeviceEnablePeerAccess: too many processes use several of these GPUs at the "
                     "same time; run fewer, or each on GPUs of its own");
  else
    check_call(status, "DeviceEnablePeerAccess");
}

}  // namespace cpufree::gpu
