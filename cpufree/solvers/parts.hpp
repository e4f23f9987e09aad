// Kernels in parts: modules that compilers translate side by side, and a linker puts together. The
// compiler is told by CPUFREE_PART which one it has: 0, the kernel, without the functions out of
// line that are listed here, or another one, which has those of its number, as `CPUFREE_PART_k` is
// then empty. Without CPUFREE_PART a text is one module that has everything.
#pragma once

#include "cpufree/solvers/kernel.hpp"

#ifndef CPUFREE_PART_1
#define CPUFREE_PART_1 extern
#endif
#ifndef CPUFREE_PART_2
#define CPUFREE_PART_2 extern
#endif
#ifndef CPUFREE_PART_3
#define CPUFREE_PART_3 extern
#endif
#ifndef CPUFREE_PART_4
#define CPUFREE_PART_4 extern
#endif
#ifndef CPUFREE_PART_5
#define CPUFREE_PART_5 extern
#endif

// A function of a part: of the context Ctx, by its parameters behind those that all have.
#define CPUFREE_APART(part, function, ...)                                          \
  CPUFREE_PART_##part template __device__ ColdResult<Ctx> function<Ctx>(            \
      Ctx::PortType, const Ctx::Args&, const Ctx::Share&, const Ctx::BlockVectors&, \
      Ctx::State __VA_OPT__(, ) __VA_ARGS__);

// Those of all kernels, the fourth part where it is used; of a method; of a preconditioner M.
#define CPUFREE_PARTS_OF_ALL                             \
  CPUFREE_APART(1, true_residual_cold, Keep, ColumnMask) \
  CPUFREE_APART(2, sum_cold, RareSums<Ctx>&)             \
  CPUFREE_APART(4, product_cold, Ghosted<Ctx::T>, Private<Ctx::T>, bool)

#define CPUFREE_PARTS_OF_ConjugateGradient
#define CPUFREE_PARTS_OF_PredictRecompute CPUFREE_APART(1, step_cold, const M&, Ctx::T)
#define CPUFREE_PARTS_OF_PipelinedCg                                              \
  CPUFREE_PARTS_OF_PredictRecompute CPUFREE_APART(2, images_cold, const M&, bool) \
      CPUFREE_APART(3, take_over_cold, const M&, Monitors<Ctx>&)

#define CPUFREE_PARTS_OF_Identity
#define CPUFREE_PARTS_OF_Jacobi
#define CPUFREE_PARTS_OF_Factored CPUFREE_APART(3, apply_cold, const M&, Private<Ctx::T>)
#define CPUFREE_PARTS_OF_Chebyshev CPUFREE_PARTS_OF_Factored CPUFREE_APART(2, lambda_max_cold)
#define CPUFREE_PARTS_OF_Multigrid                                                               \
  CPUFREE_PARTS_OF_Factored using Level = WarpSlices<float>;                                     \
  CPUFREE_PART_4 template __device__ bool take_packets(                                          \
      Ctx::PortType, const CycleLevel<Level>&, const CycleLevel<Level>&, Epoch, int, CycleStep); \
  CPUFREE_PART_5 template class OnLevel<Ctx::PortType, Level>;
