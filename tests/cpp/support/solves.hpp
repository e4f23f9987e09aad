// What tests of whole solves ask for.
#pragma once

#include "cpufree/solvers/host/spec.hpp"

namespace testing_solves {

inline constexpr cpufree::Method kMethods[] = {cpufree::Method::cg, cpufree::Method::prcg,
                                               cpufree::Method::pipecg};
inline constexpr cpufree::Preconditioner kPreconditioners[] = {cpufree::Preconditioner::none,
                                                               cpufree::Preconditioner::jacobi,
                                                               cpufree::Preconditioner::chebyshev};

inline cpufree::SolveSpec solve_spec(cpufree::Method method,
                                     cpufree::Preconditioner preconditioner) {
  cpufree::SolveSpec spec;
  spec.method = method;
  spec.preconditioner = preconditioner;
  spec.rtol = 1e-10;
  spec.maxiter = 2000;
  return spec;
}

}  // namespace testing_solves
