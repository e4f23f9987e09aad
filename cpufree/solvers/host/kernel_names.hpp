// How C++ calls the parts of a solver kernel, for texts that are compiled when a kernel is first
// used.
#pragma once

#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

inline const char* algorithm_of(Method method) {
  switch (method) {
    case Method::cg:
      return "ConjugateGradient";
    case Method::prcg:
      return "PredictRecompute";
    case Method::pipecg:
      return "PipelinedCg";
    case Method::minres:
      return "MinimalResidual";
    case Method::bicgstab:
      return "StabilizedBiCg";
    case Method::block_cg:
      return "BlockConjugateGradient";
  }
  throw InvalidInput("unknown method");
}

// The header of a method that solver kernels do not have anyway; "": none.
inline const char* header_of(Method method) {
  return method == Method::block_cg ? "solvers/block_cg.hpp" : "";
}

inline const char* class_of(Preconditioner preconditioner) {
  switch (preconditioner) {
    case Preconditioner::none:
      return "Identity";
    case Preconditioner::jacobi:
      return "Jacobi";
    case Preconditioner::chebyshev:
      return "Chebyshev";
    case Preconditioner::fsai:
      return "Factored";
    case Preconditioner::amg:
      return "Multigrid";
  }
  throw InvalidInput("unknown preconditioner");
}

// The same of values of a type, for a number of columns: a pointwise one is for any number.
inline std::string class_of(Preconditioner preconditioner, const std::string& type, int columns) {
  const bool one = columns == 1 || preconditioner == Preconditioner::none ||
                   preconditioner == Preconditioner::jacobi;
  return std::string(class_of(preconditioner)) + "<" + type +
         (one ? "" : ", " + std::to_string(columns)) + ">";
}

}  // namespace cpufree
