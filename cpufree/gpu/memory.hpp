// Memory, owned: of devices, and of the host where devices reach it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cpufree/gpu/copy.hpp"

namespace cpufree::gpu {

// Bytes on the device that is current. Throws OutOfMemory.
inline void* allocate_on(int device, std::size_t bytes) {
  void* p = nullptr;
  const gpuError_t status = gpuMalloc(&p, bytes);
  if (status == gpuErrorMemoryAllocation) {
    static_cast<void>(gpuGetLastError());
    std::size_t free = 0;
    std::size_t all = 0;
    static_cast<void>(gpuMemGetInfo(&free, &all));
    throw OutOfMemory("GPU " + std::to_string(device) + " has no room for " +
                      std::to_string(bytes) + " bytes more: " + std::to_string(free) + " of " +
                      std::to_string(all) +
                      " bytes are free; use more GPUs, or free what else is on this one");
  }
  check_call(status, "Malloc");
  return p;
}

// An array on one device, which it does not remember: freeing needs none. What names a device is
// done when it returns. What names a stream is done in the order of that; constructors and
// downloads wait for it, bounded.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  // Zeros.
  DeviceArray(int device, std::size_t count) : DeviceArray(uninitialised(device, count)) {
    gpu::clear(device, data_.get(), count * sizeof(T));
  }
  DeviceArray(const Stream& stream, std::size_t count)
      : DeviceArray(uninitialised(stream.device(), count)) {
    clear(stream);
    stream.drain(Deadline(kCopyLimit), "clearing memory");
  }
  template <class V>
    requires requires(const V& values) { values.data(); }
  DeviceArray(int device, const V& values) : DeviceArray(uninitialised(device, values.size())) {
    copy_to_device(device, data_.get(), values.data(), count_ * sizeof(T));
  }
  template <class V>
    requires requires(const V& values) { values.data(); }
  DeviceArray(const Stream& stream, const V& values)
      : DeviceArray(uninitialised(stream.device(), values.size())) {
    upload(stream, values.data(), values.size());
    stream.drain(Deadline(kCopyLimit), "a copy to the GPU");
  }
  static DeviceArray uninitialised(int device, std::size_t count) {
    const OnDevice here(device);
    DeviceArray array;
    array.data_.reset(static_cast<T*>(allocate_on(device, (count == 0 ? 1 : count) * sizeof(T))));
    array.count_ = count;
    return array;
  }
  // Memory of the GPU that another object owns.
  static DeviceArray borrow(T* values, std::size_t count) {
    DeviceArray array;
    array.data_ = {values, Free{false}};
    array.count_ = count;
    return array;
  }

  T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }

  // Other values in the place of those that are there, as many.
  template <class V>
  void rewrite(int device, const V& values) {
    require(values.size() == count_, "an array on a GPU keeps its size");
    copy_to_device(device, data_.get(), values.data(), count_ * sizeof(T));
  }
  std::vector<T> download() const { return download(count_); }
  std::vector<T> download(std::size_t count) const {
    std::vector<T> values(count);
    copy_to_host(values.data(), data_.get(), count * sizeof(T));
    return values;
  }

  void clear(const Stream& stream) const {
    const OnDevice here(stream.device());
    gpu::clear(data_.get(), count_ * sizeof(T), stream);
  }
  // `values` must stay until the stream is drained.
  void upload(const Stream& stream, const T* values, std::size_t count) const {
    if (count == 0) return;
    const OnDevice here(stream.device());
    copy(data_.get(), values, count * sizeof(T), stream);
  }
  void download(const Stream& stream, T* values, std::size_t count) const {
    if (count == 0) return;
    const OnDevice here(stream.device());
    copy(values, data_.get(), count * sizeof(T), stream);
    stream.drain(Deadline(kCopyLimit), "a copy from the GPU");
  }

 private:
  struct Free {
    bool mine = true;
    void operator()(T* p) const {
      if (mine && !abandoned) static_cast<void>(gpuFree(p));
    }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

// Pinned host memory, at the same address for every device.
template <class T>
class PinnedArray {
 public:
  PinnedArray() = default;
  explicit PinnedArray(std::size_t count) : PinnedArray(count, gpuHostAlloc) {}
  T* data() const { return data_.get(); }
  T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::size_t size() const { return count_; }

 protected:
  template <class Allocate>
  PinnedArray(std::size_t count, Allocate&& host_alloc) : count_(count) {
    void* p = nullptr;
    const std::size_t bytes = (count == 0 ? 1 : count) * sizeof(T);
    const gpuError_t status = host_alloc(&p, bytes);
    if (status == gpuErrorMemoryAllocation) {
      static_cast<void>(gpuGetLastError());
      throw OutOfMemory("the host has no room for " + std::to_string(bytes) +
                        " bytes of pinned memory; free some, or raise the limit (ulimit -l)");
    }
    check_call(status, "HostAlloc");
    data_.reset(static_cast<T*>(p));
  }

 private:
  struct Free {
    void operator()(T* p) const {
      if (!abandoned) static_cast<void>(gpuFreeHost(p));
    }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

// The same, reached by kernels too; zeroed.
template <class T>
class MappedArray : public PinnedArray<T> {
 public:
  MappedArray() = default;
  explicit MappedArray(std::size_t count) : PinnedArray<T>(count, gpuHostAllocMapped) {
    for (std::size_t i = 0; i < count; ++i) (*this)[i] = T{};
  }
};

}  // namespace cpufree::gpu
