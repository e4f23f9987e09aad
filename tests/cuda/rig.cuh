// What the GPU tests share: heaps on all GPUs, and launches that wait for their end.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "cpufree/device/symmetric.hpp"
#include "cpufree/engines/cuda_p2p/bootstrap.hpp"
#include "cpufree/engines/cuda_p2p/memory.hpp"
#include "cpufree/engines/cuda_p2p/port.cuh"

namespace gpu_rig {

using namespace cpufree;

inline int found() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

class Machine {
 public:
  explicit Machine(int gpus) {
    for (int g = 0; g < gpus; ++g) devices_.push_back(g);
    cuda_p2p::connect(devices_);
    cuda_p2p::check(cudaDeviceGetAttribute(&blocks_, cudaDevAttrMultiProcessorCount, devices_[0]),
                    "cudaDeviceGetAttribute");
    for (const int device : devices_) {
      const cuda_p2p::OnDevice here(device);
      streams_.emplace_back();
      cuda_p2p::check(cudaStreamCreateWithFlags(&streams_.back(), cudaStreamNonBlocking),
                      "cudaStreamCreate");
    }
    records_ = std::make_unique<cuda_p2p::MappedArray<WaitRecord>>(
        static_cast<std::size_t>(gpus * blocks_));
  }

  ~Machine() {
    for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
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
    std::vector<cuda_p2p::Shared> shared;
    for (int g = 0; g < gpus(); ++g) {
      const cuda_p2p::OnDevice here(g);
      const auto& heap = heaps_[static_cast<std::size_t>(g)];
      cuda_p2p::check(cudaMemset(heap.data(), 0, heap.size()), "cudaMemset");
      cuda_p2p::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      shared.push_back(shared_of(g));
    }
    for (std::size_t k = 0; k < records_->size(); ++k) (*records_)[k] = {};
    for (const int device : devices_) {  // loading it while another GPU spins would hang
      const cuda_p2p::OnDevice here(device);
      cudaFuncAttributes attributes;
      cuda_p2p::check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    }
    const auto start = std::chrono::steady_clock::now();
    for (int g = 0; g < gpus(); ++g) {
      const cuda_p2p::OnDevice here(g);
      void* parameters[] = {&shared[static_cast<std::size_t>(g)],
                            const_cast<Args*>(&args[static_cast<std::size_t>(g)])};
      cuda_p2p::check(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks_)),
                                                  dim3(static_cast<unsigned>(threads)), parameters,
                                                  fast, streams_[static_cast<std::size_t>(g)]),
                      "cudaLaunchCooperativeKernel");
    }
    for (const cudaStream_t stream : streams_)
      cuda_p2p::check(cudaStreamSynchronize(stream), "kernel");
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return gave_up() ? -1.0 : elapsed.count();
  }

 private:
  cuda_p2p::Shared shared_of(int g) const {
    cuda_p2p::Shared s;
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
  std::vector<cuda_p2p::DeviceArray<std::byte>> heaps_;
  Symmetric<Flag> leave_;
  std::vector<cudaStream_t> streams_;
  std::unique_ptr<cuda_p2p::MappedArray<WaitRecord>> records_;
  cuda_p2p::MappedArray<unsigned> words_{2};
  cuda_p2p::MappedArray<std::int64_t> iteration_{1};
  cuda_p2p::MappedArray<double> residual_{1};
};

}  // namespace gpu_rig
