// The launches of cpufree/baselines/cuda/gpu_launch.hpp on the host, for tests: the same functors,
// one thread. A kernel that waits is ready once all that it waits for is there.
#pragma once

#include <gpu_names.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "cpufree/baselines/gpu.hpp"
#include "cpufree/baselines/slices.hpp"
#include "cpufree/baselines/stencil/step.hpp"
#include "cpufree/formats/local.hpp"

namespace cpufree::baselines {

inline void store_packet(Packet* packet, double value, std::uint64_t tag) {
  std::atomic_ref(packet->value).store(value, std::memory_order_relaxed);
  std::atomic_ref(packet->tag).store(tag, std::memory_order_release);
}
inline Packet load_packet(const Packet* packet) {
  auto* const p = const_cast<Packet*>(packet);
  const std::uint64_t tag = std::atomic_ref(p->tag).load(std::memory_order_acquire);
  return {std::atomic_ref(p->value).load(std::memory_order_relaxed), tag};
}
inline void set_loop(const gpuLoopHandle_t& handle, bool again) { *handle = again ? 1U : 0U; }

inline int most_blocks(int multiprocessors) { return multiprocessors; }

namespace host_kernels {

template <int K>
void deliver(const double (&sums)[K], const SumTarget& to) {
  for (int k = 0; k < K; ++k) {
    const double total = to.base == nullptr ? sums[k] : to.base[k] + sums[k];
    to.out[k] = total;
    if (to.packets.epoch == nullptr) continue;
    const std::uint64_t epoch = *to.packets.epoch;
    const auto place = SumPackets::place(epoch, to.packets.pes, to.packets.pe, k);
    for (int pe = 0; pe < to.packets.pes; ++pe)
      store_packet(to.packets.slots[pe] + place, total, epoch);
  }
}

template <class T>
T row_of(const SliceView<T>& a, const T* x, std::int32_t row) {
  const WarpSlices<T>& m = a.matrix;
  const int lane = row % kSliceRows;
  const T sum = m.without_tail(row / kSliceRows, lane, Operand<T>{x});
  const std::int32_t tails = m.slice[row / kSliceRows].tails;
  if (tails < 0) return sum;
  T part[kSliceRows] = {};
  const std::int64_t begin = m.tail_ptr[tails + lane];
  for (std::int64_t k = begin; k < m.tail_ptr[tails + lane + 1]; ++k)
    part[(k - begin) % kSliceRows] += m.tail_val[k] * x[m.tail_col[k]];
  for (int half = kSliceRows / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) part[l] += part[l + half];
  return sum + part[0];
}

}  // namespace host_kernels

template <int K, class F>
gpuError_t launch_sweep(gpuStream_t stream, int, std::int32_t n, const F& f, const SumTarget& to) {
  return host_gpu::launch(stream, {{},
                                   [=] {
                                     double sums[K == 0 ? 1 : K] = {};
                                     const auto here = f.begin(true);
                                     for (std::int32_t i = 0; i < n; ++i) f(i, here, sums);
                                     if constexpr (K > 0) host_kernels::deliver(sums, to);
                                   },
                                   {},
                                   0,
                                   {},
                                   {}});
}

template <int K, class T, class F>
gpuError_t launch_multiply(gpuStream_t stream, int, const SliceView<T>& a, const T* x, const F& f,
                           const SumTarget& to) {
  return host_gpu::launch(stream, {{},
                                   [=] {
                                     double sums[K == 0 ? 1 : K] = {};
                                     const auto here = f.begin(true);
                                     for (std::int32_t row = 0; row < a.rows; ++row)
                                       f(row, host_kernels::row_of(a, x, row), here, sums);
                                     if constexpr (K > 0) host_kernels::deliver(sums, to);
                                   },
                                   {},
                                   0,
                                   {},
                                   {}});
}

template <class F>
gpuError_t launch_step(gpuStream_t stream, std::int32_t blocks, const F& f) {
  const auto ready = [=] {
    if (f.sync.blocks == 0) return true;
    for (std::int32_t side = 0; side < f.sync.sides; ++side) {
      auto& flag = const_cast<Flag*>(f.sync.arrived[side])->value;
      if (!reached(std::atomic_ref(flag).load(), *f.sync.epoch)) return false;
    }
    return true;
  };
  const auto run = [=] {
    for (std::int32_t block = 0; block < blocks; ++block)
      for (std::int32_t thread = 0; thread < kThreads; ++thread) f(block, thread);
    if (f.sync.blocks == 0) return;
    const Epoch epoch = ++*f.sync.epoch;
    for (std::int32_t side = 0; side < f.sync.sides; ++side)
      std::atomic_ref(f.sync.tell[side]->value).store(epoch);
  };
  return host_gpu::launch(stream, {ready, run, {}, 0, {}, {}});
}

inline gpuError_t launch_meeting(gpuStream_t stream, const StepMeeting& meeting) {
  const auto waited = std::make_shared<std::optional<Deadline>>();  // since it was asked first
  const auto ready = [=] {  // asked again and again: the flags stay as they are
    for (std::int32_t side = 0; side < meeting.sides; ++side)
      std::atomic_ref(meeting.tell[side]->value).store(meeting.epoch);
    for (std::int32_t side = 0; side < meeting.sides; ++side) {
      auto& flag = const_cast<Flag*>(meeting.arrived[side])->value;
      if (reached(std::atomic_ref(flag).load(), meeting.epoch)) continue;
      if (!waited->has_value()) waited->emplace(1e-9 * static_cast<double>(meeting.bound.limit_ns));
      if (!(*waited)->over()) return false;
      *meeting.bound.report = side + 1;
      return true;
    }
    return true;
  };
  return host_gpu::launch(stream, {ready, {}, {}, 0, {}, {}});
}

template <class F>
gpuError_t launch_await(gpuStream_t stream, std::int32_t n, const F& f, const WaitBound&) {
  return host_gpu::launch(stream, {[=] {
                                     for (std::int32_t i = 0; i < n; ++i)
                                       if (!f.poll(i)) return false;
                                     return true;
                                   },
                                   [=] {
                                     for (std::int32_t i = 0; i < n; ++i) f.take(i);
                                     for (int k = 0; k < f.outputs(); ++k) f.finish(k);
                                   },
                                   {},
                                   0,
                                   {},
                                   {}});
}

}  // namespace cpufree::baselines
