// The kernels of bench/memory_rates.cu, and what they are told.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32, kSlots = 2, kSlotBytes = 2560;
constexpr int kRing = kWarps * kSlots * kSlotBytes, kMostPhases = 32, kGathers = 8;
constexpr int kOperand = 8192;  // values of an operand in shared memory
constexpr int kRun = 3;         // neighbouring operands of a node with three unknowns

// A gather of a warp reads `sectors` different sectors of 32 bytes, lanes of one sector side by
// side, `apart` sectors from one to the next; the next gather but for `again` - 1 of them reads
// others, scattered over a window of `window` sectors.
struct Gathers {
  unsigned sectors = 8, apart = 1, window = 1, again = 1;
};

struct Args {
  const unsigned char* stream = nullptr;
  long long block_bytes = 0;  // of a block's stream in a phase; a multiple of kWarps * kSlotBytes
  int warps = kWarps;         // of a block that stream: it has fewer slices of rows than warps
  int kept = -1;              // of 256 copies, marked evict-last, the others evict-first; -1: none
  const double* operand = nullptr;
  Gathers gathers;
  int rounds = 0;  // gathers of a warp in a phase, in groups of kGathers, where nothing streams
  double* vectors = nullptr;
  long long rows = 0, pitch = 0;
  int phases = 0;
  unsigned long long* begin = nullptr;  // phases x blocks
  unsigned long long* end = nullptr;
  double* sink = nullptr;
};

__device__ unsigned long long now() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

enum Hint : unsigned { kDrop, kNone, kKeep };

__device__ void expect_copy(unsigned slot, const void* from, unsigned bytes, unsigned barrier,
                            Hint hint) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
  asm volatile(
      "{ .reg .pred drop, keep; .reg .b64 first, normal, last, policy;"
      "setp.eq.u32 drop, %4, 0;"
      "setp.eq.u32 keep, %4, 2;"
      "createpolicy.fractional.L2::evict_first.b64 first, 1.0;"
      "createpolicy.fractional.L2::evict_normal.b64 normal, 1.0;"
      "createpolicy.fractional.L2::evict_last.b64 last, 1.0;"
      "selp.b64 policy, first, normal, drop;"
      "selp.b64 policy, last, policy, keep;"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1], %2, [%3], policy; }" ::"r"(slot),
      "l"(from), "r"(bytes), "r"(barrier), "r"(static_cast<unsigned>(hint))
      : "memory");
}

// Bounded: a copy that does not end in four seconds ends the kernel.
__device__ void await(unsigned barrier, unsigned parity) {
  const unsigned long long begin = now();
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    if (done == 0 && now() - begin > 4000000000ULL) __trap();
  }
}

struct Gatherer {
  const double* x;
  Gathers g;
  unsigned lane, state, step = 0, left = 0;

  __device__ double next() {
    if (left == 0) {
      state = state * 1664525U + 1013904223U;
      left = g.again;
    }
    --left, ++step;
    const unsigned first = __umulhi(state, g.window);
    const unsigned mine = lane * g.sectors / 32;
    unsigned at = first + mine * g.apart;
    if (at >= g.window) at -= g.window;
    return __ldg(x + 4ULL * at + ((lane + step) & 3U));
  }
  // So many independent loads, then their sum, as a chunk of a slice is multiplied.
  __device__ double some() {
    double found[kGathers];
#pragma unroll
    for (int k = 0; k < kGathers; ++k) found[k] = next();
    double sum = 0;
#pragma unroll
    for (int k = 0; k < kGathers; ++k) sum += found[k];
    return sum;
  }
};

struct Ring {
  unsigned slots, barriers;  // of this warp
  unsigned count = 0;        // copies that were awaited
};

// A warp's part of a block's stream through its ring; `each` after each slot.
template <class F>
__device__ double stream(const Args& a, Ring& ring, F&& each) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long copies = warp < a.warps ? a.block_bytes / (a.warps * kSlotBytes) : 0;
  const unsigned char* const from =
      a.stream + blockIdx.x * a.block_bytes + static_cast<long long>(warp) * copies * kSlotBytes;
  const unsigned base = ring.count;
  double sum = 0;
  const auto start = [&](long long k) {
    const unsigned slot = (base + static_cast<unsigned>(k)) % kSlots;
    const unsigned of_256 = static_cast<unsigned>(a.kept);
    const Hint hint = a.kept < 0                                            ? kNone
                      : (static_cast<unsigned>(k) * of_256 & 255U) < of_256 ? kKeep
                                                                            : kDrop;
    expect_copy(ring.slots + slot * kSlotBytes, from + k * kSlotBytes, kSlotBytes,
                ring.barriers + 8 * slot, hint);
  };
  if (lane == 0)
    for (long long k = 0; k < kSlots && k < copies; ++k) start(k);
  for (long long k = 0; k < copies; ++k) {
    const unsigned number = base + static_cast<unsigned>(k), slot = number % kSlots;
    await(ring.barriers + 8 * slot, number / kSlots % 2);
    for (unsigned b = lane * 8; b < kSlotBytes; b += 256) {
      double value;
      asm volatile("ld.shared.f64 %0, [%1];"
                   : "=d"(value)
                   : "r"(ring.slots + slot * kSlotBytes + b)
                   : "memory");
      sum += value;
    }
    sum += each();
    __syncwarp();
    if (lane == 0 && k + kSlots < copies) start(k + kSlots);
  }
  ring.count = base + static_cast<unsigned>(copies);
  return sum;
}

__device__ Ring make_ring(unsigned char* fast) {
  const int warp = threadIdx.x / 32;
  Ring ring{shared_address(fast) + warp * kSlots * kSlotBytes,
            shared_address(fast) + kRing + 8 * warp * kSlots};
  if (threadIdx.x % 32 == 0)
    for (int slot = 0; slot < kSlots; ++slot)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ring.barriers + 8 * slot));
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  return ring;
}

template <class F>
__device__ void phases(const Args& a, F&& body) {
  const cg::grid_group grid = cg::this_grid();
  double sum = 0;
  for (int phase = 0; phase < a.phases; ++phase) {
    grid.sync();
    const unsigned long long begin = now();
    sum += body(phase);
    __syncthreads();
    if (threadIdx.x == 0) {
      a.begin[phase * gridDim.x + blockIdx.x] = begin;
      a.end[phase * gridDim.x + blockIdx.x] = now();
    }
  }
  if (sum == -1.25) *a.sink = sum;  // never: data are zeros
}

__device__ Gatherer gatherer(const Args& a, int phase) {
  return {a.operand, a.gathers, threadIdx.x % 32,
          (blockIdx.x * kWarps + threadIdx.x / 32) * 2654435761U + static_cast<unsigned>(phase)};
}

extern __shared__ __align__(128) unsigned char fast[];

__global__ void __launch_bounds__(kThreads, 1) ring_stream(const __grid_constant__ Args a) {
  Ring ring = make_ring(fast);
  phases(a, [&](int) { return stream(a, ring, [] { return 0.0; }); });
}

__global__ void __launch_bounds__(kThreads, 1) ring_and_gathers(const __grid_constant__ Args a) {
  Ring ring = make_ring(fast);
  phases(a, [&](int phase) {
    Gatherer g = gatherer(a, phase);
    return stream(a, ring, [&] { return g.some(); });
  });
}

// The same with operands in shared memory, behind the ring: `again` 1 reads values that lie
// anywhere in it, more than 1 a run of neighbours for all lanes.
__global__ void __launch_bounds__(kThreads, 1) ring_and_lookups(const __grid_constant__ Args a) {
  auto* const operand = reinterpret_cast<double*>(fast + kRing + 1024);
  for (int k = threadIdx.x; k < kOperand; k += kThreads) operand[k] = 0.0;
  Ring ring = make_ring(fast);
  unsigned state = (blockIdx.x * kThreads + threadIdx.x) * 2654435761U;
  phases(a, [&](int) {
    return stream(a, ring, [&] {
      double found[kGathers];
#pragma unroll
      for (int k = 0; k < kGathers; ++k) {
        if (a.gathers.again == 1 || k == 0) state = state * 1664525U + 1013904223U;
        const unsigned spread = a.gathers.again == 1 ? state : __shfl_sync(~0U, state, 0);
        const unsigned lane = a.gathers.again == 1 ? 0U : threadIdx.x % 32;
        found[k] = operand[((spread >> 16U) + lane + k) % kOperand];
      }
      double sum = 0;
#pragma unroll
      for (int k = 0; k < kGathers; ++k) sum += found[k];
      return sum;
    });
  });
}

__global__ void __launch_bounds__(kThreads, 1) gathers_alone(const __grid_constant__ Args a) {
  phases(a, [&](int phase) {
    Gatherer g = gatherer(a, phase);
    double sum = 0;
    for (int k = 0; k < a.rounds; k += kGathers) sum += g.some();
    return sum;
  });
}

// Loads of 16 bytes, eight at once, by a block that reads its part from one end to the other.
__global__ void __launch_bounds__(kThreads, 1) load_stream(const __grid_constant__ Args a) {
  const auto* const from = reinterpret_cast<const double2*>(a.stream + blockIdx.x * a.block_bytes);
  const long long count = a.block_bytes / 16;
  phases(a, [&](int) {
    double sum = 0;
    for (long long k = threadIdx.x; k < count; k += 8 * kThreads) {
      double2 v[8];
#pragma unroll
      for (int u = 0; u < 8; ++u)
        v[u] = k + u * kThreads < count ? __ldcg(from + k + u * kThreads) : double2{0, 0};
#pragma unroll
      for (int u = 0; u < 8; ++u) sum += v[u].x + v[u].y;
    }
    return sum;
  });
}

// A loop of a solver: R vectors are read and the first W of them written, a row for each thread,
// and a prefetch of the rows four rounds on.
template <int R, int W>
__global__ void __launch_bounds__(kThreads, 1) vector_loop(const __grid_constant__ Args a) {
  const long long share = (a.rows + gridDim.x - 1) / gridDim.x;
  const long long first = blockIdx.x * share, last = min(first + share, a.rows);
  phases(a, [&](int) {
    double sum = 0;
    for (long long row = first + threadIdx.x; row < last; row += kThreads) {
      double v[R];
#pragma unroll
      for (int r = 0; r < R; ++r) v[r] = a.vectors[r * a.pitch + row];
#pragma unroll
      for (int r = 0; r < R; ++r)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(a.vectors + r * a.pitch +
                                                      min(row + 4 * kThreads, a.rows - 1)));
      double s = 0;
#pragma unroll
      for (int r = 0; r < R; ++r) s += v[r];
      sum += s;
#pragma unroll
      for (int w = 0; w < W; ++w) a.vectors[w * a.pitch + row] = s * 0.5;
    }
    return sum;
  });
}

}  // namespace
