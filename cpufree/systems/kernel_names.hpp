// How C++ calls the parts of a kernel, for texts that are compiled when a kernel is first used.
#pragma once

#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/systems/spec.hpp"

namespace cpufree {

// Values of type T.
template <class T>
constexpr const char* type_name() {
  return sizeof(T) == sizeof(double) ? "double" : "float";
}

inline const char* algorithm_of(Method method) {
  switch (method) {
    case Method::cg:
      return "ConjugateGradient";
    case Method::prcg:
      return "PredictRecompute";
    case Method::pipecg:
      return "PipelinedCg";
  }
  throw InvalidInput("unknown method");
}

inline const char* class_of(Preconditioner preconditioner) {
  switch (preconditioner) {
    case Preconditioner::none:
      return "Identity";
    case Preconditioner::jacobi:
      return "Jacobi";
    case Preconditioner::chebyshev:
      return "Chebyshev";
    case Preconditioner::block_jacobi:
    case Preconditioner::fsai:
      return "Factored";
    case Preconditioner::amg:
      return "Multigrid";
  }
  throw InvalidInput("unknown preconditioner");
}

inline const char* name_of(Study study) {
  switch (study) {
    case Study::none:
      return "Study::none";
    case Study::split:
      return "Study::split";
    case Study::no_compute:
      return "Study::no_compute";
    case Study::no_comm:
      return "Study::no_comm";
    case Study::trace:
      return "Study::trace";
  }
  throw InvalidInput("unknown study");
}

inline std::string include_line(const std::string& header) {
  return "#include \"cpufree/" + header + "\"\n";
}

}  // namespace cpufree
