// What a sum of one value over all PEs takes within a kernel by NVSHMEM, called by a thread, a warp
// or a block, and NVSHMEM's barrier, beside packets; and what a put of one value takes until the
// call returns, with a quiet behind it, and a quiet by itself. One process for each GPU;
// bench/ablations/nvshmem_sums.py compiles it with NVSHMEM and runs it:
//
//   nvshmem_sums PE PES FILE WHAT ROUNDS REPEATS
//
// PE 0 writes NVSHMEM's identity into FILE, which others read. One line of JSON of each PE: median
// and least seconds of one, less those of a loop that does nothing. A launch before them checks
// sums. Packets are waited for four seconds at most; NVSHMEM's own waits have no bound but the
// limit that the process has.
#include <nvshmem.h>
#include <nvshmemx.h>

#include "words.cuh"

#include "timing.cuh"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace ablations {

enum class What { thread, warp, block, barrier, sync, packets, put, put_quiet, quiet, nothing };
const char* const kNames[] = {"thread",  "warp", "block",     "barrier", "sync",
                              "packets", "put",  "put_quiet", "quiet"};
constexpr int kThreads = 512;
constexpr int kWarmUps = 50;  // launches: PEs must have as many, so they go by no clock

struct Args {
  What what;
  int pe, pes, rounds;
  Epoch before;       // of exchanges that other launches have made
  double *from, *to;  // symmetric
  Packet* slots;      // symmetric: 2 parities x PEs
  int* wrong;
};

// As the flags of sums.cuh, for one block of each PE.
__device__ void by_packets(const Args& a, Epoch epoch) {
  Packet* const mine = a.slots + (epoch & 1U) * a.pes;
  double value = 0;
  if (static_cast<int>(lane()) < a.pes) {
    auto* const there = static_cast<Packet*>(nvshmem_ptr(mine + a.pe, static_cast<int>(lane())));
    put(there, *a.from, epoch);
    const Patience patience;
    Packet found = look(mine + lane());
    for (; found.epoch < epoch; found = look(mine + lane())) patience.spend();
    value = found.value;
  }
  if (lane() < 32) {
    for (unsigned by = 16; by > 0; by /= 2) value += down(value, by);
    if (lane() == 0) *a.to = value;
  }
}

// Into the memory of the next PE, of this one where there is no other.
__device__ void put_beside(const Args& a) {
  if (a.what != What::quiet) nvshmem_putmem_nbi(a.to, a.from, sizeof(double), (a.pe + 1) % a.pes);
  if (a.what != What::put) nvshmem_quiet();
}

__device__ void once(const Args& a, Epoch epoch) {
  switch (a.what) {
    case What::thread:
      if (lane() == 0) nvshmem_double_sum_reduce(NVSHMEM_TEAM_WORLD, a.to, a.from, 1);
      break;
    case What::warp:
      if (lane() < 32) nvshmemx_double_sum_reduce_warp(NVSHMEM_TEAM_WORLD, a.to, a.from, 1);
      break;
    case What::block:
      nvshmemx_double_sum_reduce_block(NVSHMEM_TEAM_WORLD, a.to, a.from, 1);
      break;
    case What::barrier:
      if (lane() == 0) nvshmem_barrier_all();
      break;
    case What::sync:
      if (lane() == 0) nvshmem_sync_all();
      break;
    case What::packets:
      by_packets(a, epoch);
      break;
    case What::put:
    case What::put_quiet:
    case What::quiet:
      if (lane() == 0) put_beside(a);
      break;
    case What::nothing:
      break;
  }
}

__global__ void __launch_bounds__(kThreads, 1) times_kernel(const __grid_constant__ Args a) {
  for (int k = 0; k < a.rounds; ++k) {
    once(a, a.before + static_cast<Epoch>(k) + 1);
    sync_block();
  }
}
__global__ void __launch_bounds__(kThreads, 1) checks_kernel(const __grid_constant__ Args a) {
  const bool puts = a.what == What::put || a.what == What::put_quiet;
  const bool sums = a.what <= What::block || a.what == What::packets;
  const int before = a.pe == 0 ? a.pes : a.pe;  // the PE whose value a put brings, from 1
  for (int k = 0; k < a.rounds; ++k) {
    if (lane() == 0) *a.from = a.pe + 1.0 + k;
    sync_block();
    once(a, a.before + static_cast<Epoch>(k) + 1);
    sync_block();
    if (puts && lane() == 0) nvshmem_barrier_all();  // all have come
    const double all = 0.5 * a.pes * (a.pes + 1) + static_cast<double>(a.pes) * k;
    const double expected = puts ? before + static_cast<double>(k) : all;
    if (lane() == 0 && (sums || puts) && get_value(a.to) != expected) *a.wrong += 1;
    if (puts && lane() == 0) nvshmem_barrier_all();  // all have looked
    sync_block();
  }
}

nvshmemx_uniqueid_t identity(int pe, const std::string& file) {
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (pe == 0) {
    if (nvshmemx_get_uniqueid(&id) != 0) std::exit(3);
    std::FILE* const out = std::fopen((file + ".part").c_str(), "wb");
    if (out == nullptr || std::fwrite(&id, sizeof id, 1, out) != 1) std::exit(3);
    std::fclose(out);
    if (std::rename((file + ".part").c_str(), file.c_str()) != 0) std::exit(3);
    return id;
  }
  for (int look = 0; look < 3000; ++look) {
    if (std::FILE* const in = std::fopen(file.c_str(), "rb")) {
      const bool whole = std::fread(&id, sizeof id, 1, in) == 1;
      std::fclose(in);
      if (whole) return id;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::fprintf(stderr, "nvshmem_sums: PE 0 has not written %s within 30 s\n", file.c_str());
  std::exit(3);
}

// Launches on all PEs; times seconds.
class Launches {
 public:
  explicit Launches(const Args& a) : a_(a) {
    EXPECT(cudaEventCreate(&begin_));
    EXPECT(cudaEventCreate(&end_));
  }
  double launch(void (*kernel)(Args), What what, int rounds) {
    a_.what = what, a_.rounds = rounds;
    void* given[] = {&a_};
    nvshmem_barrier_all();
    EXPECT(cudaEventRecord(begin_, nullptr));
    if (nvshmemx_collective_launch(reinterpret_cast<const void*>(kernel), dim3(1), dim3(kThreads),
                                   given, 0, nullptr) != 0)
      std::exit(3);
    EXPECT(cudaEventRecord(end_, nullptr));
    EXPECT(cudaDeviceSynchronize());
    a_.before += static_cast<Epoch>(rounds);
    float ms = 0;
    EXPECT(cudaEventElapsedTime(&ms, begin_, end_));
    return 1e-3 * ms;
  }
  // Seconds of one: the difference of two lengths, less that of the loop.
  double one(What what, int rounds) {
    const auto both = [&](What which) {
      const double once = launch(times_kernel, which, rounds);
      return (launch(times_kernel, which, 2 * rounds) - once) / rounds;
    };
    const double loop = both(What::nothing);
    return both(what) - loop;
  }

 private:
  Args a_;
  cudaEvent_t begin_, end_;
};

}  // namespace ablations

int main(int count, char** words) {
  using namespace ablations;
  if (count != 7) {
    std::fprintf(stderr, "usage: nvshmem_sums PE PES FILE WHAT ROUNDS REPEATS\n");
    return 2;
  }
  Args a = {};
  a.pe = std::atoi(words[1]), a.pes = std::atoi(words[2]);
  int what = -1;
  for (int k = 0; k < static_cast<int>(What::nothing); ++k)
    if (words[4] == std::string(kNames[k])) what = k;
  if (what < 0 || a.pes > 32) {
    std::fprintf(stderr, "nvshmem_sums: '%s' on %d PEs is not known\n", words[4], a.pes);
    return 2;
  }
  EXPECT(cudaSetDevice(a.pe));
  nvshmemx_uniqueid_t id = identity(a.pe, words[3]);
  nvshmemx_init_attr_t how = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_uniqueid_args(a.pe, a.pes, &id, &how);
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &how) != 0) return 3;
  a.from = static_cast<double*>(nvshmem_calloc(1, sizeof(double)));
  a.to = static_cast<double*>(nvshmem_calloc(1, sizeof(double)));
  a.slots = static_cast<Packet*>(nvshmem_calloc(2 * a.pes, sizeof(Packet)));
  EXPECT(cudaMallocManaged(&a.wrong, sizeof(int)));
  *a.wrong = 0;
  const int rounds = std::atoi(words[5]), repeats = std::atoi(words[6]);
  const What asked = static_cast<What>(what);
  Launches launches(a);
  launches.launch(checks_kernel, asked, rounds);
  if (*a.wrong != 0) {
    std::fprintf(stderr, "nvshmem_sums: %d sums are wrong\n", *a.wrong);
    return 4;
  }
  for (int k = 0; k < kWarmUps; ++k) launches.launch(times_kernel, asked, 2 * rounds);
  std::vector<double> times;
  for (int k = 0; k < repeats; ++k) times.push_back(launches.one(asked, rounds));
  std::printf("{\"seconds\": %.9g, \"least\": %.9g}\n", median(times), quantile(times, 0));
  std::fflush(stdout);
  nvshmem_finalize();
  return 0;
}
