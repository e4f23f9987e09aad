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

// Throws EngineError that names the call and what CUDA says of it.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw EngineError(std::string(call) + ": " + cudaGetErrorString(status));
}

// Makes `device` current; puts the one before back.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

// An array of zeros on one device.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(int device, std::size_t count) : count_(count) {
    const OnDevice here(device);
    void* p = nullptr;
    check(cudaMalloc(&p, (count + 1) * sizeof(T)), "cudaMalloc");
    data_.reset(static_cast<T*>(p));
    check(cudaMemset(p, 0, (count + 1) * sizeof(T)), "cudaMemset");
  }
  template <class V>
  DeviceArray(int device, const V& values) : DeviceArray(device, values.size()) {
    check(cudaMemcpy(data_.get(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy to the device");
  }
  T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }
  std::vector<T> download() const {
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_.get(), count_ * sizeof(T), cudaMemcpyDeviceToHost),
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

// Pinned host memory that every device sees at the same address (unified addressing).
template <class T>
class MappedArray {
 public:
  explicit MappedArray(std::size_t count) : count_(count) {
    void* p = nullptr;
    check(cudaHostAlloc(&p, count * sizeof(T), cudaHostAllocMapped | cudaHostAllocPortable),
          "cudaHostAlloc");
    data_.reset(static_cast<T*>(p));
    for (std::size_t i = 0; i < count; ++i) data_.get()[i] = T{};
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

}  // namespace cpufree::cuda_p2p
