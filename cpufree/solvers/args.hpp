// What a solver kernel is given, and what it gives back. Plain structs of pointers and numbers.
#pragma once

#include <cstdint>

#include "cpufree/device/channel.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

enum class Method : std::int32_t { cg, prcg, pipecg };
enum class Preconditioner : std::int32_t { none, jacobi, chebyshev };

// Why a solve ended. Names and meanings after PETSc's KSPConvergedReason where it has one.
enum class Reason : std::int32_t {
  running,
  converged_rtol,           // ||b - A x|| <= rtol ||b||
  converged_atol,           // ||b - A x|| <= atol, or b = 0
  diverged_its,             // maxiter reached
  diverged_dtol,            // the residual grew beyond all bounds
  diverged_nanorinf,        // a NaN or an infinity in the data or the recurrence
  diverged_indefinite_mat,  // p . A p <= 0 for some p != 0
  diverged_indefinite_pc,   // r . M r <= 0 for some r != 0
  diverged_breakdown,       // the recurrence cannot go on
  stagnated,                // rounding errors admit no smaller residual
  time_limit,
  interrupted
};

struct SolveParams {
  double rtol = 1e-5;
  double atol = 0.0;
  std::int64_t maxiter = 0;
  std::int32_t replace_every = 50;    // pipecg: iterations between residual replacements, 0 never
  std::int32_t chebyshev_degree = 4;  // steps of the Chebyshev iteration
  double lambda_bound = 0.0;          // max_i sum_j |a_ij| / a_ii, bounds the spectrum of D^-1 A
  double roundoff = 0.0;              // unit roundoff of the vectors' type
  bool has_guess = false;             // x holds x0; else x0 = 0
  std::int64_t history_capacity = 0;  // at least 2
};

struct Outcome {
  Reason reason = Reason::running;
  std::int64_t iterations = 0;
  double residual = 0.0;       // norm of the recurrence's residual
  double true_residual = 0.0;  // norm of b - A x
  double bnorm = 0.0;
  double lambda_max = 0.0;  // estimate for D^-1 A, Chebyshev only
  std::int64_t history_count = 0;
  std::int64_t history_stride = 1;
  std::int64_t replacements = 0;     // times that b - A x replaced the recurrence's residual
  std::int64_t handed_over_at = -1;  // pipecg: iteration at which prcg took over, -1 never
  std::int64_t reductions = 0;
  std::int64_t exchanges = 0;
};

// Vectors of one PE. Those marked `ghosted` are symmetric and have rows + ghosts entries.
template <class T>
struct Vectors {
  const T* b = nullptr;
  T* x = nullptr;
  T* r = nullptr;
  T* s = nullptr;
  T* p = nullptr;                       // ghosted
  T* scratch[2] = {};                   // ghosted, used in turn
  const T* inverse_diagonal = nullptr;  // Jacobi, Chebyshev
  T* z = nullptr;                       // pipecg; Chebyshev: preconditioned vector
  T* w = nullptr;                       // pipecg
  T* n = nullptr;                       // pipecg
  T* u = nullptr;                       // Chebyshev with prcg, pipecg: preconditioned residual
  T* q = nullptr;                       // Chebyshev with pipecg
  T* out = nullptr;                     // Chebyshev: its result
  T* rest = nullptr;                    // Chebyshev: its own residual
};

// One block's share of the matrix, and its partners.
template <class M>
struct BlockShare {
  M matrix;
  typename M::Rows interior;
  typename M::Rows boundary;
  ArrivalBoard board;
};

// One PE's arguments.
template <class M>
struct SolveArgs {
  using T = typename M::Value;
  SolveParams params;
  Vectors<T> vectors;
  const BlockShare<M>* shares = nullptr;   // one per block
  std::int32_t interior = 0;               // number of interior rows
  const std::int64_t* send_ptr = nullptr;  // boundary rows + 1
  const Destination* destinations = nullptr;
  const std::int32_t* global_row = nullptr;  // rows
  Packet* slots = nullptr;                   // symmetric
  Outcome* outcome = nullptr;                // written by PE 0
  double* history = nullptr;                 // PE 0: history_capacity residual norms
};

}  // namespace cpufree
