// Kernels for GPUs as the stand-in of a GPU's runtime launches them: every thread of the blocks of
// a GPU is a fiber (warp_rig.hpp), and every GPU is a thread of its own, in this process or
// another.
#pragma once

#include <atomic>

#include "host_kernel.hpp"
#include "warp_rig.hpp"

namespace host_engine {

using namespace cpufree;

// A packet may be written by another thread or process while it is read: the tag first, for a
// reader that sees the tag sees the value.
template <class Base>
class Crossing : public Base {
 public:
  using Base::Base;
  Packet get_packet(const Packet* packet) {
    this->machine().look();
    auto& p = const_cast<Packet&>(*packet);
    Packet out;
    out.tag = std::atomic_ref<std::uint64_t>(p.tag).load(std::memory_order_acquire);
    out.value = std::atomic_ref<double>(p.value).load(std::memory_order_relaxed);
    return out;
  }
  using Base::get_packet;  // small ones stay within a GPU, a thread
  FloatPacket get_packet(const FloatPacket* packet) {
    this->machine().look();
    auto& p = const_cast<FloatPacket&>(*packet);
    FloatPacket out;
    out.number = std::atomic_ref<std::uint32_t>(p.number).load(std::memory_order_acquire);
    for (int k = 0; k < 3; ++k)
      out.value[k] = std::atomic_ref<float>(p.value[k]).load(std::memory_order_relaxed);
    return out;
  }
};

// What goes wrong on purpose in kernels that are launched from now on, and what threads of the last
// one had filed when it ended. For tests of one GPU.
inline warp_rig::Mishap mishap;

// The address of body(port, args) as a kernel.
template <class P, class Args, class F>
const void* kernel_of(F) {
  static std::atomic<unsigned> seed{1};
  static const Kernel one{sizeof(Args), [](const gpu_p2p::Shared& shared, const void* args,
                                           int blocks, int threads, std::size_t fast_bytes) {
                            const bool faulty = mishap.fault.kind != cpu_fibers::Fault::Kind::none;
                            warp_rig::run<P>(
                                shared.pes, blocks, threads, fast_bytes, shared.heaps, seed++,
                                [&](P& port, int pe) {
                                  if (pe == shared.pe) F{}(port, *static_cast<const Args*>(args));
                                },
                                faulty ? &mishap : nullptr);
                          }};
  return &one;
}

}  // namespace host_engine
