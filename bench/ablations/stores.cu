// What single stores cost: how many bytes a second by the width of a store, how long a flag takes
// from one place to another, and what a block is busy with in a message.
// bench/ablations/stores.py compiles and runs it:
//
// - `stores widths WIDTH APART PES BYTES REPEATS`: stores of WIDTH bytes, APART bytes from each
// other;
//
// - `stores flags WHERE PES ROUNDS REPEATS`: half a round trip;
//
// - `stores calls stores|fence PES BYTES REPEATS`: of one block.
//
// With two PEs the second one's memory is written. One line of JSON: median and least seconds; of
// widths those of all bytes.
#include "words.cuh"

#include "timing.cuh"

#include <cstring>
#include <string>

namespace ablations {

constexpr int kThreads = 512, kPasses = 4, kCalls = 256;

template <class T>
__device__ T word_of(unsigned n) {
  if constexpr (sizeof(T) == sizeof(ulonglong2))
    return {n, n};
  else
    return static_cast<T>(n);
}

// Every place is written once in a pass, by neighbouring threads side by side.
template <class T>
__global__ void __launch_bounds__(kThreads)
    widths_kernel(unsigned char* to, std::size_t places, std::size_t apart, int passes) {
  const std::size_t first = blockIdx.x * std::size_t{kThreads} + lane();
  const std::size_t step = std::size_t{kThreads} * gridDim.x;
  for (int k = 0; k < passes; ++k) {
#pragma unroll 4
    for (std::size_t i = first; i < places; i += step)
      *reinterpret_cast<T*>(to + i * apart) = word_of<T>(static_cast<unsigned>(i) + k);
  }
}
using WidthsKernel = void (*)(unsigned char*, std::size_t, std::size_t, int);

struct FlagArgs {
  Epoch* ping;  // in the memory of who answers
  Epoch* pong;  // in that of who asks
  int rounds;
  int* where;     // of each block: its multiprocessor
  bool apart;     // blocks of two multiprocessors, not of one
  int side, pes;  // who this PE is
};

// The clock is looked at now and then only: a look takes part of the time of a flag.
__device__ inline void wait_word(const Epoch* at, Epoch value, const Patience& patience) {
  for (unsigned look = 1; word(at) < value; ++look)
    if (look % 64 == 0) patience.spend();
}
__device__ inline void ask(const FlagArgs& a) {
  const Patience patience;
  for (Epoch k = 1; k <= static_cast<Epoch>(a.rounds); ++k) {
    set_word(a.ping, k);
    wait_word(a.pong, k, patience);
  }
}
__device__ inline void answer(const FlagArgs& a) {
  const Patience patience;
  for (Epoch k = 1; k <= static_cast<Epoch>(a.rounds); ++k) {
    wait_word(a.ping, k, patience);
    set_word(a.pong, k);
  }
}

// Block 0 asks, and the first other block of its multiprocessor, or of another one, answers.
__global__ void flags_kernel(const __grid_constant__ FlagArgs a) {
  if (a.pes == 2) {
    if (lane() == 0) a.side == 0 ? ask(a) : answer(a);
    return;
  }
  int own;
  asm volatile("mov.u32 %0, %smid;" : "=r"(own));
  if (lane() == 0) a.where[block()] = own;
  grid_sync();
  if (lane() != 0) return;
  const volatile int* const where = a.where;
  unsigned other = 1;
  while (other < gridDim.x && (where[other] != where[0]) != a.apart) ++other;
  if (other == gridDim.x) {
    if (block() == 0) *a.pong = ~Epoch{0};  // there is none
    return;
  }
  if (block() == 0) ask(a);
  if (block() == other) answer(a);
}

// Two warps of a block, by words in its shared memory or, the two blocks of a cluster, in theirs.
__global__ void shared_kernel(const __grid_constant__ FlagArgs a) {
  __shared__ Epoch words[2];
  if (lane() < 2) words[lane()] = 0;
  const bool pair = a.apart, asks = pair ? block() == 0 : lane() == 0;
  pair ? cluster_sync() : sync_block();
  FlagArgs mine = a;
  mine.ping = words, mine.pong = words + 1;
  if (pair) {  // each polls its own memory by its own address
    auto cluster = cooperative_groups::this_cluster();
    (asks ? mine.ping : mine.pong) = cluster.map_shared_rank(asks ? words : words + 1, asks);
  }
  if (pair ? lane() == 0 : lane() % 32 == 0) asks ? ask(mine) : answer(mine);
  pair ? cluster_sync() : sync_block();  // the other one's memory is there until here
}

__device__ inline long long nanoseconds() {
  long long found;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(found));
  return found;
}

struct Ticks {
  long long stores, fences, all, nanoseconds;  // of all calls; of the whole kernel
};

// Stores of a block until all its threads may go on, and the fence of one thread behind them.
__global__ void __launch_bounds__(kThreads)
    calls_kernel(double* to, std::size_t count, bool all, Ticks* ticks) {
  Ticks found = {};
  const long long start = clock64(), first = nanoseconds();
  for (int k = 0; k < kCalls; ++k) {
    sync_block();
    const long long begin = clock64();
    for (std::size_t i = lane(); i < count; i += kThreads)
      *static_cast<volatile double*>(to + i) = static_cast<double>(k);
    sync_block();
    const long long stored = clock64();
    if (lane() == 0) fence(all);
    found.stores += stored - begin, found.fences += clock64() - stored;
  }
  found.all = clock64() - start, found.nanoseconds = nanoseconds() - first;
  if (lane() == 0) *ticks = found;
}

class Timer {
 public:
  Timer() {
    EXPECT(cudaEventCreate(&begin_));
    EXPECT(cudaEventCreate(&end_));
  }
  template <class Launch>
  double seconds(const Launch& launch) {
    EXPECT(cudaEventRecord(begin_));
    launch();
    EXPECT(cudaEventRecord(end_));
    EXPECT(cudaEventSynchronize(end_));
    float ms = 0;
    EXPECT(cudaEventElapsedTime(&ms, begin_, end_));
    return 1e-3 * ms;
  }

 private:
  cudaEvent_t begin_, end_;
};

void* memory(int device, std::size_t bytes) {
  void* found = nullptr;
  EXPECT(cudaSetDevice(device));
  EXPECT(cudaMalloc(&found, bytes));
  EXPECT(cudaMemset(found, 0, bytes));
  EXPECT(cudaDeviceSynchronize());
  EXPECT(cudaSetDevice(0));
  return found;
}

void report(const std::vector<double>& times) {
  std::printf("{\"seconds\": %.9g, \"least\": %.9g}\n", median(times), quantile(times, 0));
}

WidthsKernel of_width(int width) {
  switch (width) {
    case 1:
      return widths_kernel<unsigned char>;
    case 2:
      return widths_kernel<unsigned short>;
    case 4:
      return widths_kernel<unsigned>;
    case 8:
      return widths_kernel<unsigned long long>;
    case 16:
      return widths_kernel<ulonglong2>;
    default:
      return nullptr;
  }
}

int widths(int width, std::size_t apart, int pes, std::size_t bytes, int repeats) {
  const WidthsKernel kernel = of_width(width);
  if (kernel == nullptr || apart < static_cast<std::size_t>(width) || apart % width != 0) {
    std::fprintf(stderr, "stores: no stores of %d B, %zu B apart\n", width, apart);
    return 2;
  }
  auto* const to = static_cast<unsigned char*>(memory(pes - 1, bytes));
  const std::size_t places = bytes / apart;
  Timer timer;
  const auto launch = [&](int passes) {
    return timer.seconds([&] {
      kernel<<<4 * multiprocessors(0), kThreads>>>(to, places, apart, passes);
      EXPECT(cudaGetLastError());
    });
  };
  std::vector<double> times;
  warm_up([&] { return launch(kPasses); });
  for (int k = 0; k < repeats; ++k) {
    const double once = launch(kPasses);
    times.push_back((launch(2 * kPasses) - once) / kPasses);
  }
  for (const std::size_t i : {std::size_t{0}, places / 2 + 1, places - 1}) {
    unsigned found = 0;
    const int looked = std::min(width, 4);
    EXPECT(cudaMemcpy(&found, to + i * apart, looked, cudaMemcpyDefault));
    const unsigned expected = static_cast<unsigned>(i) + 2 * kPasses - 1;
    if (found != (looked == 4 ? expected : expected & ((1U << 8 * looked) - 1))) {
      std::fprintf(stderr, "stores: place %zu has %u, not %u\n", i, found, expected);
      return 4;
    }
  }
  report(times);
  return 0;
}

struct Flags {
  std::string where;
  int pes;
  std::vector<FlagArgs> args;

  Flags(const char* name, int pes_) : where(name), pes(pes_) {
    FlagArgs a = {};
    a.ping = static_cast<Epoch*>(memory(pes - 1, 256));
    a.pong = static_cast<Epoch*>(memory(0, 256));
    a.where = static_cast<int*>(memory(0, 4096 * sizeof(int)));
    a.apart = where == "blocks" || where == "cluster", a.pes = where == "peer" ? 2 : 1;
    for (a.side = 0; a.side < a.pes; ++a.side) args.push_back(a);
  }
  void go(const FlagArgs& a) const {
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t how = {};
    how.attrs = &attribute, how.numAttrs = 1;
    how.blockDim = dim3(64), how.gridDim = dim3(where == "cluster" ? 2 : 1);
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {how.gridDim.x, 1, 1};
    if (where == "warps" || where == "cluster") {
      EXPECT(cudaLaunchKernelEx(&how, shared_kernel, a));
      return;
    }
    how.gridDim = dim3(a.pes == 2 ? 1 : 2 * multiprocessors(0));
    attribute.id = cudaLaunchAttributeCooperative, attribute.val.cooperative = 1;
    EXPECT(cudaLaunchKernelEx(&how, flags_kernel, a));
  }
  double launch(Timer& timer, int rounds) {
    for (Epoch* const one : {args[0].ping, args[0].pong}) EXPECT(cudaMemset(one, 0, 256));
    for (std::size_t side = 0; side < args.size(); ++side) args[side].rounds = rounds;
    for (int pe = 0; pe < pes; ++pe) {
      EXPECT(cudaSetDevice(pe));
      EXPECT(cudaDeviceSynchronize());
    }
    if (pes == 2) {  // the device is the second one
      go(args[1]);
      EXPECT(cudaSetDevice(0));
    }
    const double seconds = timer.seconds([&] { go(args[0]); });
    for (int pe = pes - 1; pe >= 0; --pe) {
      EXPECT(cudaSetDevice(pe));
      EXPECT(cudaDeviceSynchronize());
    }
    return seconds;
  }
  // What both words hold at the end: all rounds were made. Words in shared memory are gone.
  bool made(int rounds) const {
    if (where == "warps" || where == "cluster") return true;
    Epoch found[2];
    EXPECT(cudaMemcpy(found, args[0].ping, sizeof found[0], cudaMemcpyDefault));
    EXPECT(cudaMemcpy(found + 1, args[0].pong, sizeof found[0], cudaMemcpyDefault));
    return found[0] == static_cast<Epoch>(rounds) && found[1] == static_cast<Epoch>(rounds);
  }
};

int flags(const char* where, int pes, int rounds, int repeats) {
  const char* const known[] = {"warps", "block", "blocks", "cluster", "peer"};
  if (std::none_of(std::begin(known), std::end(known),
                   [&](const char* one) { return std::strcmp(one, where) == 0; }) ||
      (std::strcmp(where, "peer") == 0) != (pes == 2)) {
    std::fprintf(stderr, "stores: no flags '%s' on %d GPUs\n", where, pes);
    return 2;
  }
  Flags flags(where, pes);
  Timer timer;
  std::vector<double> times;
  warm_up([&] { return flags.launch(timer, 2 * rounds); });
  for (int k = 0; k < repeats; ++k) {
    const double once = flags.launch(timer, rounds);
    times.push_back((flags.launch(timer, 2 * rounds) - once) / rounds / 2);
  }
  if (!flags.made(2 * rounds)) {
    std::fprintf(stderr, "stores: flags '%s' were not exchanged\n", where);
    return 4;
  }
  report(times);
  return 0;
}

int calls(bool fences, int pes, std::size_t bytes, int repeats) {
  auto* const to = static_cast<double*>(memory(pes - 1, bytes));
  auto* const ticks = static_cast<Ticks*>(memory(0, sizeof(Ticks)));
  Timer timer;
  const auto launch = [&] {
    return timer.seconds([&] {
      calls_kernel<<<1, kThreads>>>(to, bytes / sizeof(double), pes == 2, ticks);
      EXPECT(cudaGetLastError());
    });
  };
  warm_up(launch);
  std::vector<double> times;
  for (int k = 0; k < repeats; ++k) {
    launch();
    Ticks found = {};
    EXPECT(cudaMemcpy(&found, ticks, sizeof found, cudaMemcpyDefault));
    const double tick = 1e-9 * static_cast<double>(found.nanoseconds) / found.all;
    times.push_back(tick * static_cast<double>(fences ? found.fences : found.stores) / kCalls);
  }
  report(times);
  return 0;
}

}  // namespace ablations

int main(int count, char** words) {
  using namespace ablations;
  const std::string what = count > 1 ? words[1] : "";
  const int wanted = what == "widths" ? 7 : what == "flags" || what == "calls" ? 6 : 0;
  if (count != wanted) {
    std::fprintf(stderr, "usage: stores widths|flags|calls ...: see stores.cu\n");
    return 2;
  }
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // a kernel that spins waits for no other one's module
  const int pes = std::atoi(words[what == "widths" ? 4 : 3]);
  int devices = 0;
  EXPECT(cudaGetDeviceCount(&devices));
  if (pes < 1 || pes > 2 || pes > devices) {
    std::fprintf(stderr, "stores: %d GPUs asked for, 1 or 2 of %d can be used\n", pes, devices);
    return 2;
  }
  if (pes == 2) {
    EXPECT(cudaSetDevice(1));
    EXPECT(cudaDeviceEnablePeerAccess(0, 0));
    EXPECT(cudaSetDevice(0));
    EXPECT(cudaDeviceEnablePeerAccess(1, 0));
  }
  const int repeats = std::atoi(words[count - 1]);
  if (what == "flags") return flags(words[2], pes, std::atoi(words[4]), repeats);
  const auto bytes = static_cast<std::size_t>(std::atoll(words[count - 2]));
  if (what == "calls") return calls(std::strcmp(words[2], "fence") == 0, pes, bytes, repeats);
  return widths(std::atoi(words[2]), static_cast<std::size_t>(std::atoll(words[3])), pes, bytes,
                repeats);
}
