// What the GPU tests share: heaps on all GPUs, and launches that wait for their end.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/gpu_p2p/bootstrap.hpp"
#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/gpu/launch.hpp"
#include "cpufree/gpu/memory.hpp"

namespace gpu_rig {

using namespace cpufree;

inline int found() {
  int count = 0;
  return gpuGetDeviceCount(&count) == gpuSuccess ? count : 0;
}

class Machine {
 public:
  explicit Machine(int gpus) {
    for (int g = 0; g < gpus; ++g) devices_.push_back(g);
    gpu_p2p::connect(devices_);
    blocks_ = gpu::multiprocessors(devices_[0]);
    for (const int device : devices_) streams_.emplace_back(device);
    records_ =
        std::make_unique<gpu::MappedArray<WaitRecord>>(static_cast<std::size_t>(gpus * blocks_));
  }

  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  int gpus() const { return static_cast<int>(devices_.size()); }
  int blocks() const { return blocks_; }
  std::byte* heap(int g) const { return heaps_[static_cast<std::size_t>(g)].data(); }

  // Heaps of this layout, and a word behind it.
  void allocate(SymmetricLayout& layout) {
    leave_ = layout.reserve<Flag>(1);
    for (const int device : devices_) heaps_.emplace_back(device, layout.bytes());
  }

  // Runs `kernel(shared, args[k])` on every GPU, all symmetric memory zero. Seconds; negative where
  // a wait gave up.
  template <class Args>
  double run(const void* kernel, int threads, std::size_t fast, const std::vector<Args>& args) {
    std::vector<gpu_p2p::Shared> shared;
    for (int g = 0; g < gpus(); ++g) {
      const auto& heap = heaps_[static_cast<std::size_t>(g)];
      gpu::clear(g, heap.data(), heap.size());
      shared.push_back(shared_of(g));
    }
    for (std::size_t k = 0; k < records_->size(); ++k) (*records_)[k] = {};
    for (const int device : devices_) {  // loading it while another GPU spins would hang
      const gpu::OnDevice here(device);
      static_cast<void>(gpu::static_shared_memory(kernel));
    }
    const auto start = std::chrono::steady_clock::now();
    for (int g = 0; g < gpus(); ++g) {
      const gpu::OnDevice here(g);
      void* parameters[] = {&shared[static_cast<std::size_t>(g)],
                            const_cast<Args*>(&args[static_cast<std::size_t>(g)])};
      gpu::launch_cooperative(kernel, {blocks_, threads, fast}, parameters,
                              streams_[static_cast<std::size_t>(g)]);
    }
    for (const gpu::Stream& stream : streams_) stream.wait("a kernel of a test");
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return gave_up() ? -1.0 : elapsed.count();
  }

 private:
  gpu_p2p::Shared shared_of(int g) const {
    gpu_p2p::Shared s;
    s.pe = g;
    s.pes = gpus();
    for (int k = 0; k < gpus(); ++k) s.heaps[k] = heap(k);
    s.leave = leave_.at(heap(g));
    s.host_leave = &words_[0];
    s.notes = &words_[1];
    s.iteration = iteration_.data();
    s.residual = residual_.data();
    s.records = records_->data() + static_cast<std::size_t>(blocks_) * static_cast<std::size_t>(g);
    s.wait_limit_ns = 3'000'000'000;
    return s;
  }

  bool gave_up() const {
    int lines = 0;
    for (std::size_t k = 0; k < records_->size(); ++k) {
      const WaitRecord& r = (*records_)[k];
      if (r.state != BlockState::absent && ++lines <= 4)
        std::printf("  slot %zu gave up waiting for PE %d block %d (%s, want %llu, seen %llu)\n", k,
                    r.from_pe, r.from_block, channel_name(r.channel),
                    static_cast<unsigned long long>(r.want),
                    static_cast<unsigned long long>(r.seen));
    }
    return lines > 0;
  }

  std::vector<int> devices_;
  int blocks_ = 1;
  std::vector<gpu::DeviceArray<std::byte>> heaps_;
  Symmetric<Flag> leave_;
  std::vector<gpu::Stream> streams_;
  std::unique_ptr<gpu::MappedArray<WaitRecord>> records_;
  gpu::MappedArray<unsigned> words_{2};
  gpu::MappedArray<std::int64_t> iteration_{1};
  gpu::MappedArray<double> residual_{1};
};

}  // namespace gpu_rig
