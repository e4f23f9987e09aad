// From names to code: which algorithm and preconditioner a solve runs.
#pragma once

#include "cpufree/base/error.hpp"
#include "cpufree/solvers/block_cg.hpp"
#include "cpufree/solvers/host/spec.hpp"
#include "cpufree/solvers/kernel.hpp"

namespace cpufree {

// Returns f.operator()<M>() for the preconditioner named.
template <class T, class F>
auto with_preconditioner(Preconditioner preconditioner, F&& f) {
  switch (preconditioner) {
    case Preconditioner::none:
      return f.template operator()<Identity<T>>();
    case Preconditioner::jacobi:
      return f.template operator()<Jacobi<T>>();
    case Preconditioner::chebyshev:
      return f.template operator()<Chebyshev<T>>();
    case Preconditioner::fsai:
      return f.template operator()<Factored<T>>();
    case Preconditioner::amg:
      throw Unsupported("the preconditioner amg is for the method cg, with all PEs on one node");
  }
  throw InvalidInput("unknown preconditioner");
}

// Returns f.operator()<Algorithm>() for the method named.
template <class F>
auto with_method(Method method, F&& f) {
  switch (method) {
    case Method::cg:
      return f.template operator()<ConjugateGradient>();
    case Method::prcg:
      return f.template operator()<PredictRecompute>();
    case Method::pipecg:
      return f.template operator()<PipelinedCg>();
    case Method::minres:
      return f.template operator()<MinimalResidual>();
    case Method::bicgstab:
      return f.template operator()<StabilizedBiCg>();
    case Method::block_cg:
      throw Unsupported("block_cg is for several right-hand sides");
  }
  throw InvalidInput("unknown method");
}

template <template <class, class> class A, template <class, class> class B>
inline constexpr bool kSameMethod = false;
template <template <class, class> class A>
inline constexpr bool kSameMethod<A, A> = true;

// Whether there is a kernel of a method and a preconditioner (check(SolveSpec) says why not).
template <template <class, class> class Algorithm, class M>
inline constexpr bool kHasKernel =
    M::pointwise || !(kSameMethod<Algorithm, StabilizedBiCg> ||
                      (kSameMethod<Algorithm, MinimalResidual> && MultipliesByA<M>));

// Returns kernel_of.operator()<Algorithm, M>() for the method and the preconditioner named.
template <class T, class F>
auto with_algorithm(Method method, Preconditioner preconditioner, F&& kernel_of) {
  return with_method(method, [&]<template <class, class> class Algorithm>() {
    return with_preconditioner<T>(preconditioner, [&]<class M>() {
      using Kernel = decltype(kernel_of.template operator()<ConjugateGradient, M>());
      if constexpr (!kHasKernel<Algorithm, M>)
        return []() -> Kernel { throw Unsupported("the method has no such preconditioner"); }();
      else
        return kernel_of.template operator()<Algorithm, M>();
    });
  });
}

// Whether a kernel of several right-hand sides may be built in.
inline bool is_pointwise(Preconditioner preconditioner) {
  return preconditioner == Preconditioner::none || preconditioner == Preconditioner::jacobi;
}

// The same for several right-hand sides together, with what kernels are built in for.
template <class T, class F>
auto with_columns_kernel(const SolveSpec& spec, F&& kernel_of) {
  const auto with = [&]<template <class, class> class Algorithm>() {
    if (spec.preconditioner == Preconditioner::none)
      return kernel_of.template operator()<Algorithm, Identity<T>>();
    if (spec.preconditioner == Preconditioner::jacobi)
      return kernel_of.template operator()<Algorithm, Jacobi<T>>();
    throw Unsupported(
        "several right-hand sides together with chebyshev or fsai have kernels that are compiled "
        "when they are first used, and this build has its kernels built in: build with "
        "CPUFREE_KERNELS=USUAL");
  };
  if (spec.method == Method::cg) return with.template operator()<ConjugateGradient>();
  if (spec.method == Method::block_cg) return with.template operator()<BlockConjugateGradient>();
  throw InvalidInput("several right-hand sides together are for cg or block_cg");
}

// Returns kernel_of.operator()<S, Algorithm>() for the study and the method named.
template <class F>
auto with_study(Study study, Method method, F&& kernel_of) {
  const auto of = [&]<Study S>() {
    return with_method(method, [&]<template <class, class> class Algorithm>() {
      return kernel_of.template operator()<S, Algorithm>();
    });
  };
  switch (study) {
    case Study::split:
      return of.template operator()<Study::split>();
    case Study::no_compute:
      return of.template operator()<Study::no_compute>();
    case Study::no_comm:
      return of.template operator()<Study::no_comm>();
    case Study::trace:
      throw Unsupported(
          "solves are traced by kernels that are compiled when they are first used, and this build "
          "has its kernels built in: build with CPUFREE_KERNELS=USUAL");
    case Study::none:
      break;
  }
  throw InvalidInput("unknown study");
}

}  // namespace cpufree
