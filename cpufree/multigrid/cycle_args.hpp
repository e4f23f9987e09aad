// What a kernel is given for a multigrid cycle: plain structs of pointers and numbers.
#pragma once

#include <cstdint>

#include "cpufree/formats/slices/slice_codes.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

// How levels are stored where slices have codes: values as they are, single columns; where there
// are fewer rows than threads, lanes share them.
using LevelSlices = SharedSlicesOf<kSingles | kPlainValues>;

// Exchanges of a level in one cycle, at most. They are numbered from a multiple of it, so that
// every block knows all epochs from the number of the cycle. Numbers that a level does not need are
// left out: flags are compared by >=.
inline constexpr Epoch kCycleExchanges = 6;

// One block's rows of a prolongator or of its transpose.
template <class F>
struct TransferShare {
  F matrix;
  typename F::Rows interior;
  typename F::Rows boundary;
};

// How all PEs come to have the right-hand side of a level: each puts the rows that it restricts to.
struct CycleGather {
  float* all = nullptr;                // symmetric: rows of the level. Null: nothing is gathered
  const std::int32_t* rows = nullptr;  // those of my PE
  float* mine = nullptr;               // room for as many
  ArrivalBoard board;                  // all blocks of all PEs
};

// How a level's blocks exchange its vectors where these are small, and no other PE has rows of it:
// each entry is a packet.
struct LevelPackets {
  SmallPacket* all = nullptr;  // rows for each exchange of a cycle. Null: vectors and flags
  const std::int32_t* first_rows = nullptr;  // of each block, for diagnosis
};

// One level as a block of a PE has it, of matrices F in single precision: its scaled matrix, or the
// inverse of that on the last level, if it has one. Of the vectors there are r, x and the two
// scratch vectors; of level 0 private numbers are those of A. Halos are stores.
template <class F>
struct alignas(16) CycleLevel {
  SolveArgs<F> args;  // without shares
  BlockShare<F> share;
  TransferShare<F> restriction;   // rows of the next level
  TransferShare<F> prolongation;  // rows of this one
  CycleGather gathering;          // of the next level, if all PEs have that whole
  LevelPackets packets;
  bool solves = false;    // the matrix is an inverse
  std::int32_t told = 5;  // number of the exchange that the level above reads
  // Two steps of Chebyshev's iteration: d = first r, then d = keep d + add r.
  float first = 1.0F, keep = 0.0F, add = 0.0F;
};

// The steps for the interval [lambda / 4, 1.1 lambda], lambda the largest eigenvalue of the matrix
// (Adams, Brezina, Hu & Tuminaro 2003, "Parallel multigrid smoothing: polynomial versus
// Gauss-Seidel"; Saad 2003, "Iterative methods for sparse linear systems", algorithm 12.1).
template <class F>
void set_steps(CycleLevel<F>& level, double lambda) {
  const double high = 1.1 * lambda, low = 0.25 * lambda;
  const double center = 0.5 * (high + low), radius = 0.5 * (high - low);
  const double sigma = center / radius;
  const double next = 1.0 / (2.0 * sigma - 1.0 / sigma);
  level.first = static_cast<float>(1.0 / center);
  level.keep = static_cast<float>(next / sigma);
  level.add = static_cast<float>(2.0 * next / radius);
}

template <class M>
struct CycleArgs {
  using F = typename M::Single;
  using T = typename M::Value;
  const CycleLevel<F>* levels = nullptr;  // of each block one after the other
  std::int32_t count = 0;
  const T* scale = nullptr;  // D^-1/2 of A, in the order of the private vectors
};

// Bytes that a block's levels take in its fast memory.
template <class F>
constexpr std::size_t fast_level_bytes(std::size_t levels) {
  return levels * sizeof(CycleLevel<F>);
}

}  // namespace cpufree
