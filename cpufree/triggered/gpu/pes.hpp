// PEs on GPUs: heaps, streams, and launches of a kernel for each. Several PEs may share a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/engines/gpu_p2p/shared.hpp"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/gpu/memory.hpp"

namespace cpufree::triggered {

class GpuPes {
 public:
  // A PE on each of the devices. `blocks`: the most that a kernel of a PE has. Throws Unsupported
  // where the devices do not reach one another's memory.
  GpuPes(const std::vector<int>& devices, int blocks);
  ~GpuPes();
  GpuPes(const GpuPes&) = delete;
  GpuPes& operator=(const GpuPes&) = delete;

  // Heaps of this layout, of zeros, and a word more.
  void allocate(SymmetricLayout& layout);

  int count() const { return static_cast<int>(devices_.size()); }
  const std::vector<int>& devices() const { return devices_; }
  int device(int pe) const { return devices_[static_cast<std::size_t>(pe)]; }
  std::byte* heap(int pe) const { return bases_[static_cast<std::size_t>(pe)]; }
  std::byte* const* heaps() const { return bases_.data(); }
  const gpu::Stream& stream(int pe) const { return streams_[static_cast<std::size_t>(pe)]; }
  // The same number for each device.
  int multiprocessors() const { return streams_.front().multiprocessors(); }

  // Loads a kernel on all devices, and throws InvalidInput unless all PEs' blocks are resident on
  // them together, beside `taken(device)` multiprocessors that others keep. Before any PE runs.
  void prepare(const void* kernel, const gpu::Grid& grid,
               const std::function<int(int)>& taken = {}) const;
  void set_wait_limit(double seconds) { wait_limit_ = seconds; }

  // Launches `kernel(shared, args)` on a PE's stream.
  void launch(int pe, const void* kernel, const gpu::Grid& grid, const void* args) const;
  // Writes a flag of PE `to` once what is on a stream of PE `from` is over; `flag`: on PE `from`.
  void signal(const gpu::Stream& stream, int from, Flag* flag, int to, Epoch value) const;
  // Bytes from PE to PE, in the order of a stream of `from`'s device; both places are on `from`.
  void copy(const gpu::Stream& stream, int from, const std::byte* source, int to, std::byte* target,
            std::size_t bytes) const;
  // Until the streams of all PEs are empty. `look` is called now and then; what it throws ends the
  // kernels and passes. False: a wait was given up.
  bool wait(const std::function<void()>& look) const;
  // The same, but throws EngineError that says who waited for what.
  void finish(const std::function<void()>& look) const;
  // What became of each block, block b of PE q at q * blocks + b.
  const WaitRecord& record(int pe, int block) const {
    return records_[static_cast<std::size_t>(pe * blocks_ + block)];
  }
  std::string describe_waits() const;
  void stop() const noexcept;

 private:
  gpu_p2p::Shared shared(int pe) const;
  template <class T>
  T* on(T* object, int from, int to) const {
    return reinterpret_cast<T*>(heap(to) + (reinterpret_cast<std::byte*>(object) - heap(from)));
  }
  bool writes_words(int from, int to) const;

  std::vector<int> devices_;
  int blocks_;
  gpu_p2p::DeviceLocks locks_;
  std::vector<gpu::DeviceArray<std::byte>> heaps_;
  std::vector<std::byte*> bases_;
  std::vector<gpu::Stream> streams_;
  Symmetric<Flag> leave_;
  gpu::MappedArray<unsigned> words_{64};
  gpu::MappedArray<WaitRecord> records_;
  gpu::PinnedArray<Epoch> values_{64};  // flags that are copied
  std::vector<bool> writes_;            // streams of PE q write words on PE p: at q * count + p
  double wait_limit_ = 10.0;
};

}  // namespace cpufree::triggered
