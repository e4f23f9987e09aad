// Systems with multigrid by the engine for GPUs, on the stand-in, beside those of CPU threads.
#pragma once

#include <cmath>

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

// The same on CPU threads.
template <class T>
Solution<T> on_cpu(const Matrix<T>& a, SystemSpec where, const SolveSpec& how) {
  where.engine = Engine::cpu_threads;
  where.threads = 0;
  return solve(a, where, how);
}

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i] - b[i])));
    size = std::max(size, std::abs(static_cast<double>(b[i])));
  }
  return most / size;
}

template <class T>
void check_alike_by_host_and_gpu(const Matrix<T>& a, SystemSpec where, std::size_t levels = 0) {
  auto how = solve_spec(0.0);
  how.maxiter = 3;
  where.layout = 0;
  const auto by_host = solve(a, where, how, levels);
  where.layout = 1;
  CHECK(largest_difference(solve(a, where, how, levels).x, by_host.x) < 1e-6);
}

// A grid behind and between rows that no other is coupled to.
inline Matrix<double> with_isolated_rows(const Matrix<double>& grid) {
  Entries e;
  const auto place = [](std::int32_t row) { return 77 + row + row / 5; };
  for (std::int32_t i = 0; i < place(grid.n()); ++i) e[{i, i}] = 2.0 + i % 3;
  for (std::int32_t row = 0; row < grid.n(); ++row)
    for (auto k = at(grid.row_ptr[at(row)]); k < at(grid.row_ptr[at(row) + 1]); ++k)
      e[{place(row), place(grid.col[k])}] = grid.val[k];
  return from_entries<double>(place(grid.n()), e);
}

}  // namespace testing_multigrid
