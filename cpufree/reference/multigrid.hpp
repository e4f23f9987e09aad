// Smoothed aggregation (Vanek, Mandel & Brezina 1996, "Algebraic multigrid by smoothed aggregation
// for second and fourth order elliptic problems"), serial and in double precision. The matrix A of
// each level has a diagonal of ones: D^-1/2 A D^-1/2 in place of A.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "cpufree/reference/vectors.hpp"

namespace cpufree::reference {

// A sparse matrix: the entries of each row, by column.
using Sparse = std::vector<std::map<std::size_t, double>>;

template <class T>
Sparse sparse(const CsrView<T>& a) {
  Sparse rows(static_cast<std::size_t>(a.n));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[i]);
         k < static_cast<std::size_t>(a.row_ptr[i + 1]); ++k)
      rows[i][static_cast<std::size_t>(a.col[k])] = static_cast<double>(a.val[k]);
  return rows;
}

inline Vec multiply(const Sparse& a, const Vec& x) {
  Vec y(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (const auto& [j, value] : a[i]) y[i] += value * x[j];
  return y;
}

inline Sparse multiply(const Sparse& a, const Sparse& b) {
  Sparse c(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (const auto& [j, value] : a[i])
      for (const auto& [k, other] : b[j]) c[i][k] += value * other;
  return c;
}

inline Sparse transpose(const Sparse& a, std::size_t columns) {
  Sparse t(columns);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (const auto& [j, value] : a[i]) t[j][i] = value;
  return t;
}

// Strong couplings: |a_ij| >= theta sqrt(a_ii a_jj); or where all couplings of both rows are small,
// as of 27 equal ones, half of the largest of these, and theta / 8.
inline bool strong(const Sparse& a, std::size_t i, std::size_t j, double theta) {
  const auto coupling = [&](std::size_t row, std::size_t column) {
    return std::abs(a[row].at(column)) / std::sqrt(a[row].at(row) * a[column].at(column));
  };
  double largest = 0.0;
  for (const std::size_t row : {i, j})
    for (const auto& [column, unused] : a[row])
      if (column != row) largest = std::max(largest, coupling(row, column));
  return i != j && coupling(i, j) >= std::clamp(0.5 * largest, theta / 8.0, theta);
}

// Which rows a row is strongly coupled to, those of its own PE alone.
using Graph = std::vector<std::vector<std::size_t>>;
inline Graph strong_graph(const Sparse& a, const std::vector<int>& owner, double theta) {
  Graph graph(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (const auto& entry : a[i])
      if (owner[i] == owner[entry.first] && strong(a, i, entry.first, theta))
        graph[i].push_back(entry.first);
  return graph;
}

// A maximal set of rows no two of which are neighbours, or neighbours of one row: those of the
// largest keys first. Bell, Dalton & Olson 2012, "Exposing fine-grained parallelism in algebraic
// multigrid methods", find the same one in parallel.
template <class Key>
std::vector<char> independent_set(const Graph& graph, const std::vector<char>& candidate,
                                  const std::vector<Key>& key) {
  std::map<Key, std::size_t, std::greater<Key>> order;
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (candidate[i] != 0) order[key[i]] = i;
  std::vector<char> in(graph.size(), 0), covered(graph.size(), 0);
  for (const auto& [unused, i] : order) {
    if (covered[i] != 0) continue;
    in[i] = 1;
    for (const std::size_t j : graph[i])
      if (candidate[j] != 0) {
        covered[j] = 1;
        for (const std::size_t k : graph[j]) covered[k] = 1;
      }
  }
  return in;
}

// P = (I - 4 / (3 lambda) D_F^-1 F) T; T(i, c) = constant(i) where row i is of aggregate c, -1:
// of none. F: A without its weak entries, which are added to the diagonal D_F so that F constant =
// A constant, as long as that leaves `least` of the diagonal of A.
inline Sparse smoothed_prolongator(const Sparse& a, const std::vector<int>& aggregate,
                                   const Vec& constant, double theta, double lambda, double least) {
  Sparse p(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    double diagonal = a[i].at(i);
    for (const auto& [j, value] : a[i])
      if (j != i && !strong(a, i, j, theta)) diagonal += value * constant[j] / constant[i];
    diagonal = std::max(diagonal, least * a[i].at(i));
    for (const auto& [j, value] : a[i]) {
      if (aggregate[j] < 0 || (j != i && !strong(a, i, j, theta))) continue;
      const double of_f = j == i ? 1.0 : value / diagonal;
      p[i][static_cast<std::size_t>(aggregate[j])] +=
          ((j == i ? 1.0 : 0.0) - 4.0 / (3.0 * lambda) * of_f) * constant[j];
    }
  }
  return p;
}

// T of several vectors, as of the rigid body modes of an elastic body: its columns in the rows of
// an aggregate are an orthonormal basis of the vectors there (Gram-Schmidt), first those of
// aggregate 0. Vectors become those of the columns: T `vectors` = what they were, in rows of
// aggregates. Vectors that depend on those before them in an aggregate make no column.
inline Sparse tentative_prolongator(const std::vector<int>& aggregate, int aggregates,
                                    std::vector<Vec>& vectors) {
  constexpr double kDependent = 1e-6;
  Sparse t(aggregate.size());
  std::vector<Vec> coarse(vectors.size());
  for (int c = 0; c < aggregates; ++c) {
    std::vector<Vec> basis;  // of vectors that are 0 in all other rows
    std::vector<Vec> parts(vectors.size());
    for (std::size_t m = 0; m < vectors.size(); ++m) {
      Vec v(aggregate.size());
      for (std::size_t i = 0; i < v.size(); ++i)
        if (aggregate[i] == c) v[i] = vectors[m][i];
      const double size = std::sqrt(dot(v, v));
      for (const Vec& q : basis) {
        parts[m].push_back(dot(q, v));
        v = axpy(v, -parts[m].back(), q);
      }
      const double left = std::sqrt(dot(v, v));
      if (!(left > kDependent * size)) continue;
      parts[m].push_back(left);
      basis.push_back(axpy(Vec(v.size()), 1.0 / left, v));
    }
    const std::size_t first = coarse.front().size();
    for (std::size_t q = 0; q < basis.size(); ++q)
      for (std::size_t i = 0; i < basis[q].size(); ++i)
        if (aggregate[i] == c) t[i][first + q] = basis[q][i];
    for (std::size_t m = 0; m < vectors.size(); ++m) {
      parts[m].resize(basis.size());
      coarse[m].insert(coarse[m].end(), parts[m].begin(), parts[m].end());
    }
  }
  vectors = coarse;
  return t;
}

// P = (I - 4 / (3 lambda) D^-1 A) T.
inline Sparse smoothed_prolongator(const Sparse& a, const Sparse& t, double lambda) {
  Sparse p = t;
  const Sparse at = multiply(a, t);
  for (std::size_t i = 0; i < p.size(); ++i)
    for (const auto& [c, value] : at[i]) p[i][c] -= 4.0 / (3.0 * lambda) / a[i].at(i) * value;
  return p;
}

// P^T A P.
inline Sparse galerkin_product(const Sparse& a, const Sparse& p, std::size_t columns) {
  return multiply(transpose(p, columns), multiply(a, p));
}

// Two steps of the Chebyshev iteration for A e = r in [lambda / 4, 1.1 lambda] (Adams, Brezina, Hu
// & Tuminaro 2003, "Parallel multigrid smoothing: polynomial versus Gauss-Seidel"): x += e, and
// r -= A e.
inline void smooth(const Sparse& a, double lambda, Vec& r, Vec& x) {
  const double high = 1.1 * lambda, low = lambda / 4.0;
  const double center = 0.5 * (high + low), radius = 0.5 * (high - low);
  const double sigma = center / radius;
  Vec d = axpy(Vec(r.size()), 1.0 / center, r);
  x = axpy(x, 1.0, d);
  r = axpy(r, -1.0, multiply(a, d));
  const double rho = 1.0 / (2.0 * sigma - 1.0 / sigma);
  d = axpy(axpy(Vec(r.size()), rho / sigma, d), 2.0 * rho / radius, r);
  x = axpy(x, 1.0, d);
  r = axpy(r, -1.0, multiply(a, d));
}

struct Level {
  Sparse a, p;  // p: none on the last one
  double lambda = 1.0;
};

// One V-cycle for A x = r from x = 0, on the levels from `k` on. The last one: `solve`, a dense
// inverse, or smoothing where that is empty.
inline Vec cycle(const std::vector<Level>& levels, const Sparse& solve, Vec r, std::size_t k = 0) {
  const Level& level = levels[k];
  if (k + 1 == levels.size() && !solve.empty()) return multiply(solve, r);
  Vec x(r.size());
  smooth(level.a, level.lambda, r, x);
  if (k + 1 < levels.size()) {
    const std::size_t columns = levels[k + 1].a.size();
    const Vec e =
        multiply(level.p, cycle(levels, solve, multiply(transpose(level.p, columns), r), k + 1));
    x = axpy(x, 1.0, e);
    r = axpy(r, -1.0, multiply(level.a, e));
  }
  smooth(level.a, level.lambda, r, x);
  return x;
}

}  // namespace cpufree::reference
