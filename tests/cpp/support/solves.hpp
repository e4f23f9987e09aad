// What tests of whole solves ask for.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "cpufree/reference/cg.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "matrices.hpp"

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

inline cpufree::SolveSpec spec_of(cpufree::Method method, cpufree::Preconditioner preconditioner,
                                  double rtol = 1e-9) {
  cpufree::SolveSpec spec = solve_spec(method, preconditioner);
  spec.rtol = rtol;
  spec.maxiter = 5000;
  spec.wait_limit = 300.0;
  return spec;
}

template <class T>
std::unique_ptr<cpufree::System<T>> system_of(const testing_matrices::Matrix<T>& a, int pes,
                                              int blocks, unsigned seed = 7) {
  return cpufree::make_system<T>(a.view(), testing_matrices::random_partition(a.n(), pes, seed), {},
                                 {cpufree::Engine::cpu_threads, pes, blocks});
}

inline double norm(const cpufree::reference::Vec& v) {
  return std::sqrt(cpufree::reference::dot(v, v));
}

template <class T>
double true_residual(const testing_matrices::Matrix<T>& a, const std::vector<T>& b,
                     const std::vector<T>& x) {
  using namespace cpufree::reference;
  return norm(axpy(Vec(b.begin(), b.end()), -1.0, multiply(a.view(), Vec(x.begin(), x.end()))));
}

}  // namespace testing_solves
