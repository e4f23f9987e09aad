// The kernels of the baselines, as launches of functors. A functor is called from every thread:
// `begin(first)` once (`first`: in one thread of the grid), then, for its share,
//   sweep:    f(i, here, sums),        i < n;
//   multiply: f(row, (A x)(row), here, sums);
//   await:    f.poll(i) until it is true, then f.take(i), and at last f.finish(k), k < f.outputs();
//   step:     f(block, thread), the first f.sync.blocks blocks between a wait and a signal.
// Sums are reduced within the kernel, in an order that depends on the grid alone.
#pragma once

#include <gpu_names.hpp>

#include <algorithm>
#include <cstdint>

#include "cpufree/baselines/slices.hpp"
#include "cpufree/baselines/stencil/step.hpp"
#include "cpufree/engines/gpu_p2p/atomic.cuh"
#include "cpufree/engines/gpu_p2p/shared.hpp"

namespace cpufree::baselines {

// Words that the host reads while a kernel runs.
using gpu_p2p::load_packet;
using gpu_p2p::store_packet;
__device__ inline void set_loop(gpuLoopHandle_t handle, bool again) {
  gpuGraphSetLoop(handle, again ? 1U : 0U);
}

namespace kernels {

__device__ inline unsigned load_word(const unsigned* word) {
  unsigned value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline void store_word(unsigned* word, unsigned value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
using gpu_p2p::kWarp;
using gpu_p2p::nanoseconds;

constexpr unsigned kFull = 0xffffffffU;
constexpr int kWarps = kThreads / kWarp;

// The block's sums, in its first thread.
template <int K>
__device__ void sum_block(double (&sums)[K]) {
  __shared__ double found[K][kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  __syncthreads();  // `found` of a call before is read no more
#pragma unroll
  for (int k = 0; k < K; ++k) {
    for (int half = kWarp / 2; half > 0; half /= 2)
      sums[k] += __shfl_xor_sync(kFull, sums[k], half);
    if (lane == 0) found[k][warp] = sums[k];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    sums[k] = 0.0;
    for (int w = 0; w < kWarps; ++w) sums[k] += found[k][w];
  }
}

template <int K>
__device__ void deliver(const double (&sums)[K], const SumTarget& to) {
  const SumPackets& packets = to.packets;
  for (int k = 0; k < K; ++k) {
    const double total = to.base == nullptr ? sums[k] : to.base[k] + sums[k];
    to.out[k] = total;
    if (packets.epoch == nullptr) continue;
    const std::uint64_t epoch = *packets.epoch;
    const std::int64_t place = SumPackets::place(epoch, packets.pes, packets.pe, k);
    for (int pe = 0; pe < packets.pes; ++pe) store_packet(packets.slots[pe] + place, total, epoch);
  }
}

// The sums of all blocks, by the last one to come.
template <int K>
__device__ void finish_sums(double (&sums)[K], const SumTarget& to) {
  __shared__ bool last;
  sum_block(sums);
  if (gridDim.x == 1) {
    if (threadIdx.x == 0) deliver(sums, to);
    return;
  }
  if (threadIdx.x == 0) {
    for (int k = 0; k < K; ++k) to.partial[blockIdx.x * kMaxSums + k] = sums[k];
    __threadfence();
    last = atomicInc(to.arrived, gridDim.x - 1) == gridDim.x - 1;  // 0 again after the last one
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    sums[k] = 0.0;
    for (unsigned b = threadIdx.x; b < gridDim.x; b += kThreads)
      sums[k] += __ldcg(to.partial + b * kMaxSums + k);
  }
  sum_block(sums);
  if (threadIdx.x == 0) deliver(sums, to);
}

template <int K, class F>
__global__ void __launch_bounds__(kThreads) sweep(std::int32_t n, F f, SumTarget to) {
  double sums[K == 0 ? 1 : K] = {};
  const auto here = f.begin(blockIdx.x == 0 && threadIdx.x == 0);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += stride)
    f(static_cast<std::int32_t>(i), here, sums);
  if constexpr (K > 0) finish_sums(sums, to);
}

// The threads of the grid, as WarpSlices sees them.
struct GridThreads {
  static constexpr int warp_width = kWarp;
  __device__ static int lane() { return static_cast<int>(blockIdx.x * kThreads + threadIdx.x); }
  __device__ static int lanes() { return static_cast<int>(gridDim.x * kThreads); }
  __device__ static unsigned warp_ballot(bool value) { return __ballot_sync(kFull, value); }
  __device__ static int lowest_bit(unsigned bits) { return __ffs(static_cast<int>(bits)) - 1; }
  template <class V>
  __device__ static V warp_broadcast(V value, int from) {
    return __shfl_sync(kFull, value, from);
  }
  template <class V>
  __device__ static V warp_sum(V value) {
    for (int half = kWarp / 2; half > 0; half /= 2) value += __shfl_xor_sync(kFull, value, half);
    return value;
  }
};

// The operand of a product; it is constant while the kernel runs.
template <class T>
struct ReadOnly {
  static constexpr bool in_pieces = false;
  const T* values;
  template <int N>
  __device__ void fetch(const std::int32_t (&columns)[N], T (&out)[N]) const {
#pragma unroll
    for (int k = 0; k < N; ++k) out[k] = __ldg(values + columns[k]);
  }
  __device__ T operator()(std::int32_t column) const { return __ldg(values + column); }
};

template <int K, class T, class F>
__global__ void __launch_bounds__(kThreads)
    multiply(SliceView<T> a, const T* x, F f, SumTarget to) {
  double sums[K == 0 ? 1 : K] = {};
  const auto here = f.begin(blockIdx.x == 0 && threadIdx.x == 0);
  GridThreads threads;
  a.matrix.multiply(threads, {0, a.rows, 0}, ReadOnly<T>{x},
                    [&](std::int32_t row, int, T value) { f(row, value, here, sums); });
  if constexpr (K > 0) finish_sums(sums, to);
}

// Waits for one packet. False: the bound is over, here or elsewhere.
template <class F>
__device__ bool wait_for(const F& f, std::int32_t i, const WaitBound& bound) {
  std::uint64_t start = 0;
  for (unsigned look = 1; !f.poll(i); ++look) {
    if (look % 64 != 0) continue;
    if (load_word(bound.abort[bound.pe]) != 0) return false;
    if (start == 0) start = nanoseconds();
    if (nanoseconds() - start <= bound.limit_ns) continue;
    if (atomicExch(bound.abort[bound.pe], 1U) == 0U) *bound.report = i + 1;
    for (int pe = 0; pe < bound.pes; ++pe) store_word(bound.abort[pe], 1U);
    return false;
  }
  return true;
}

template <class F>
__global__ void __launch_bounds__(kThreads) await(std::int32_t n, F f, WaitBound bound) {
  const auto i = static_cast<std::int32_t>(blockIdx.x * kThreads + threadIdx.x);
  if (i < n && wait_for(f, i, bound)) f.take(i);
  if (f.outputs() == 0) return;  // else there is one block
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < f.outputs()) f.finish(static_cast<int>(threadIdx.x));
}

// Whether the neighbours have ended the step before this one, as all threads of a block know then.
struct SideFlags {
  const StepSync& sync;
  __device__ bool poll(std::int32_t side) const {
    return reached(gpu_p2p::load_flag(sync.arrived[side]), *sync.epoch);
  }
};
__device__ inline bool await_sides(const StepSync& sync) {
  __shared__ bool there;
  if (threadIdx.x == 0) {
    there = true;
    for (std::int32_t side = 0; side < sync.sides; ++side)
      there = there && wait_for(SideFlags{sync}, side, sync.bound);
    gpu_p2p::fence_acquire_system();
  }
  __syncthreads();
  return there;
}

// The last block to come tells them. Every block's stores come before its arrival (barrier, fence,
// atomic), and all arrivals before the flags.
__device__ inline void tell_sides(const StepSync& sync) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();
  const auto blocks = static_cast<unsigned>(sync.blocks);
  if (atomicInc(sync.ended, blocks - 1) != blocks - 1) return;  // 0 again after the last one
  __threadfence_system();
  const Epoch epoch = *sync.epoch + 1;
  *sync.epoch = epoch;
  for (std::int32_t side = 0; side < sync.sides; ++side)
    gpu_p2p::store_flag(sync.tell[side], epoch);
}

template <class F>
__global__ void __launch_bounds__(kThreads, F::kResident) step(const __grid_constant__ F f) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const bool meets = block < f.sync.blocks;
  if (meets && !await_sides(f.sync)) return;
  f(block, static_cast<std::int32_t>(threadIdx.x));
  if (meets) tell_sides(f.sync);
}

struct MeetingFlags {
  const StepMeeting& meeting;
  __device__ bool poll(std::int32_t side) const {
    return reached(gpu_p2p::load_flag(meeting.arrived[side]), meeting.epoch);
  }
};
// What steps before it on the stream have stored comes before the flags.
inline __global__ void meet(const __grid_constant__ StepMeeting meeting) {
  gpu_p2p::fence_release_system();
  for (std::int32_t side = 0; side < meeting.sides; ++side)
    gpu_p2p::store_flag(meeting.tell[side], meeting.epoch);
  for (std::int32_t side = 0; side < meeting.sides; ++side)
    if (!wait_for(MeetingFlags{meeting}, side, meeting.bound)) return;
  gpu_p2p::fence_acquire_system();
}

inline unsigned blocks_for(std::int64_t threads, int multiprocessors) {
  const std::int64_t most = static_cast<std::int64_t>(multiprocessors) * (2048 / kThreads);
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((threads + kThreads - 1) / kThreads, 1, most));
}

}  // namespace kernels

// Blocks that a sweep or product has at most.
inline int most_blocks(int multiprocessors) { return multiprocessors * (2048 / kThreads); }

template <int K, class F>
gpuError_t launch_sweep(gpuStream_t stream, int multiprocessors, std::int32_t n, const F& f,
                        const SumTarget& to) {
  kernels::sweep<K><<<kernels::blocks_for(n, multiprocessors), kThreads, 0, stream>>>(n, f, to);
  return gpuGetLastError();
}

template <int K, class T, class F>
gpuError_t launch_multiply(gpuStream_t stream, int multiprocessors, const SliceView<T>& a,
                           const T* x, const F& f, const SumTarget& to) {
  const std::int64_t threads = static_cast<std::int64_t>(a.matrix.size.slices) * kernels::kWarp;
  kernels::multiply<K>
      <<<kernels::blocks_for(threads, multiprocessors), kThreads, 0, stream>>>(a, x, f, to);
  return gpuGetLastError();
}

template <class F>
gpuError_t launch_step(gpuStream_t stream, std::int32_t blocks, const F& f) {
  kernels::step<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(f);
  return gpuGetLastError();
}

inline gpuError_t launch_meeting(gpuStream_t stream, const StepMeeting& meeting) {
  kernels::meet<<<1, 1, 0, stream>>>(meeting);
  return gpuGetLastError();
}

template <class F>
gpuError_t launch_await(gpuStream_t stream, std::int32_t n, const F& f, const WaitBound& bound) {
  kernels::await<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      n, f, bound);
  return gpuGetLastError();
}

}  // namespace cpufree::baselines
