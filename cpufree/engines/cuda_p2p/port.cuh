// The port on GPUs that reach one another's memory: a PE is a GPU, a block is a thread block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/device/port.hpp"
#include "cpufree/engines/cuda_p2p/atomic.cuh"

namespace cpufree::cuda_p2p {

inline constexpr int kMaxPes = 16;

// What one launch shares, handed to the kernel by value: one for each PE. Pointers into host memory
// are mapped and pinned.
struct Shared {
  int pe = 0;
  int pes = 1;
  std::byte* heaps[kMaxPes] = {};  // symmetric heaps, all of them addressable from here
  Flag* leave = nullptr;           // symmetric: not 0 when all PEs are to leave
  const volatile unsigned* host_leave = nullptr;  // host: the same, from the host
  const volatile unsigned* notes = nullptr;       // host: see Note
  volatile std::int64_t* iteration = nullptr;     // host: progress
  volatile double* residual = nullptr;            // host: progress
  WaitRecord* records = nullptr;                  // host: one per block of this PE
  std::uint64_t wait_limit_ns = 0;
};

class Port {
 public:
  static constexpr int width = 1;
  static constexpr int kMaxValues = 8;  // of one sum

  struct Wait {
    std::uint64_t start = 0;
    std::uint32_t looks = 0;
  };

  // `scratch`: shared memory of the block, kScratchDoubles doubles.
  static constexpr int kScratchDoubles = kMaxValues * 33;
  __device__ Port(const Shared& shared, double* scratch) : shared_(shared), scratch_(scratch) {}

  __device__ int pe() const { return shared_.pe; }
  __device__ int pes() const { return shared_.pes; }
  __device__ int block() const { return static_cast<int>(blockIdx.x); }
  __device__ int blocks() const { return static_cast<int>(gridDim.x); }
  __device__ int lane() const { return static_cast<int>(threadIdx.x); }
  __device__ int lanes() const { return static_cast<int>(blockDim.x); }

  __device__ void sync_block() { __syncthreads(); }
  __device__ bool all(bool value) { return __syncthreads_and(value ? 1 : 0) != 0; }
  __device__ unsigned any_bits(unsigned value) {
    auto* bits = reinterpret_cast<unsigned*>(scratch_);
    const unsigned mine = __reduce_or_sync(0xffffffffU, value);
    if (lane() % 32 == 0) bits[lane() / 32] = mine;
    __syncthreads();
    const unsigned other = lane() % 32 < lanes() / 32 ? bits[lane() % 32] : 0U;
    const unsigned all_bits = __reduce_or_sync(0xffffffffU, other);
    __syncthreads();
    return all_bits;
  }

  // Blocks are whole warps. Butterflies within warps, then one over the warps' sums: one order for
  // every thread and run.
  __device__ void sum(double* values, int count) {
    const int warp = lane() / 32;
    const int warps = lanes() / 32;
    for (int k = 0; k < count; ++k) {
      for (int half = 16; half > 0; half /= 2)
        values[k] += __shfl_xor_sync(0xffffffffU, values[k], half);
      if (lane() % 32 == 0) scratch_[k * 33 + warp] = values[k];
    }
    __syncthreads();
    for (int k = 0; k < count; ++k) {
      double v = lane() % 32 < warps ? scratch_[k * 33 + lane() % 32] : 0.0;
      for (int half = 16; half > 0; half /= 2) v += __shfl_xor_sync(0xffffffffU, v, half);
      values[k] = v;
    }
    __syncthreads();
  }

  template <class T>
  __device__ T* peer(T* object, int pe) const {
    return reinterpret_cast<T*>(shared_.heaps[pe] +
                                (reinterpret_cast<std::byte*>(object) - shared_.heaps[shared_.pe]));
  }
  template <class T>
  __device__ void put(T* object, int pe, T value) {
    *peer(object, pe) = value;
  }
  __device__ void put_packet(Packet* packet, int pe, double value, std::uint64_t tag) {
    store_packet(peer(packet, pe), value, tag);
  }
  __device__ Packet get_packet(const Packet* packet) { return load_packet(packet); }
  __device__ void put_flag(Flag* flag, int pe, Epoch epoch) { store_flag(peer(flag, pe), epoch); }
  __device__ Epoch get_flag(const Flag* flag) { return load_flag(flag); }
  __device__ void publish(Scope scope) {
    scope == Scope::system ? fence_release_system() : fence_release_gpu();
  }
  __device__ void acquire(Scope scope) {
    scope == Scope::system ? fence_acquire_system() : fence_acquire_gpu();
  }

  __device__ Wait start_wait() { return {nanoseconds(), 0}; }
  // Looks at the host's word over PCIe only now and then: that look takes a microsecond.
  __device__ bool keep_waiting(Wait& wait) {
    const std::uint32_t look = ++wait.looks;
    if (look % 64 != 0) return true;
    if (load_flag(shared_.leave) != 0) return false;
    if (nanoseconds() - wait.start > shared_.wait_limit_ns) return false;
    return look % 8192 != 0 || *shared_.host_leave == 0;
  }
  __device__ void give_up(const Wait& wait, WaitRecord record) {
    const bool told = load_flag(shared_.leave) != 0 || *shared_.host_leave != 0;
    record.state = told ? BlockState::aborted : BlockState::expired;
    record.seconds = 1e-9 * static_cast<double>(nanoseconds() - wait.start);
    shared_.records[block()] = record;
    for (int pe = 0; pe < shared_.pes; ++pe) put_flag(shared_.leave, pe, 1);
  }

  __device__ unsigned host_notes() const { return *shared_.notes; }
  __device__ void report(std::int64_t iteration, double residual) {
    *shared_.residual = residual;
    *shared_.iteration = iteration;
  }

 private:
  const Shared& shared_;
  double* scratch_;
};

static_assert(cpufree::Port<Port>);

}  // namespace cpufree::cuda_p2p
