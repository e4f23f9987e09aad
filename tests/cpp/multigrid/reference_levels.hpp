// Hierarchies beside those of the reference, and the grids that they are made of.
#pragma once

#include <cmath>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/multigrid/hierarchy.hpp"
#include "cpufree/multigrid/transfer.hpp"
#include "cpufree/reference/cg.hpp"
#include "cpufree/reference/multigrid.hpp"
#include "matrices.hpp"

namespace testing_levels {

using namespace cpufree;
using namespace testing_matrices;

using multigrid::make_hierarchy;
using reference::Sparse;
using reference::Vec;

// Levels of few rows, so that small systems have several.
inline constexpr multigrid::Options kDeep{.coarsest = 10};

inline std::vector<std::int32_t> slabs(std::int32_t rows, int pes) {
  std::vector<std::int32_t> owner(at(rows));
  for (std::int32_t i = 0; i < rows; ++i)
    owner[at(i)] = static_cast<std::int32_t>(std::int64_t{i} * pes / rows);
  return owner;
}

inline multigrid::Hierarchy hierarchy_of(const Matrix<double>& a, int pes = 1,
                                         const multigrid::Options& options = kDeep) {
  return make_hierarchy(a.view(), slabs(a.n(), pes), {}, options);
}

inline Sparse sparse(const multigrid::SparseMatrix& a) {
  return reference::sparse(CsrView<double>{a.rows(), a.row_ptr, a.col, a.val});
}

inline double distance(const Sparse& a, const Sparse& b) {
  double most = a.size() == b.size() ? 0.0 : 1e300;
  for (std::size_t i = 0; i < a.size() && most < 1e300; ++i) {
    if (a[i].size() != b[i].size()) return 1e300;
    for (const auto& [j, value] : a[i])
      most = std::max(most, b[i].contains(j) ? std::abs(value - b[i].at(j)) : 1e300);
  }
  return most;
}

inline multigrid::SparseMatrix prolongator(const multigrid::SparseMatrix& a,
                                           const multigrid::Aggregates& aggregates,
                                           const Vec& vector, double lambda,
                                           const multigrid::Strength& strong, const Vec& diagonal) {
  return multigrid::smoothed_prolongator(multigrid::view_of(a), aggregates, vector, 1, lambda,
                                         &strong, diagonal)
      .entries;
}

// The hierarchy as the reference has it.
struct Serial {
  explicit Serial(const multigrid::Hierarchy& h) : scale(h.scale) {
    for (const auto& level : h.levels)
      levels.push_back({sparse(level.matrix),
                        &level == &h.levels.back() ? Sparse() : sparse(level.prolongator),
                        level.lambda});
    const std::size_t n = levels.back().a.size();
    if (h.inverse.empty()) return;
    solve.resize(n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) solve[i][j] = h.inverse[i * n + j];
  }
  Vec apply(Vec r) const {
    for (std::size_t i = 0; i < r.size(); ++i) r[i] *= scale[i];
    Vec z = reference::cycle(levels, solve, r);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] *= scale[i];
    return z;
  }
  std::vector<reference::Level> levels;
  Sparse solve;
  std::vector<double> scale;
};

inline std::int64_t iterations(const Matrix<double>& a, const Serial& m, double rtol = 1e-8) {
  return reference::cg(a.view(), wave(a.n()), rtol, 500, [&](const Vec& r) { return m.apply(r); })
      .iterations;
}

// A 7-point grid with a coefficient `weak` in one direction.
inline Matrix<double> grid3d(std::int32_t m, double weak = 1.0) {
  Entries e;
  const auto couple = [&](std::int32_t i, std::int32_t j, double w) { e[{i, j}] = e[{j, i}] = -w; };
  for (std::int32_t k = 0; k < m * m * m; ++k) {
    e[{k, k}] = 4.0 + 2.0 * weak;
    if (k % m + 1 < m) couple(k, k + 1, 1.0);
    if (k / m % m + 1 < m) couple(k, k + m, 1.0);
    if (k / (m * m) + 1 < m) couple(k, k + m * m, weak);
  }
  return from_entries<double>(m * m * m, e);
}

}  // namespace testing_levels
