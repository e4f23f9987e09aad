// From names to code: which algorithm and preconditioner a solve runs.
#pragma once

#include "cpufree/base/error.hpp"
#include "cpufree/run/spec.hpp"
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
  }
  throw InvalidInput("unknown preconditioner");
}

// Returns kernel_of.operator()<Algorithm, M>() for the method and the preconditioner named.
template <class T, class F>
auto with_algorithm(Method method, Preconditioner preconditioner, F&& kernel_of) {
  switch (method) {
    case Method::cg:
      return with_preconditioner<T>(preconditioner, [&]<class M>() {
        return kernel_of.template operator()<ConjugateGradient, M>();
      });
    case Method::prcg:
      return with_preconditioner<T>(preconditioner, [&]<class M>() {
        return kernel_of.template operator()<PredictRecompute, M>();
      });
    case Method::pipecg:
      return with_preconditioner<T>(preconditioner, [&]<class M>() {
        return kernel_of.template operator()<PipelinedCg, M>();
      });
  }
  throw InvalidInput("unknown method");
}

}  // namespace cpufree
