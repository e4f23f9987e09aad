// Which method and preconditioner a solve runs, its parameters, and how it ended: plain data for
// host code, which needs no kernel for it (args.hpp has what kernels are given).
#pragma once

#include <cstdint>

namespace cpufree {

enum class Method : std::int32_t { cg, prcg, pipecg, minres, bicgstab, block_cg };
enum class Preconditioner : std::int32_t { none, jacobi, chebyshev, fsai, amg };

// Why a solve ended. Names and meanings after PETSc's KSPConvergedReason where it has one.
enum class Reason : std::int32_t {
  running,
  converged_rtol,           // ||b - A x|| <= rtol ||b||
  converged_atol,           // ||b - A x|| <= atol, or b = 0
  diverged_its,             // maxiter reached
  diverged_dtol,            // the residual grew beyond all bounds, as M measures it: r . M r
  diverged_nanorinf,        // a NaN or an infinity in the data or the recurrence
  diverged_indefinite_mat,  // p . A p <= 0 for some p != 0
  diverged_indefinite_pc,   // r . M r <= 0 for some r != 0
  diverged_breakdown,       // the recurrence cannot go on
  stagnated,                // the true residual has stopped falling
  time_limit,
  interrupted
};

struct SolveParams {
  double rtol = 1e-5;
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
  std::int32_t dependent = 0;  // block_cg: 1 if it was found to depend on the other columns
  std::int64_t iterations = 0;
  double residual = 0.0;           // norm of the recurrence's residual
  double true_residual = 0.0;      // norm of b - A x
  double weighted_residual = 0.0;  // of D^-1 (b - A x), over that of D^-1 b; 0: not known
  double bnorm = 0.0;
  double lambda_max = 0.0;  // estimate for D^-1 A, Chebyshev only
  std::int64_t history_count = 0;
  std::int64_t history_stride = 1;
  std::int64_t replacements = 0;     // times that b - A x replaced the recurrence's residual
  std::int64_t handed_over_at = -1;  // pipecg: iteration at which prcg took over, -1 never
  std::int64_t reductions = 0;
  std::int64_t exchanges = 0;
};

}  // namespace cpufree
