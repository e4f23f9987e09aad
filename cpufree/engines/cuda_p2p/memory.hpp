// Memory of the GPU engine: device arrays, symmetric heaps, and host memory that kernels reach.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpufree/base/error.hpp"

namespace cpufree::cuda_p2p {

// Errors after which every further call of the process fails.
inline bool is_sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

// Throws EngineError that names the call and what CUDA says of it.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // the error is told here, and not again elsewhere
  std::string message = std::string(call) + ": " + cudaGetErrorString(status);
  if (is_sticky(status))
    message += "; CUDA cannot go on in this process after that: restart it, and please report this";
  throw EngineError(message);
}

// Makes `device` current; puts the one before back.
class OnDevice {
 public:
  explicit OnDevice(int device) : device_(device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (device_ != before_) check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~OnDevice() {
    if (device_ != before_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int device_;
  int before_ = 0;
};

// Makes `device` current for good, in a thread that has nothing else to do with CUDA. Going back to
// the device before, as OnDevice does, would start CUDA on that: device 0, where the thread never
// named one, which may belong to another process.
inline void stay_on(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

// Bytes on the device that is current. Throws OutOfMemory.
inline void* allocate_on(int device, std::size_t bytes) {
  void* p = nullptr;
  const cudaError_t status = cudaMalloc(&p, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t free = 0;
    std::size_t all = 0;
    static_cast<void>(cudaMemGetInfo(&free, &all));
    throw OutOfMemory("GPU " + std::to_string(device) + " has no room for " +
                      std::to_string(bytes) + " bytes more: " + std::to_string(free) + " of " +
                      std::to_string(all) +
                      " bytes are free; use more GPUs, or free what else is on this one");
  }
  check(status, "cudaMalloc");
  return p;
}

// An array on one device. It remembers no device: freeing needs none.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  // Zeros.
  DeviceArray(int device, std::size_t count) {
    *this = uninitialised(device, count);
    const OnDevice here(device);
    check(cudaMemset(data_.get(), 0, count * sizeof(T)), "cudaMemset");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // streams do not wait for it
  }
  template <class V>
    requires requires(const V& values) { values.data(); }
  DeviceArray(int device, const V& values) {
    *this = uninitialised(device, values.size());
    const OnDevice here(device);
    check(cudaMemcpy(data_.get(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy to the device");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  static DeviceArray uninitialised(int device, std::size_t count) {
    const OnDevice here(device);
    DeviceArray array;
    array.data_.reset(static_cast<T*>(allocate_on(device, (count == 0 ? 1 : count) * sizeof(T))));
    array.count_ = count;
    return array;
  }

  // Other values in the place of those that are there, as many.
  template <class V>
  void rewrite(int device, const V& values) {
    require(values.size() == count_, "an array on a GPU keeps its size");
    const OnDevice here(device);
    check(cudaMemcpy(data_.get(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy to the device");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }

  T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }
  std::vector<T> download() const { return download(count_); }
  std::vector<T> download(std::size_t count) const {
    std::vector<T> values(count);
    check(cudaMemcpy(values.data(), data_.get(), count * sizeof(T), cudaMemcpyDeviceToHost),
          "cudaMemcpy to the host");
    return values;
  }

 private:
  struct Free {
    void operator()(T* p) const { cudaFree(p); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

// Pinned host memory, at the same address for every device (unified addressing).
template <class T>
class PinnedArray {
 public:
  PinnedArray() = default;
  explicit PinnedArray(std::size_t count, unsigned flags = cudaHostAllocPortable) : count_(count) {
    void* p = nullptr;
    const std::size_t bytes = (count == 0 ? 1 : count) * sizeof(T);
    const cudaError_t status = cudaHostAlloc(&p, bytes, flags);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      throw OutOfMemory("the host has no room for " + std::to_string(bytes) +
                        " bytes of pinned memory; free some, or raise the limit (ulimit -l)");
    }
    check(status, "cudaHostAlloc");
    data_.reset(static_cast<T*>(p));
  }
  T* data() const { return data_.get(); }
  T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::size_t size() const { return count_; }

 private:
  struct Free {
    void operator()(T* p) const { cudaFreeHost(p); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

// The same, reached by kernels too; zeroed.
template <class T>
class MappedArray : public PinnedArray<T> {
 public:
  explicit MappedArray(std::size_t count)
      : PinnedArray<T>(count, cudaHostAllocMapped | cudaHostAllocPortable) {
    for (std::size_t i = 0; i < count; ++i) (*this)[i] = T{};
  }
};

// A stream of one device that waits for no other stream.
class Stream {
 public:
  explicit Stream(int device) {
    const OnDevice here(device);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

// An event of one device.
class Event {
 public:
  explicit Event(int device) {
    const OnDevice here(device);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  void record(cudaStream_t stream) const {
    check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace cpufree::cuda_p2p
