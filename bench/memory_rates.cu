// How fast the blocks of a persistent kernel read: streams, gathers, both at once, loops over
// vectors.
//
//   nvcc -O3 -arch=sm_90 -o memory_rates bench/memory_rates.cu && ./memory_rates [GPU] >
//   rates.jsonl
//
// One block on each multiprocessor, as solvers have them, and what a block does is fixed before it
// begins: the slowest block ends a phase. Phases lie between barriers of the whole grid. Each line
// of the output is one experiment: the median over phases of how long blocks take, in the mean and
// the slowest of them, and of the whole phase. No data depend on a solver or a matrix.
// bench/memory_rates.py makes a record of the lines.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "memory_rates.cuh"

namespace {

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
      run("ring", reinterpret_cast<const void*>(ring_stream), a, 1, bytes, 0, 0);
      run("loads", reinterpret_cast<const void*>(load_stream), a, 0, bytes, 0, 0);
    }
  }

  // Alone, in a vector of 12 MB (of the cache), and in 16 KiB of it (of L1); then beside a stream.
  void gathers() {
    for (const unsigned window : {12000000U / 32, 16384U / 32})
      for (const Gathers g : shapes(window)) {
        Args a = a_;
        a.operand = reinterpret_cast<const double*>(bytes_);
        a.gathers = g;
        a.rounds = window > 1000 ? 1024 : 4096;
        a.phases = kMostPhases;
        const double sectors =
            static_cast<double>(a.rounds) / g.again * g.sectors * kWarps * blocks_;
        run("gathers", reinterpret_cast<const void*>(gathers_alone), a, 0, 0, sectors,
            32.0 * a.rounds * kWarps * blocks_);
      }
    for (const double mb : {24.0, 1200.0})
      for (const Gathers g : shapes(12000000U / 32)) {
        Args a = streaming(1e6 * mb);
        a.operand = reinterpret_cast<const double*>(bytes_ + kMost - 16000000);
        a.gathers = g;
        a.phases = mb > 200 ? 8 : kMostPhases;
        const double bytes = static_cast<double>(a.block_bytes) * blocks_;
        const double entries = bytes / kSlotBytes * kGathers * 32;
        run("ring and gathers", reinterpret_cast<const void*>(ring_and_gathers), a, 1, bytes,
            entries / 32 / g.again * g.sectors, entries);
      }
  }

  void lookups() {
    for (const double mb : {24.0, 48.0, 54.0, 64.0, 110.0, 1200.0})
      for (const int warps : {16, 8, 4})
        for (const unsigned again : {1U, static_cast<unsigned>(kRun)}) {
          Args a = streaming(1e6 * mb);
          a.warps = warps;
          a.gathers.again = again;
          a.phases = mb > 200 ? 8 : kMostPhases;
          const double bytes = static_cast<double>(a.block_bytes) * blocks_;
          run("ring and lookups", reinterpret_cast<const void*>(ring_and_lookups), a, 1, bytes, 0,
              bytes / kSlotBytes * kGathers * 32);
        }
  }

  // As solvers keep a part of a matrix in the L2 cache, evenly spread, and have the rest leave it.
  void kept() {
    for (const double mb : {24.0, 36.0, 48.0, 54.0, 64.0, 80.0, 100.0, 128.0})
      for (const double mb_kept : {-1.0, 0.0, 10.0, 16.7, 25.0}) {
        Args a = streaming(1e6 * mb);
        const double bytes = static_cast<double>(a.block_bytes) * blocks_;
        a.kept = mb_kept < 0 ? -1 : static_cast<int>(std::min(256.0, 256e6 * mb_kept / bytes));
        a.gathers.again = kRun;
        a.phases = kMostPhases;
        run("ring, kept, and lookups", reinterpret_cast<const void*>(ring_and_lookups), a, 1, bytes,
            0, bytes / kSlotBytes * kGathers * 32);
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
    run(name, reinterpret_cast<const void*>(vector_loop<R, W>), a, 0, 8.0 * rows * (R + W), 0,
        rows);
  }

  // `shared`: 0, as much L1 cache as there can be; 1, a ring and shared memory for the rest but 28
  // KB.
  void run(const char* name, const void* kernel, Args a, int shared, double bytes, double sectors,
           double entries) {
    const int fast_bytes = shared != 0 ? std::max(kRing + 8 * kWarps * kSlots, 185 * 1024) : 0;
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
    std::vector<double> mean, slowest, whole;
    std::vector<std::vector<double>> of_block(blocks_);
    for (int phase = 1; phase < a.phases; ++phase) {  // the first one warms the caches
      const auto* const b = begin.data() + static_cast<std::size_t>(phase) * blocks_;
      const auto* const e = end.data() + static_cast<std::size_t>(phase) * blocks_;
      double sum = 0, most = 0;
      for (int k = 0; k < blocks_; ++k) {
        const double took = static_cast<double>(e[k] - b[k]);
        sum += took;
        most = std::max(most, took);
        of_block[k].push_back(took);
      }
      mean.push_back(sum / blocks_);
      slowest.push_back(most);
      whole.push_back(static_cast<double>(*std::max_element(e, e + blocks_) -
                                          *std::min_element(b, b + blocks_)));
    }
    double slow = 0, all = 0;
    for (auto& block : of_block) {
      const double m = median(block);
      slow = std::max(slow, m);
      all += m / blocks_;
    }
    std::printf(
        "{\"kind\": \"rate\", \"what\": \"%s\", \"bytes\": %.0f, \"sectors\": %.0f, "
        "\"entries\": %.0f, \"gather\": [%u, %u, %u, %u], \"rows\": %lld, \"warps\": %d, \"kept\": "
        "%d, "
        "\"mean_ns\": %.0f, \"slowest_ns\": %.0f, \"phase_ns\": %.0f, \"same_block\": %.4f}\n",
        name, bytes, sectors, entries, a.gathers.sectors, a.gathers.apart, a.gathers.window,
        a.gathers.again, a.rows, a.warps, a.kept, median(mean), median(slowest), median(whole),
        slow / all);
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
  bench.lookups();
  bench.kept();
  bench.vectors();
  return 0;
}
