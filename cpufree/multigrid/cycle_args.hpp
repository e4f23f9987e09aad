// What a kernel is given for a multigrid cycle: plain structs of pointers and numbers.
#pragma once

#include <cstdint>

#include "cpufree/formats/slice_codes.hpp"
#include "cpufree/solvers/args.hpp"

namespace cpufree {

// How levels are stored where slices have codes: values as they are, single columns; where there
// are fewer rows than threads, lanes share them.
using LevelSlices = SharedSlicesOf<kSingles | kPlainValues>;

// One block's rows of a prolongator or of its transpose.
template <class F>
struct TransferShare {
  F matrix;
  typename F::Rows interior;
  typename F::Rows boundary;
};

// How all PEs come to have the right-hand side of a level: each puts the rows that it restricts to.
struct CycleGather {
  float* all = nullptr;                  // symmetric: rows of the level. Null: nothing is gathered
  const std::int32_t* rows = nullptr;    // those of my PE
  float* mine = nullptr;                 // room for as many
  const ArrivalBoard* boards = nullptr;  // one per block: all blocks of all PEs
};

// One level of one PE, of matrices F in single precision: its scaled matrix, or the inverse of that
// on the last level, if it has one. Of the vectors there are r, x and the two scratch vectors;
// of level 0 private numbers are those of A. Halos are stores.
template <class F>
struct CycleLevel {
  SolveArgs<F> args;
  const TransferShare<F>* restriction = nullptr;   // one per block: rows of the next level
  const TransferShare<F>* prolongation = nullptr;  // one per block: rows of this one
  bool solves = false;                             // the matrix is an inverse
  CycleGather gathering;                           // of the next level, if all PEs have that whole
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
  const CycleLevel<F>* levels = nullptr;
  std::int32_t count = 0;
  const T* scale = nullptr;  // D^-1/2 of A, in the order of the private vectors
};

}  // namespace cpufree
