// Sums over all blocks of all PEs, which are barriers too: by flags, by the barrier of the grid,
// and by one block that does nothing else.
#pragma once

// Includes no words: bench/ablations/words.cuh, or those of a test, come before.

namespace ablations {

constexpr int kMostPes = 8, kMostSums = 2, kWarp = 32, kMostWarps = 32;
constexpr int kRoomOfSums = kMostSums * (kMostWarps + 1);  // doubles of a block

// Sums over the block, the same bits in every thread.
template <int K>
__device__ void block_sum(double (&v)[K]) {
  double* const warps = room();
  const unsigned warp = lane() / kWarp, count = (lanes() + kWarp - 1) / kWarp;
  for (int k = 0; k < K; ++k)
    for (unsigned by = kWarp / 2; by > 0; by /= 2) v[k] += down(v[k], by);
  sync_block();  // all have read the sums before
  if (lane() % kWarp == 0)
    for (int k = 0; k < K; ++k) warps[warp * K + k] = v[k];
  sync_block();
  for (int k = 0; k < K; ++k) {
    v[k] = 0;
    for (unsigned w = 0; w < count; ++w) v[k] += warps[w * K + k];
  }
}

struct SumArgs {
  int pe, pes, blocks;
  Packet* slots[kMostPes];    // 2 parities x pes x blocks x kMostSums on each PE
  Packet* totals;             // 2 x kMostSums, of this PE: from the block that sums
  double* partial;            // 2 x blocks x kMostSums, of this PE
  Packet* leaders[kMostPes];  // 2 x pes x kMostSums on each PE
};

// Every block sends its sums to every PE, every block adds up those of all blocks. A slot of epoch
// e + 2 is written after its writer has pulled e + 1, to which all blocks have contributed after
// they had read those of e.
class FlagSums {
 public:
  __device__ explicit FlagSums(const SumArgs& a) : a_(a) {}

  template <int K>
  __device__ void push(double (&v)[K]) {
    ++epoch_;
    block_sum(v);
    if (static_cast<int>(lane()) < a_.pes) {
      fence(a_.pes > 1);
      Packet* const to = mine(a_.slots[lane()]);
      for (int k = 0; k < K; ++k) put(to + k, v[k], epoch_);
    }
  }
  template <int K>
  __device__ void pull(double (&v)[K]) {
    const Packet* const from = a_.slots[a_.pe] + parity() * a_.pes * a_.blocks * kMostSums;
    for (int k = 0; k < K; ++k) v[k] = 0;
    for (int i = static_cast<int>(lane()); i < a_.pes * a_.blocks; i += static_cast<int>(lanes()))
      for (int k = 0; k < K; ++k) v[k] += wait(from + i * kMostSums + k);
    fence(a_.pes > 1);
    block_sum(v);
  }
  template <int K>
  __device__ void sum(double (&v)[K]) {
    push(v);
    pull(v);
  }

 protected:
  __device__ int parity() const { return static_cast<int>(epoch_ & 1U); }
  __device__ Packet* mine(Packet* slots) const {
    const int source = a_.pe * a_.blocks + static_cast<int>(block());
    return slots + (parity() * a_.pes * a_.blocks + source) * kMostSums;
  }
  __device__ double wait(const Packet* at) const {
    const Patience patience;
    for (;;) {
      const Packet found = look(at);
      if (found.epoch >= epoch_) return found.value;
      patience.spend();
    }
  }

  const SumArgs& a_;
  Epoch epoch_ = 0;
};

// As in Ismayilov 2023, listing 3.1: block 0 of each PE adds up the sums of all blocks and tells
// the others of its PE; it has no rows. Its totals of epoch e + 2 follow the sums of e + 2 of all
// blocks, which each has pushed after it had read those of e + 1.
class OneBlockSums : public FlagSums {
 public:
  using FlagSums::FlagSums;

  template <int K>
  __device__ void pull(double (&v)[K]) {
    Packet* const totals = a_.totals + parity() * kMostSums;
    if (block() == 0) {
      FlagSums::pull(v);
      if (lane() == 0) {
        fence(false);
        for (int k = 0; k < K; ++k) put(totals + k, v[k], epoch_);
      }
      return;
    }
    for (int k = 0; k < K; ++k) v[k] = lane() == 0 ? wait(totals + k) : 0.0;
    fence(a_.pes > 1);
    block_sum(v);
  }
};

// Sums of blocks in memory, then the barrier of the grid. Between PEs block 0 exchanges packets,
// between two such barriers: their barrier says nothing to other GPUs.
class GridSums {
 public:
  __device__ explicit GridSums(const SumArgs& a) : a_(a) {}

  template <int K>
  __device__ void sum(double (&v)[K]) {
    ++epoch_;
    double* const partial = a_.partial + (epoch_ & 1U) * a_.blocks * kMostSums;
    block_sum(v);
    if (lane() == 0)
      for (int k = 0; k < K; ++k) store(partial + block() * kMostSums + k, v[k]);
    grid_sync();
    for (int k = 0; k < K; ++k) v[k] = 0;
    for (int i = static_cast<int>(lane()); i < a_.blocks; i += static_cast<int>(lanes()))
      for (int k = 0; k < K; ++k) v[k] += get_value(partial + i * kMostSums + k);
    block_sum(v);
    if (a_.pes > 1) exchange(v);
  }

 private:
  template <int K>
  __device__ void exchange(double (&v)[K]) {
    const int first = static_cast<int>(epoch_ & 1U) * a_.pes * kMostSums;
    if (block() == 0 && static_cast<int>(lane()) < a_.pes) {
      fence(true);
      for (int k = 0; k < K; ++k)
        put(a_.leaders[lane()] + first + a_.pe * kMostSums + k, v[k], epoch_);
      const Patience patience;
      for (int k = 0; k < K; ++k)
        while (look(a_.leaders[a_.pe] + first + static_cast<int>(lane()) * kMostSums + k).epoch <
               epoch_)
          patience.spend();
      fence(true);
    }
    grid_sync();
    for (int k = 0; k < K; ++k) {
      v[k] = 0;
      for (int pe = 0; pe < a_.pes; ++pe)
        v[k] += look(a_.leaders[a_.pe] + first + pe * kMostSums + k).value;
    }
    fence(true);
  }

  const SumArgs& a_;
  Epoch epoch_ = 0;
};

}  // namespace ablations
