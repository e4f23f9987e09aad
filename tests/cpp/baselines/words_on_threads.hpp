// The words of bench/ablations/words.cuh on threads of the CPU: a thread for each lane. Barriers
// are real ones, packets are locked by their epoch, and shuffles go through memory.
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#define __device__
#define ABLATIONS_UNROLL

namespace ablations {

using Epoch = unsigned long long;

struct alignas(16) Packet {
  double value;
  Epoch epoch;
};

struct Grid {
  std::barrier<> all;
  explicit Grid(int threads) : all(threads) {}
};

struct Block {
  std::barrier<> all;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
  std::vector<double> room, shuffled;
  Block(int threads, int doubles)
      : all(threads),
        room(static_cast<std::size_t>(doubles)),
        shuffled(static_cast<std::size_t>(threads)) {
    for (int t = 0; t < threads; t += 32) warps.push_back(std::make_unique<std::barrier<>>(32));
  }
};

struct Cluster {
  std::barrier<> all;
  std::vector<Block*> rooms;
  explicit Cluster(int threads) : all(threads) {}
};

struct Place {
  Grid* grid;
  Block* block;
  Cluster* cluster;
  unsigned number, lane, lanes;
};
inline thread_local Place place;

inline unsigned block() { return place.number; }
inline unsigned lane() { return place.lane; }
inline unsigned lanes() { return place.lanes; }
inline double* room() { return place.block->room.data(); }
inline void loads_first() {}
inline void sync_block() { place.block->all.arrive_and_wait(); }
inline void grid_sync() { place.grid->all.arrive_and_wait(); }
inline void fence(bool) { std::atomic_thread_fence(std::memory_order_seq_cst); }

// The epoch is stored last and read first; values are those of the epoch or of a later one, which
// the reuse of slots excludes.
inline void put(Packet* to, double value, Epoch epoch) {
  std::atomic_ref(to->value).store(value, std::memory_order_relaxed);
  std::atomic_ref(to->epoch).store(epoch, std::memory_order_release);
}
inline Packet look(const Packet* at) {
  Packet* const from = const_cast<Packet*>(at);
  Packet found;
  found.epoch = std::atomic_ref(from->epoch).load(std::memory_order_acquire);
  found.value = std::atomic_ref(from->value).load(std::memory_order_relaxed);
  return found;
}
inline void set_word(Epoch* to, Epoch value) {
  std::atomic_ref(*to).store(value, std::memory_order_release);
}
inline Epoch word(const Epoch* at) {
  return std::atomic_ref(*const_cast<Epoch*>(at)).load(std::memory_order_acquire);
}
inline void cluster_sync() { place.cluster->all.arrive_and_wait(); }
inline float* room_of(unsigned rank) {
  return reinterpret_cast<float*>(place.cluster->rooms[rank]->room.data());
}
inline double get_value(const double* at) {
  return std::atomic_ref(*const_cast<double*>(at)).load(std::memory_order_relaxed);
}
inline void store(double* to, double value) {
  std::atomic_ref(*to).store(value, std::memory_order_relaxed);
}
inline void add(double* to, double value) { std::atomic_ref(*to).fetch_add(value); }

class Patience {
 public:
  void spend() const {
    std::this_thread::yield();
    if (std::chrono::steady_clock::now() - begin_ > std::chrono::seconds(60)) std::abort();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

inline double down(double value, unsigned by) {
  const unsigned mine = place.lane, warp = mine / 32;
  place.block->shuffled[mine] = value;
  place.block->warps[warp]->arrive_and_wait();
  const double found = mine % 32 + by < 32 ? place.block->shuffled[mine + by] : value;
  place.block->warps[warp]->arrive_and_wait();
  return found;
}

// Runs `kernel(pe)` on all lanes of all blocks of all PEs at once; `cluster`: blocks of one.
inline void run_on_threads(int pes, int blocks, int threads, int doubles,
                           const std::function<void(int)>& kernel, int cluster = 1) {
  std::vector<std::unique_ptr<Grid>> grids;
  std::vector<std::unique_ptr<Block>> rooms;
  std::vector<std::unique_ptr<Cluster>> clusters;
  std::vector<std::thread> all;
  for (int pe = 0; pe < pes; ++pe) {
    grids.push_back(std::make_unique<Grid>(blocks * threads));
    for (int b = 0; b < blocks; ++b) {
      rooms.push_back(std::make_unique<Block>(threads, doubles));
      if (b % cluster == 0) clusters.push_back(std::make_unique<Cluster>(cluster * threads));
      clusters.back()->rooms.push_back(rooms.back().get());
    }
    for (int b = 0; b < blocks; ++b) {
      Block* const block = rooms[static_cast<std::size_t>(pe * blocks + b)].get();
      Cluster* const near = clusters[static_cast<std::size_t>((pe * blocks + b) / cluster)].get();
      for (int t = 0; t < threads; ++t)
        all.emplace_back([=, grid = grids.back().get()] {
          place = {grid,
                   block,
                   near,
                   static_cast<unsigned>(b),
                   static_cast<unsigned>(t),
                   static_cast<unsigned>(threads)};
          kernel(pe);
        });
    }
  }
  for (std::thread& one : all) one.join();
}

}  // namespace ablations
