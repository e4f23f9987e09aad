// Jacobi's iterations in two dimensions in one kernel, single precision, fixed boundary: a slab of
// rows for each block, of which it keeps some in its shared memory over all iterations (PERKS,
// Zhang et al. 2023); edges go to the blocks beside it by memory and flags, or by the shared memory
// of its cluster; and blocks may belong to one kernel or to two.
#pragma once

namespace ablations {

struct JacobiArgs {
  int nx, ny;   // rows and points of a row
  int slabs;    // of all kernels
  int first;    // the slab of block 0 of this kernel
  int kept;     // most rows that a block keeps
  int cluster;  // blocks of a cluster that exchange edges by shared memory; 1: none do
  int iterations;
  const float* start;
  float* values[2];  // nx x ny each; rows that are kept are written at the end alone
  float* edges;      // 2 parities x slabs x (first row, last row) x ny
  Epoch* done;       // a word for each slab, kFlagStep apart: iterations whose edges are there
};
constexpr int kFlagStep = 16;   // words of 8 bytes
constexpr int kRowsAtOnce = 8;  // in memory: all loads of a column of these come before its stores

// A slab: rows [low, high), those before `own` kept.
struct Slab {
  int number, low, high, own;
  __device__ explicit Slab(const JacobiArgs& a) {
    number = a.first + static_cast<int>(block());
    low = static_cast<int>(static_cast<long long>(a.nx) * number / a.slabs);
    high = static_cast<int>(static_cast<long long>(a.nx) * (number + 1) / a.slabs);
    own = high - low < a.kept ? high : low + a.kept;
  }
};

__device__ inline float* edge(const JacobiArgs& a, Epoch epoch, int slab, int which) {
  const long long row = (static_cast<long long>(epoch & 1U) * a.slabs + slab) * 2 + which;
  return a.edges + row * a.ny;
}

// `kColumns`: points of a row that a thread has, at most. A constant, so that arrays are registers.
template <int kColumns>
class Jacobi {
 public:
  // The room: kept rows, then two parities of both edges where a cluster exchanges them.
  __device__ explicit Jacobi(const JacobiArgs& a)
      : a_(a), slab_(a), kept_(reinterpret_cast<float*>(room())) {}

  __device__ void run() {
    start();
    for (int t = 0; t < a_.iterations; ++t) {
      await(static_cast<Epoch>(t) + 1);
      const float* const from = a_.values[t % 2];
      float* const to = a_.values[(t + 1) % 2];
      above_ = from_beside(t, -1), below_ = from_beside(t, 1);
      for (int row = slab_.own; row < slab_.high; row += kRowsAtOnce) rows(row, from, to);
      sync_block();
      kept_rows(from);
      give_edges(t + 1, to);
    }
    finish();
  }

 private:
  __device__ int begin() const { return static_cast<int>(lane()); }
  __device__ int step() const { return static_cast<int>(lanes()); }
  __device__ float* kept(int row) const {
    return kept_ + static_cast<long long>(row - slab_.low) * a_.ny;
  }
  // A row of the slab as it was, or of the slab beside it.
  __device__ const float* old(int row, const float* from) const {
    if (row < slab_.low) return above_;
    if (row >= slab_.high) return below_;
    return row < slab_.own ? kept(row) : from + static_cast<long long>(row) * a_.ny;
  }
  __device__ bool fixed(int row, int j) const {
    return row == 0 || row == a_.nx - 1 || j == 0 || j == a_.ny - 1;
  }

  __device__ void start() {
    for (int row = slab_.low; row < slab_.high; ++row)
      for (int j = begin(); j < a_.ny; j += step()) {
        const long long at = static_cast<long long>(row) * a_.ny + j;
        if (row < slab_.own)
          kept(row)[j] = a_.start[at];
        else
          a_.values[0][at] = a_.start[at];
      }
    sync_block();
    give_edges(0, a_.values[0]);
  }

  // Rows in memory, from one copy to the other. No load depends on a branch or follows a store, so
  // a thread waits for memory once in a column; rows past the last one are loaded again.
  __device__ void rows(int row, const float* from, float* to) const {
    const int count = slab_.high - row < kRowsAtOnce ? slab_.high - row : kRowsAtOnce;
    const float* const first = from + static_cast<long long>(row) * a_.ny;
    float* const out = to + static_cast<long long>(row) * a_.ny;
    const float* const up = row == 0 ? first : old(row - 1, from);
    const float* const down = row + count == a_.nx ? first : old(row + count, from);
    for (int j = begin(); j < a_.ny; j += step()) {
      const int left = j == 0 ? j : j - 1, right = j == a_.ny - 1 ? j : j + 1;
      float mine[kRowsAtOnce + 1], beside[kRowsAtOnce], above = up[j];
      ABLATIONS_UNROLL
      for (int k = 0; k < kRowsAtOnce; ++k) {
        const float* const here = first + (k < count ? k * a_.ny : 0);
        mine[k] = k < count ? here[j] : down[j];
        beside[k] = here[left] + here[right];
      }
      mine[kRowsAtOnce] = down[j];
      ABLATIONS_UNROLL
      for (int k = 0; k < kRowsAtOnce; ++k) {
        const float next = 0.25F * ((above + mine[k + 1]) + beside[k]);
        above = mine[k];
        if (k < count) out[k * a_.ny + j] = fixed(row + k, j) ? mine[k] : next;
      }
    }
  }
  // Rows in shared memory, in place from the first one on: what was above is in registers. Threads
  // that have fewer columns compute the last one in vain, so that no load depends on a branch.
  __device__ void kept_rows(const float* from) {
    float above[kColumns], next[kColumns];
    const float* const up = slab_.low == 0 ? a_.start : old(slab_.low - 1, from);
    ABLATIONS_UNROLL
    for (int k = 0; k < kColumns; ++k) above[k] = up[column(k)];
    for (int row = slab_.low; row < slab_.own; ++row) {
      float* const mine = kept(row);
      const float* const down = row + 1 < a_.nx ? old(row + 1, from) : mine;
      ABLATIONS_UNROLL
      for (int k = 0; k < kColumns; ++k) {
        const int j = column(k), left = j == 0 ? j : j - 1, right = j == a_.ny - 1 ? j : j + 1;
        const float was = mine[j];
        const float mean = 0.25F * ((above[k] + down[j]) + (mine[left] + mine[right]));
        next[k] = fixed(row, j) ? was : mean;
        above[k] = was;
      }
      sync_block();
      ABLATIONS_UNROLL
      for (int k = 0; k < kColumns; ++k)
        if (begin() + k * step() < a_.ny) mine[column(k)] = next[k];
    }
    sync_block();
  }
  __device__ int column(int k) const {
    const int j = begin() + k * step();
    return j < a_.ny ? j : a_.ny - 1;
  }

  __device__ bool in_cluster(int slab) const {
    return a_.cluster > 1 && slab / a_.cluster == slab_.number / a_.cluster;
  }
  __device__ float* near_edge(float* base, int epoch, int which) const {
    const long long rows = slab_most() + 2LL * (epoch & 1) + which;
    return base + rows * a_.ny;
  }
  __device__ int slab_most() const { return a_.kept; }

  __device__ const float* from_beside(int epoch, int by) const {
    const int other = slab_.number + by, which = by < 0 ? 1 : 0;
    if (other < 0 || other >= a_.slabs) return nullptr;
    if (in_cluster(other)) return near_edge(room_of(other % a_.cluster), epoch, which);
    return edge(a_, static_cast<Epoch>(epoch), other, which);
  }
  // Edges of copy `epoch` of the values; two parities, since a block that gives those of e + 2 has
  // awaited those of e + 1 of the blocks beside it, which had read those of e before.
  __device__ void give_edges(int epoch, const float* from) const {
    for (int which = 0; which < 2; ++which) {
      const int row = which == 0 ? slab_.low : slab_.high - 1, other = slab_.number + 2 * which - 1;
      if (other < 0 || other >= a_.slabs) continue;
      float* const to = in_cluster(other)
                            ? near_edge(kept_, epoch, which)
                            : edge(a_, static_cast<Epoch>(epoch), slab_.number, which);
      const float* const mine =
          row < slab_.own ? kept(row) : from + static_cast<long long>(row) * a_.ny;
      for (int j = begin(); j < a_.ny; j += step()) to[j] = mine[j];
    }
    sync_block();
    if (lane() == 0 && needs_flag()) {
      fence(false);
      set_word(a_.done + static_cast<long long>(slab_.number) * kFlagStep,
               static_cast<Epoch>(epoch) + 1);
    }
  }
  __device__ bool needs_flag() const {
    return a_.cluster == 1 || slab_.number % a_.cluster == 0 ||
           slab_.number % a_.cluster == a_.cluster - 1;
  }
  __device__ void await(Epoch epoch) const {
    if (a_.cluster > 1) cluster_sync();
    for (int by = -1; by <= 1; by += 2) {
      const int other = slab_.number + by;
      if (lane() != (by < 0 ? 0U : 1U) || other < 0 || other >= a_.slabs || in_cluster(other))
        continue;
      const Patience patience;
      while (word(a_.done + static_cast<long long>(other) * kFlagStep) < epoch) patience.spend();
      fence(false);
    }
    sync_block();
  }

  __device__ void finish() const {
    float* const to = a_.values[a_.iterations % 2];
    for (int row = slab_.low; row < slab_.own; ++row)
      for (int j = begin(); j < a_.ny; j += step())
        to[static_cast<long long>(row) * a_.ny + j] = kept(row)[j];
    if (a_.cluster > 1) cluster_sync();  // no block ends while others read its memory
  }

  const JacobiArgs& a_;
  Slab slab_;
  float* kept_;
  const float *above_ = nullptr, *below_ = nullptr;
};

}  // namespace ablations
