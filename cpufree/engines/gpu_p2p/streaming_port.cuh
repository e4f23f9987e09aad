// The port with copies that run by themselves: for kernels that stream from far memory. What needs
// them costs registers, so kernels that do not stream have the plain port.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpufree/engines/gpu_p2p/bulk.cuh"
#include "cpufree/engines/gpu_p2p/port.cuh"

namespace cpufree::gpu_p2p {

class StreamingPort : public Port {
  using Copies = StreamCopies;

 public:
  using Port::Port;
  static constexpr bool bulk_by_warp = Copies::by_warp;
  __device__ static void bulk_barrier(std::uint64_t* barrier) { Copies::make(barrier); }
  __device__ static void bulk_ready() { Copies::show(); }
  __device__ static void bulk_announce(std::uint64_t* barrier, std::uint32_t bytes) {
    Copies::announce(barrier, bytes);
  }
  __device__ static void bulk_copy(std::byte* to, const std::byte* from, std::uint32_t bytes,
                                   std::uint64_t* barrier, CacheHint hint) {
    Copies::start(to, from, bytes, barrier, hint);
  }
  __device__ static void bulk_end(std::uint64_t* barrier) { Copies::end(barrier); }
  __device__ static void bulk_wait(std::uint64_t* barrier, std::uint32_t parity) {
    await_phase<Copies>(barrier, parity);
  }
  template <class T>
  __device__ static auto in_fast_memory(const T* array) {
    return fast_array(array);
  }
};

}  // namespace cpufree::gpu_p2p
