// Systems with multigrid on the engine for GPUs, here on fibers of the host (host_gpu).
#pragma once

#include <cmath>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/gpu/memory.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/solvers/gpu/place.hpp"
#include "cpufree/solvers/host/system.hpp"
#include "harness.hpp"
#include "matrices.hpp"

namespace testing_multigrid {

using namespace cpufree;
using namespace testing_matrices;

inline SystemSpec spec_for(int pes, int blocks = 2, int threads = 32) {
  SystemSpec spec;
  spec.engine = Engine::cuda_p2p;
  spec.pes = pes;
  spec.blocks = blocks;
  spec.threads = threads;
  spec.factors.kind = Preconditioner::amg;
  return spec;
}

inline SolveSpec solve_spec(double rtol = 1e-8) {
  SolveSpec spec;
  spec.method = Method::cg;
  spec.preconditioner = Preconditioner::amg;
  spec.rtol = rtol;
  spec.maxiter = 60;
  return spec;
}

template <class T>
double residual(const Matrix<T>& a, const std::vector<T>& b, const std::vector<T>& x) {
  const std::vector<double> bb(b.begin(), b.end());
  const auto ax = reference::multiply(a.view(), {x.begin(), x.end()});
  const auto d = reference::axpy(bb, -1.0, ax);
  return std::sqrt(reference::dot(d, d) / reference::dot(bb, bb));
}

inline std::vector<std::int32_t> slabs(std::int32_t rows, int pes) {
  std::vector<std::int32_t> owner(at(rows));
  for (std::int32_t i = 0; i < rows; ++i)
    owner[at(i)] = static_cast<std::int32_t>(std::int64_t{i} * pes / rows);
  return owner;
}

template <class T>
Solution<T> solve(const Matrix<T>& a, const SystemSpec& where, const SolveSpec& how,
                  std::size_t levels = 0) {
  const auto system = make_system<T>(a.view(), slabs(a.n(), where.pes), {}, where);
  if (levels > 0) CHECK_EQ(system->plan().levels.size(), levels);
  for (const LevelReport& level : system->plan().levels) CHECK(level.bytes > 0.0);
  return system->solve(wave<T>(a.n()), {}, how, {});
}

}  // namespace testing_multigrid
