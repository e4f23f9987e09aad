// Which solver kernels of the CPU engine are built in always.
#pragma once

#include "cpufree/multigrid/cycle.hpp"
#include "cpufree/plugins/cpu/kernel.hpp"
#include "cpufree/solvers/host/dispatch.hpp"

namespace cpufree {

// What pc="auto" may take of systems in double precision; others are rare.
template <class T>
inline constexpr bool kUsualCycle = sizeof(T) == sizeof(double);

// cg and prcg, each with Jacobi or without preconditioner.
template <template <class, class> class Algorithm, class M>
inline constexpr bool kUsual =
    (kSameMethod<Algorithm, ConjugateGradient> || kSameMethod<Algorithm, PredictRecompute>) &&
    M::pointwise;

// The kernel of a method and a preconditioner where kUsual is `usual` for them; else null.
template <class T, bool usual>
CpuKernel<T> cpu_kernel_if(const SolveSpec& spec) {
  using P = cpu_threads::Port;
  if (spec.preconditioner == Preconditioner::amg) {  // for cg alone
    if constexpr (usual == kUsualCycle<T>)
      return solve_kernel<ConjugateGradient, Multigrid<T>, AnySlices, P, Sliced<T, P::width>>;
    else
      return nullptr;
  }
  return with_algorithm<T>(spec.method, spec.preconditioner,
                           []<template <class, class> class Algorithm, class M>() -> CpuKernel<T> {
                             if constexpr (kUsual<Algorithm, M> == usual)
                               return solve_kernel<Algorithm, M, AnySlices, P, Sliced<T, P::width>>;
                             else
                               return nullptr;
                           });
}

}  // namespace cpufree
