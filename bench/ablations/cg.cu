// Times the kernels of cg.cuh on a system. bench/ablations/cg.py compiles and runs it:
//
//   cg FOLDER VARIANT PES ITERATIONS REPEATS device|managed
//
// FOLDER has the arrays of the system. One line of JSON: median and least seconds of an iteration,
// how far the answer is from the host's, and after the timed length its residual from that of the
// recurrences; the program ends with an error where one is too far.
#include "words.cuh"

#include "cg.cuh"
#include "system.hpp"
#include "timing.cuh"

#include <cstring>
#include <string>

namespace ablations {

constexpr int kThreads = 1024;
constexpr std::size_t kRoom =
    sizeof(double) * (kRoomOfSums + kThreads * kItems) + sizeof(int) * (kThreads * kItems + 2);

using Body = void (*)(const CgArgs&);
template <class S, Halo kHalo, Product kProduct>
__global__ void __launch_bounds__(kThreads, 1) cg_kernel(const __grid_constant__ CgArgs a) {
  cg<S, kHalo, kProduct>(a);
}
template <class S, int kFirst, bool kWaits>
__global__ void __launch_bounds__(kThreads, 1) pipecg_kernel(const __grid_constant__ CgArgs a) {
  pipecg<S, kFirst, kWaits>(a);
}
template <Only kWhat>
__global__ void __launch_bounds__(kThreads, 1) only_kernel(const __grid_constant__ CgArgs a) {
  cg_only<kWhat>(a);
}

struct Variant {
  const char* name;
  void (*kernel)(CgArgs);
  bool solves, pipelined;
};
const Variant kVariants[] = {
    {"cg flags", cg_kernel<FlagSums, Halo::push, Product::rows>, true, false},
    {"cg grid_sync", cg_kernel<GridSums, Halo::push, Product::rows>, true, false},
    {"cg gets", cg_kernel<FlagSums, Halo::gets, Product::rows>, true, false},
    {"cg merge", cg_kernel<FlagSums, Halo::push, Product::merge>, true, false},
    {"pipecg flags", pipecg_kernel<FlagSums, 0, true>, true, true},
    {"pipecg one block", pipecg_kernel<OneBlockSums, 1, true>, true, true},
    {"pipecg no sums", pipecg_kernel<FlagSums, 0, false>, false, true},
    {"cg only products", only_kernel<Only::products>, false, false},
    {"cg only dots", only_kernel<Only::dots>, false, false},
    {"cg only updates", only_kernel<Only::updates>, false, false},
    {"cg only sums", only_kernel<Only::sums>, false, false},
};

// Memory of one PE, freed with the process.
struct Arena {
  bool managed;
  template <class T>
  T* make(std::size_t n) const {
    void* p = nullptr;
    const std::size_t bytes = std::max<std::size_t>(n, 1) * sizeof(T);
    EXPECT(managed ? cudaMallocManaged(&p, bytes) : cudaMalloc(&p, bytes));
    EXPECT(cudaMemset(p, 0, bytes));
    return static_cast<T*>(p);
  }
  template <class T>
  T* copy(const T* from, std::size_t n) const {
    T* const p = make<T>(n);
    EXPECT(cudaMemcpy(p, from, n * sizeof(T), cudaMemcpyDefault));
    return p;
  }
};

struct Run {
  std::vector<CgArgs> args;
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> begin, end;
  std::size_t slot_bytes = 0;
  int blocks;

  Run(const System& a, int pes, const Arena& arena) : blocks(multiprocessors(0)) {
    const std::vector<int> cut = cuts(a, pes);
    const std::vector<Part> part = parts(a, cut);
    slot_bytes = sizeof(Packet) * 2 * pes * blocks * kMostSums;
    for (int pe = 0; pe < pes; ++pe) {
      EXPECT(cudaSetDevice(pe));
      for (int other = 0; other < pes; ++other)
        if (other != pe) EXPECT(cudaDeviceEnablePeerAccess(other, 0));
      args.push_back(make(a, part[pe], cut, pe, arena));
      streams.emplace_back(), begin.emplace_back(), end.emplace_back();
      EXPECT(cudaStreamCreate(&streams.back()));
      EXPECT(cudaEventCreate(&begin.back()));
      EXPECT(cudaEventCreate(&end.back()));
    }
    for (CgArgs& mine : args)
      for (int pe = 0; pe < pes; ++pe) {
        for (int k = 0; k < 2; ++k) mine.operand[k][pe] = args[pe].operand[k][pe];
        mine.sums.slots[pe] = args[pe].sums.slots[pe];
        mine.sums.leaders[pe] = args[pe].sums.leaders[pe];
        mine.meeting.slots[pe] = args[pe].meeting.slots[pe];
      }
  }

  CgArgs make(const System& a, const Part& own, const std::vector<int>& cut, int pe,
              const Arena& arena) const {
    CgArgs mine = {};
    const int pes = static_cast<int>(cut.size()) - 1;
    const auto n = static_cast<std::size_t>(own.end - own.begin);
    const int skip = a.first[own.begin];
    const auto entries = static_cast<std::size_t>(own.first.back());
    mine.matrix.begin = own.begin, mine.matrix.end = own.end;
    mine.matrix.first = arena.copy(own.first.data(), own.first.size());
    mine.matrix.column = arena.copy(a.column.data() + skip, entries);
    mine.matrix.value = arena.copy(a.value.data() + skip, entries);
    mine.matrix.wanted = arena.copy(own.wanted.data(), n);
    std::copy(cut.begin(), cut.end(), mine.matrix.cut);
    mine.matrix.row_lanes = row_lanes(a);
    mine.b = arena.copy(a.b.data() + own.begin, n);
    for (double** v : {&mine.x, &mine.r, &mine.s, &mine.p, &mine.z, &mine.q})
      *v = arena.make<double>(n);
    for (auto& operand : mine.operand) operand[pe] = arena.make<double>(a.b.size());
    // Words that GPUs poll are in memory of their own in every variant.
    const Arena own_memory{false};
    for (SumArgs* sums : {&mine.sums, &mine.meeting}) {
      sums->pe = pe, sums->pes = pes, sums->blocks = blocks;
      sums->slots[pe] = own_memory.make<Packet>(slot_bytes / sizeof(Packet));
      sums->leaders[pe] = own_memory.make<Packet>(2 * pes * kMostSums);
      sums->totals = own_memory.make<Packet>(2 * kMostSums);
      sums->partial = own_memory.make<double>(2 * blocks * kMostSums);
    }
    mine.norm2 = own_memory.make<double>(1);
    return mine;
  }

  // Epochs begin anew with each launch.
  void reset() {
    for (std::size_t pe = 0; pe < args.size(); ++pe) {
      EXPECT(cudaSetDevice(static_cast<int>(pe)));
      for (const SumArgs* sums : {&args[pe].sums, &args[pe].meeting}) {
        EXPECT(cudaMemset(sums->slots[pe], 0, slot_bytes));
        EXPECT(cudaMemset(sums->leaders[pe], 0, sizeof(Packet) * 2 * args.size() * kMostSums));
        EXPECT(cudaMemset(sums->totals, 0, sizeof(Packet) * 2 * kMostSums));
      }
      EXPECT(cudaDeviceSynchronize());
    }
  }

  // Seconds of one launch on all PEs: of the slowest.
  double launch(const Variant& variant, int iterations) {
    reset();
    for (std::size_t pe = 0; pe < args.size(); ++pe) {
      EXPECT(cudaSetDevice(static_cast<int>(pe)));
      CgArgs mine = args[pe];
      mine.iterations = iterations;
      void* given[] = {&mine};
      EXPECT(cudaEventRecord(begin[pe], streams[pe]));
      EXPECT(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(variant.kernel), dim3(blocks),
                                         dim3(kThreads), given, kRoom, streams[pe]));
      EXPECT(cudaEventRecord(end[pe], streams[pe]));
    }
    float most = 0;
    for (std::size_t pe = 0; pe < args.size(); ++pe) {
      float ms = 0;
      EXPECT(cudaEventSynchronize(end[pe]));
      EXPECT(cudaEventElapsedTime(&ms, begin[pe], end[pe]));
      most = std::max(most, ms);
    }
    return 1e-3 * most;
  }

  std::vector<double> read(double* CgArgs::* what) const {
    std::vector<double> found;
    for (const CgArgs& mine : args) {
      found.resize(mine.matrix.end);
      const auto n = static_cast<std::size_t>(mine.matrix.end - mine.matrix.begin);
      EXPECT(cudaMemcpy(found.data() + mine.matrix.begin, mine.*what, sizeof(double) * n,
                        cudaMemcpyDefault));
    }
    return found;
  }
  // How far ‖b - A x‖ after a few iterations is from the host's, relative.
  double error(const System& a, const Variant& variant, int iterations) {
    launch(variant, iterations);
    return std::abs(residual(a, read(&CgArgs::x), a.b) / reference(a, iterations) - 1);
  }
  // How far b - A x is from the residual that the recurrences have, relative. After many iterations
  // norms differ between orders of summation, but these two do not.
  double drift(const System& a, const Variant& variant, int iterations) {
    launch(variant, iterations);
    const std::vector<double> x = read(&CgArgs::x), r = read(&CgArgs::r);
    std::vector<double> left = a.b;
    for (std::size_t i = 0; i < r.size(); ++i) left[i] -= r[i];
    return residual(a, x, left) / residual(a, x, a.b);
  }
};

}  // namespace ablations

int main(int count, char** words) {
  using namespace ablations;
  if (count != 7) {
    std::fprintf(stderr, "usage: cg FOLDER VARIANT PES ITERATIONS REPEATS device|managed\n");
    return 2;
  }
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // a kernel that spins waits for no other one's module
  const Variant* variant = nullptr;
  for (const Variant& one : kVariants)
    if (words[2] == std::string(one.name)) variant = &one;
  const int pes = std::atoi(words[3]), iterations = std::atoi(words[4]);
  int devices = 0;
  EXPECT(cudaGetDeviceCount(&devices));
  if (variant == nullptr || pes < 1 || pes > std::min(devices, kMostPes)) {
    std::fprintf(stderr, "cg: no variant '%s' on %d of %d GPUs\n", words[2], pes, devices);
    return 2;
  }
  EXPECT(cudaFuncSetAttribute(reinterpret_cast<void*>(variant->kernel),
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(kRoom)));
  for (int pe = 1; pe < pes; ++pe) {
    EXPECT(cudaSetDevice(pe));
    EXPECT(cudaFuncSetAttribute(reinterpret_cast<void*>(variant->kernel),
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(kRoom)));
  }
  EXPECT(cudaSetDevice(0));
  const System system = read_system(words[1]);
  Run run(system, pes, {std::strcmp(words[6], "managed") == 0});
  const double error = variant->solves ? run.error(system, *variant, 6) : 0;
  const double drift = variant->solves ? run.drift(system, *variant, 2 * iterations) : 0;
  if (!(error < 1e-6) || !(drift < 1e-6)) {
    std::fprintf(stderr, "cg: %s is off by %g after 6 iterations, its residual by %g after %d\n",
                 words[2], error, drift, 2 * iterations);
    return 4;
  }
  warm_up([&] { return run.launch(*variant, 2 * iterations); });
  // The difference of two lengths: what a launch takes besides iterations is left out.
  std::vector<double> times;
  for (int k = 0; k < std::atoi(words[5]); ++k) {
    const double one = run.launch(*variant, iterations), two = run.launch(*variant, 2 * iterations);
    times.push_back((two - one) / iterations);
  }
  std::printf("{\"seconds\": %.9g, \"least\": %.9g, \"error\": %.3g, \"drift\": %.3g}\n",
              median(times), quantile(times, 0), error, drift);
  return 0;
}
