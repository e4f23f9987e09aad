// The kernel that measures messages by NVSHMEM's device library, one block on each of two PEs.
//
// Signals count up. A round trip: PE 0 sends with signal e, PE 1 has seen e and sends with e, PE 0
// sees e. So a target is written only by who has seen that its former values were waited for, and a
// signal that is seen is never of an earlier exchange. Waits look at the signal
// (nvshmem_signal_fetch) and not into NVSHMEM's own wait, which has no bound.
#include <nvshmem.h>
#include <nvshmemx.h>

#include "cpufree/probes/nvshmem_args.hpp"

namespace cpufree::nvshmem {

namespace {

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ void tell(const ProbeArgs& a, std::uint64_t value) {
  if (threadIdx.x != 0) return;
  nvshmem_quiet();
  nvshmemx_signal_op(a.signal, value, NVSHMEM_SIGNAL_SET, 1 - a.pe);
}

__device__ void put_values(const ProbeArgs& a, std::int64_t place, std::int64_t bytes) {
  auto* const to = reinterpret_cast<double*>(a.target + place);
  const auto* const from = reinterpret_cast<const double*>(a.source + place);
  for (std::int64_t i = threadIdx.x; i < bytes / 8; i += blockDim.x)
    nvshmem_double_p(to + i, from[i], 1 - a.pe);
}

// As a column of a matrix of two columns is put into one behind the other.
__device__ void put_strided(const ProbeArgs& a, std::int64_t place, std::int64_t bytes) {
  const std::int64_t stride = stride_of(Verb::iput);
  nvshmemx_double_iput_block(reinterpret_cast<double*>(a.target + place),
                             reinterpret_cast<const double*>(a.source + stride * place), 1, stride,
                             static_cast<std::size_t>(bytes / 8), 1 - a.pe);
}

// By all threads of the block: message k, then its signal.
__device__ void send(const ProbeArgs& a, int k, std::int64_t bytes, std::uint64_t value) {
  const std::int64_t place = k * a.bytes;
  char* const to = a.target + place;
  const char* const from = a.source + place;
  const auto size = static_cast<std::size_t>(bytes);
  const int pe = 1 - a.pe;
  switch (a.verb) {
    case Verb::p:
      put_values(a, place, bytes);
      break;
    case Verb::iput:
      put_strided(a, place, bytes);
      break;
    case Verb::put_thread:
      if (threadIdx.x == 0) nvshmem_putmem_nbi(to, from, size, pe);
      break;
    case Verb::put_warp:
      if (threadIdx.x < 32) nvshmemx_putmem_nbi_warp(to, from, size, pe);
      break;
    case Verb::put_block:
      nvshmemx_putmem_nbi_block(to, from, size, pe);
      break;
    case Verb::put_signal:
      nvshmemx_putmem_signal_nbi_block(to, from, size, a.signal, value, NVSHMEM_SIGNAL_SET, pe);
      return;
    case Verb::get:
      return;
  }
  __syncthreads();  // what all have stored comes before the quiet of one
  tell(a, value);
}

// By all threads: whether the other PE's signal has come.
__device__ bool seen(const ProbeArgs& a, std::uint64_t value) {
  bool here = true;
  if (threadIdx.x == 0) {
    const std::uint64_t begin = nanoseconds();
    for (unsigned look = 1; nvshmem_signal_fetch(a.signal) < value; ++look)
      if (look % 256 == 0 && nanoseconds() - begin > a.wait_limit) {
        here = false;
        *a.late = 1;
        break;
      }
  }
  return __syncthreads_and(here) != 0;
}

__device__ bool round_trips(const ProbeArgs& a, std::uint64_t& epoch) {
  for (int k = 0; k < a.rounds; ++k) {
    ++epoch;
    if (a.pe == 1 && !seen(a, epoch)) return false;
    send(a, 0, a.bytes, epoch);
    if (a.pe == 0 && !seen(a, epoch)) return false;
  }
  return true;
}

__device__ bool window(const ProbeArgs& a, std::uint64_t& epoch) {
  const std::uint64_t last = epoch + static_cast<std::uint64_t>(a.messages);
  if (a.pe == 0)
    for (int k = 0; k < a.messages; ++k) send(a, k, a.bytes, epoch + 1 + static_cast<unsigned>(k));
  epoch = last;
  if (!seen(a, last)) return false;
  if (a.pe == 1) send(a, 0, 8, last);
  return true;
}

// The loads of a get go through the L1 cache, which must not have the values from before: a fence
// before each exchange empties it, and no two single gets share a line. Those of a window lie side
// by side, as those of other ways do: where they are shorter than a line, most find it in the
// cache.
__device__ bool gets(const ProbeArgs& a) {
  constexpr std::int64_t kLine = 128;
  const int count = a.window ? a.messages : a.rounds;
  const std::int64_t apart = !a.window && a.bytes < kLine ? kLine : a.bytes;
  for (int k = 0; k < count; ++k) {
    const std::int64_t place = k * apart;
    nvshmemx_getmem_block(a.target + place, a.source + place, static_cast<std::size_t>(a.bytes),
                          1 - a.pe);
    __syncthreads();
  }
  return true;
}

__device__ bool exchange(const ProbeArgs& a, std::uint64_t& epoch) {
  if (a.verb == Verb::get) return gets(a);
  return a.window ? window(a, epoch) : round_trips(a, epoch);
}

__device__ void read_clock(const ProbeArgs& a, int end) {
  if (threadIdx.x != 0) return;
  a.clock->now[end] = nanoseconds();
  a.clock->ticks[end] = static_cast<std::uint64_t>(clock64());
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 1) nvshmem_probe(const ProbeArgs a) {
  std::uint64_t epoch = a.epoch;
  for (int k = 0; k < a.warm_ups; ++k)
    if (!exchange(a, epoch)) return;
  read_clock(a, 0);
  for (int k = 0; k < a.repeats; ++k) {
    __syncthreads();
    __threadfence_system();
    __syncthreads();
    const auto begin = static_cast<std::uint64_t>(clock64());
    if (!exchange(a, epoch)) return;
    __syncthreads();
    if (threadIdx.x == 0) a.ticks[k] = static_cast<std::uint64_t>(clock64()) - begin;
  }
  read_clock(a, 1);
}

}  // namespace cpufree::nvshmem
