// Reductions and halo channels on the GPUs that are there: right under random delays over many
// epochs, and how long they take. Usage: run_channels [GPUS] [EPOCHS] [THREADS]: on 1, 2, 4, ... up
// to that number, in blocks of 512 and 1024 threads; with THREADS on GPUS of them alone, in blocks
// of THREADS. Ends by itself: all waits are bounded.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cpufree/device/allreduce.hpp"
#include "cpufree/device/channel.hpp"
#include "cpufree/device/symmetric.hpp"
#include "rig.cuh"

namespace {

using namespace cpufree;
using gpu::DeviceArray;
using GpuPort = gpu_p2p::Port;

// What the kernels of this file are given.
struct Args {
  Packet* slots = nullptr;
  Packet* halo[2] = {};          // two vectors in turn, an entry for every block of every PE
  std::int64_t* ghosts[2] = {};  // the same as stores
  ArrivalBoard board;
  std::int64_t epochs = 0;
  unsigned delay = 0;  // longest random delay in ns, 0: none
  unsigned long long* wrong = nullptr;
};

// A delay that hits few threads, differently in every epoch.
__device__ void dawdle(const Args& args, std::uint64_t epoch) {
  if (args.delay == 0) return;
  std::uint64_t h = epoch * 0x9e3779b97f4a7c15ULL + blockIdx.x * 0x632be59bd9b4e019ULL +
                    threadIdx.x * 0xd6e8feb86659fd93ULL;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ULL;
  h ^= h >> 32;
  if ((h & 0x3ff) == 0) __nanosleep(static_cast<unsigned>((h >> 10) % args.delay));
}

// `Flat`: push and pull, nothing between them; else sum.
template <int K, bool Flat>
__global__ void __launch_bounds__(1024, 1)
    reduce(const __grid_constant__ gpu_p2p::Shared shared, const __grid_constant__ Args args) {
  GpuPort port(shared, nullptr);
  AllReduce<GpuPort> reduction(port, args.slots);
  const double threads = static_cast<double>(port.lanes()) * port.blocks() * port.pes();
  for (std::int64_t e = 1; e <= args.epochs; ++e) {
    dawdle(args, static_cast<std::uint64_t>(e));
    double partial[K];
    for (int k = 0; k < K; ++k) partial[k] = static_cast<double>(e % 1000 + k);
    double total[K];
    unsigned notes = 0;
    if constexpr (Flat) {
      reduction.push(partial);
      if (!reduction.pull(total, notes, false)) return;
    } else {
      if (!reduction.sum(partial, total, notes, false, [] {})) return;
    }
    for (int k = 0; k < K; ++k)
      if (total[k] != threads * static_cast<double>(e % 1000 + k)) atomicAdd(args.wrong, 1ULL);
  }
}

// Every block sends the epoch to all other PEs, as stores and as packets in turn, and expects
// theirs; within the PE every block reads what all others wrote.
__global__ void __launch_bounds__(1024, 1)
    exchange(const __grid_constant__ gpu_p2p::Shared shared, const __grid_constant__ Args args) {
  GpuPort port(shared, nullptr);
  Arrivals<GpuPort> arrivals(port, args.board);
  const int me = port.pe() * port.blocks() + port.block();
  const int all = port.pes() * port.blocks();
  for (std::int64_t e = 1; e <= args.epochs; ++e) {
    std::int64_t* const ghosts = args.ghosts[e % 2];
    Packet* const halo = args.halo[e % 2];
    arrivals.begin();
    port.sync_block();
    dawdle(args, static_cast<std::uint64_t>(e));
    if (port.lane() < port.pes()) {
      port.put(ghosts + me, port.lane(), e);
      port.put_packet(halo + me, port.lane(), static_cast<double>(e),
                      make_tag(arrivals.epoch(), 0));
    }
    arrivals.arrive_remote();
    dawdle(args, static_cast<std::uint64_t>(e + 7));
    arrivals.arrive_local();
    if (!arrivals.wait_local()) return;
    for (int s = port.lane(); s < port.blocks(); s += port.lanes())
      if (ghosts[port.pe() * port.blocks() + s] != e) atomicAdd(args.wrong, 1ULL);
    if (!arrivals.wait_halo()) return;
    for (int s = port.lane(); s < all; s += port.lanes()) {
      if (ghosts[s] != e) atomicAdd(args.wrong, 1ULL);
      Packet packet[1];
      const auto site = [&](int) { return WaitSite{Channel::halo_arrival, s / port.blocks(), s}; };
      if (!wait_packets(port, [&](int) { return halo + s; }, 1, arrivals.epoch(), site, packet))
        return;
      if (packet[0].value != static_cast<double>(e)) atomicAdd(args.wrong, 1ULL);
    }
  }
}

class Bench {
 public:
  Bench(int gpus, int threads) : machine_(gpus), threads_(threads) {
    const auto sources = static_cast<std::size_t>(gpus * machine_.blocks());
    board_ = layout_.reserve<Flag>(sources);
    slots_ = layout_.reserve<Packet>(
        static_cast<std::size_t>(reduce_slot_count(gpus, machine_.blocks())));
    for (auto& h : halo_) h = layout_.reserve<Packet>(sources);
    for (auto& g : ghosts_) g = layout_.reserve<std::int64_t>(sources);
    machine_.allocate(layout_);
    for (int g = 0; g < gpus; ++g) {
      std::vector<std::int32_t> notify, await, here;
      for (int q = 0; q < gpus; ++q)
        if (q != g) notify.push_back(q);
      for (int q : notify)
        for (int b = 0; b < machine_.blocks(); ++b) await.push_back(q * machine_.blocks() + b);
      for (int b = 0; b < machine_.blocks(); ++b) here.push_back(b);
      lists_.push_back({g, notify});
      lists_.push_back({g, await});
      lists_.push_back({g, here});
      wrong_.emplace_back(g, std::size_t{1});
    }
  }

  // Seconds per epoch; negative where something was wrong.
  double run(const void* kernel, std::int64_t epochs, unsigned delay) {
    std::vector<Args> args;
    for (int g = 0; g < machine_.gpus(); ++g) {
      std::byte* const heap = machine_.heap(g);
      const auto list = [&](int k) -> const DeviceArray<std::int32_t>& {
        return lists_[static_cast<std::size_t>(3 * g + k)];
      };
      const auto count = [&](int k) { return static_cast<std::int32_t>(list(k).size()); };
      Args a;
      a.slots = slots_.at(heap);
      for (int k = 0; k < 2; ++k) a.halo[k] = halo_[k].at(heap), a.ghosts[k] = ghosts_[k].at(heap);
      a.board = {board_.at(heap), list(0).data(), list(1).data(), list(2).data(),
                 count(0),        count(1),       count(2)};
      a.epochs = epochs;
      a.delay = delay;
      a.wrong = wrong_[static_cast<std::size_t>(g)].data();
      args.push_back(a);
    }
    const double seconds = machine_.run(kernel, threads_, 0, args);
    bool right = seconds > 0.0;
    for (const auto& w : wrong_) right = right && w.download()[0] == 0ULL;
    return right ? seconds / static_cast<double>(epochs) : -1.0;
  }

 private:
  gpu_rig::Machine machine_;
  int threads_;
  SymmetricLayout layout_;
  Symmetric<Flag> board_;
  Symmetric<Packet> slots_, halo_[2];
  Symmetric<std::int64_t> ghosts_[2];
  std::vector<DeviceArray<std::int32_t>> lists_;
  std::vector<DeviceArray<unsigned long long>> wrong_;
};

int failures = 0;

void report(int gpus, int threads, const char* what, Bench& bench, const void* kernel,
            std::int64_t epochs) {
  const double stressed = bench.run(kernel, epochs, 3000);
  std::vector<double> quick;
  for (int k = 0; k < 5; ++k) quick.push_back(bench.run(kernel, 20000, 0));
  std::sort(quick.begin(), quick.end());
  const bool right = stressed > 0.0 && quick[0] > 0.0;
  failures += right ? 0 : 1;
  std::printf(
      "%d GPUs x %4d threads  %-12s %8lld epochs with delays %-5s  %.2f us (without %.2f)\n", gpus,
      threads, what, static_cast<long long>(epochs), right ? "right" : "WRONG", 1e6 * stressed,
      1e6 * quick[2]);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int found = gpu_rig::found();
  if (found == 0) {
    std::printf("skipped: no GPU here\n");
    return 0;
  }
  const int most = argc > 1 ? std::min(std::atoi(argv[1]), found) : found;
  const std::int64_t epochs = argc > 2 ? std::atoll(argv[2]) : 100'000;
  const std::vector<int> sizes =
      argc > 3 ? std::vector<int>{std::atoi(argv[3])} : std::vector<int>{512, 1024};
  try {
    for (int gpus = argc > 3 ? most : 1; gpus <= most; gpus *= 2)
      for (const int threads : sizes) {
        Bench bench(gpus, threads);
        const auto kernel = [](auto* k) { return reinterpret_cast<const void*>(k); };
        report(gpus, threads, "sum 1", bench, kernel(reduce<1, false>), epochs);
        report(gpus, threads, "sum 2", bench, kernel(reduce<2, false>), epochs);
        report(gpus, threads, "sum 4", bench, kernel(reduce<4, false>), epochs);
        report(gpus, threads, "sum 5", bench, kernel(reduce<5, false>), epochs);
        report(gpus, threads, "sum 8", bench, kernel(reduce<8, false>), epochs);
        report(gpus, threads, "push pull 1", bench, kernel(reduce<1, true>), epochs);
        report(gpus, threads, "push pull 3", bench, kernel(reduce<3, true>), epochs);
        report(gpus, threads, "exchange", bench, kernel(exchange), epochs);
      }
  } catch (const Error& e) {
    std::printf("failed: %s\n", e.what());
    return 1;
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
