// How fast the blocks of a persistent kernel read: streams, streams with gathers, loops over
// vectors.
//
//   nvcc -O3 -arch=sm_90 -o memory_rates bench/machine/memory_rates.cu && ./memory_rates [GPU] >
//   rates.jsonl
//
// One block on each multiprocessor, as solvers have them, and what a block does is fixed before it
// begins: the slowest block ends a phase. Phases lie between barriers of the whole grid. Each line
// of the output is one experiment, with the median of its phases. No data depend on a solver or a
// matrix. bench/machine/memory_rates.py makes a record of the lines.
#include <cooperative_groups.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32, kSlots = 2, kSlotBytes = 2560;
constexpr int kRing = kWarps * kSlots * kSlotBytes, kMostPhases = 32, kGathers = 8;
constexpr int kRun = 3;  // neighbouring operands of a node with three unknowns

// A gather of a warp reads `sectors` different sectors of 32 bytes, lanes of one sector side by
// side, `apart` sectors from one to the next; the next gather but for `again` - 1 of them reads
// others, scattered over a window of `window` sectors.
struct Gathers {
  unsigned sectors = 8, apart = 1, window = 1, again = 1;
};

struct Args {
  const unsigned char* stream = nullptr;
  long long block_bytes = 0;  // of a block's stream in a phase; a multiple of kWarps * kSlotBytes
  const double* operand = nullptr;
  Gathers gathers;
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

__device__ void expect_copy(unsigned slot, const void* from, unsigned bytes, unsigned barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(slot),
      "l"(from), "r"(bytes), "r"(barrier)
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
  // N independent loads, then their sum, as a chunk of a slice is multiplied.
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
  const long long copies = a.block_bytes / (kWarps * kSlotBytes);
  const unsigned char* const from =
      a.stream + blockIdx.x * a.block_bytes + static_cast<long long>(warp) * copies * kSlotBytes;
  const unsigned base = ring.count;
  double sum = 0;
  const auto start = [&](long long k) {
    const unsigned slot = (base + static_cast<unsigned>(k)) % kSlots;
    expect_copy(ring.slots + slot * kSlotBytes, from + k * kSlotBytes, kSlotBytes,
                ring.barriers + 8 * slot);
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

void check(cudaError_t found, const char* what) {
  if (found == cudaSuccess) return;
  std::fprintf(stderr, "memory_rates: %s: %s\n", what, cudaGetErrorString(found));
  std::exit(1);
}

class Bench {
 public:
  explicit Bench(int gpu) {
    check(cudaSetDevice(gpu), "cudaSetDevice");
    check(cudaGetDeviceProperties(&gpu_, gpu), "cudaGetDeviceProperties");
    blocks_ = gpu_.multiProcessorCount;
    const std::size_t times = sizeof(unsigned long long) * kMostPhases * blocks_;
    check(cudaMalloc(&a_.begin, times), "times");
    check(cudaMalloc(&a_.end, times), "times");
    check(cudaMalloc(&a_.sink, 8), "sink");
    check(cudaMalloc(&bytes_, kMost), "2 GB of data");
    check(cudaMemset(bytes_, 0, kMost), "2 GB of data");
    std::printf(
        "{\"kind\": \"header\", \"benchmark\": \"memory rates\", \"schema\": 1, \"gpu\": \"%s\", "
        "\"multiprocessors\": %d, \"l2_bytes\": %d, \"threads\": %d, \"shared_bytes\": %d}\n",
        gpu_.name, blocks_, gpu_.l2CacheSize, kThreads, kRing + 8 * kWarps * kSlots);
  }

  void streams() {
    for (const int mb :
         {4, 8, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 80, 96, 128, 192, 512, 1600}) {
      Args a = streaming(1e6 * mb);
      const double bytes = static_cast<double>(a.block_bytes) * blocks_;
      a.phases = mb > 200 ? 8 : kMostPhases;
      run("ring", reinterpret_cast<const void*>(ring_stream), a, true, bytes, 0, 0);
    }
  }

  void gathers() {
    for (const double mb : {24.0, 1200.0})
      for (const Gathers g : shapes(12000000U / 32)) {  // a vector of 12 MB: it is in the cache
        Args a = streaming(1e6 * mb);
        a.operand = reinterpret_cast<const double*>(bytes_ + kMost - 16000000);
        a.gathers = g;
        a.phases = mb > 200 ? 8 : kMostPhases;
        const double bytes = static_cast<double>(a.block_bytes) * blocks_;
        const double entries = bytes / kSlotBytes * kGathers * 32;
        run("ring and gathers", reinterpret_cast<const void*>(ring_and_gathers), a, true, bytes,
            entries / 32 / g.again * g.sectors, entries);
      }
  }

  void vectors() {
    for (const long long rows : {100000LL, 400000LL, 1400000LL, 4000000LL}) {
      vector<2, 0>(rows);
      vector<2, 1>(rows);
      vector<4, 2>(rows);
      vector<8, 7>(rows);
    }
  }

 private:
  static constexpr std::size_t kMost = 2000000000;

  static std::vector<Gathers> shapes(unsigned window) {
    std::vector<Gathers> all;
    for (const unsigned again : {1U, static_cast<unsigned>(kRun), 12U})
      for (const unsigned sectors : {8U, 11U, 16U, 32U})
        for (const unsigned apart : {1U, 5U}) all.push_back({sectors, apart, window, again});
    return all;
  }

  Args streaming(double bytes) const {
    Args a = a_;
    const double unit = static_cast<double>(kWarps) * kSlotBytes;
    a.block_bytes = static_cast<long long>(std::max(1.0, bytes / blocks_ / unit + 0.5)) *
                    static_cast<long long>(unit);
    a.stream = bytes_;
    return a;
  }

  template <int R, int W>
  void vector(long long rows) {
    Args a = a_;
    a.vectors = reinterpret_cast<double*>(bytes_);
    a.rows = rows;
    a.pitch = (rows + 511) / 512 * 512;
    a.phases = 16;
    char name[32];
    std::snprintf(name, sizeof name, "vectors %d read %d written", R, W);
    run(name, reinterpret_cast<const void*>(vector_loop<R, W>), a, false, 8.0 * rows * (R + W), 0,
        rows);
  }

  // `ring`: a ring, and shared memory for the rest but 28 KB; else as much L1 cache as there can
  // be.
  void run(const char* name, const void* kernel, Args a, bool ring, double bytes, double sectors,
           double entries) {
    const int fast_bytes = ring ? std::max(kRing + 8 * kWarps * kSlots, 185 * 1024) : 0;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, fast_bytes),
          "shared memory");
    void* args[] = {&a};
    check(cudaLaunchCooperativeKernel(kernel, dim3(blocks_), dim3(kThreads), args, fast_bytes,
                                      nullptr),
          name);
    check(cudaDeviceSynchronize(), name);
    const std::size_t count = static_cast<std::size_t>(a.phases) * blocks_;
    std::vector<unsigned long long> begin(count), end(count);
    check(cudaMemcpy(begin.data(), a.begin, 8 * count, cudaMemcpyDeviceToHost), "times");
    check(cudaMemcpy(end.data(), a.end, 8 * count, cudaMemcpyDeviceToHost), "times");
    report(name, a, begin, end, bytes, sectors, entries);
  }

  void report(const char* name, const Args& a, const std::vector<unsigned long long>& begin,
              const std::vector<unsigned long long>& end, double bytes, double sectors,
              double entries) const {
    std::vector<double> whole;
    for (int phase = 1; phase < a.phases; ++phase) {  // the first one warms the caches
      const auto* const b = begin.data() + static_cast<std::size_t>(phase) * blocks_;
      const auto* const e = end.data() + static_cast<std::size_t>(phase) * blocks_;
      whole.push_back(static_cast<double>(*std::max_element(e, e + blocks_) -
                                          *std::min_element(b, b + blocks_)));
    }
    std::printf(
        "{\"kind\": \"rate\", \"what\": \"%s\", \"bytes\": %.0f, \"sectors\": %.0f, "
        "\"entries\": %.0f, \"rows\": %lld, \"phase_ns\": %.0f}\n",
        name, bytes, sectors, entries, a.rows, median(whole));
    std::fflush(stdout);
  }

  static double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }

  cudaDeviceProp gpu_{};
  int blocks_ = 0;
  Args a_;
  unsigned char* bytes_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench(argc > 1 ? std::atoi(argv[1]) : 0);
  bench.streams();
  bench.gathers();
  bench.vectors();
  return 0;
}
