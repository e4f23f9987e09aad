// Block conjugate gradients, the mathematics and nothing else (solvers/block_cg.hpp).
#pragma once

#include "cpufree/reference/vectors.hpp"

namespace cpufree::reference {

using Block = std::vector<Vec>;  // columns

struct BlockSolution {
  Block x;
  std::int64_t iterations = 0;
  std::vector<double> residuals;  // of the recurrence
  std::size_t least_rank = 0;     // fewest directions of an iteration
};

// V = Q B with columns of Q that are orthonormal in the inner product of M (Gram-Schmidt, twice);
// columns of V that depend on those before them give none. `b`: rows of B. apply(v): M v.
template <class F>
Block orthonormal(const Block& v, Block& b, F&& apply) {
  Block q;
  b.clear();
  for (std::size_t k = 0; k < v.size(); ++k) {
    Vec rest = v[k];
    const double before = std::sqrt(dot(rest, apply(rest)));
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t i = 0; i < q.size(); ++i) {
        const double part = dot(rest, apply(q[i]));
        b[i][k] += part;
        rest = axpy(rest, -part, q[i]);
      }
    const double norm = std::sqrt(dot(rest, apply(rest)));
    if (!(norm > 1e-7 * before)) continue;
    b.emplace_back(v.size(), 0.0);
    b.back()[k] = norm;
    for (double& entry : rest) entry /= norm;
    q.push_back(rest);
  }
  return q;
}

// v + w c, of which each row of c belongs to a column of w; `scale` times the latter.
inline Block add_block(const Block& v, double scale, const Block& w, const Block& c) {
  Block sum = v;
  for (std::size_t k = 0; k < sum.size(); ++k)
    for (std::size_t i = 0; i < w.size(); ++i) sum[k] = axpy(sum[k], scale * c[i][k], w[i]);
  return sum;
}

// g^-1 c by Gaussian elimination, g symmetric and positive definite; rows of rows.
inline Block solve_dense(Block g, Block c) {
  for (std::size_t k = 0; k < g.size(); ++k)
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (i == k) continue;
      const double factor = g[i][k] / g[k][k];
      for (std::size_t j = k; j < g.size(); ++j) g[i][j] -= factor * g[k][j];
      for (std::size_t j = 0; j < c[i].size(); ++j) c[i][j] -= factor * c[k][j];
    }
  for (std::size_t k = 0; k < g.size(); ++k)
    for (double& entry : c[k]) entry /= g[k][k];
  return c;
}

// Rows of b f, b with rows as f has.
inline Block product(const Block& b, const Block& f) {
  Block all;
  for (const Vec& row : b) {
    Vec sum(f.empty() ? 0 : f[0].size(), 0.0);
    for (std::size_t j = 0; j < f.size(); ++j) sum = axpy(sum, row[j], f[j]);
    all.push_back(sum);
  }
  return all;
}

// O'Leary 1980 in the form of Dubrulle 2001 (BCGrQ), from x = 0. Stops at ||r|| <= rtol ||b|| in
// all columns, or after `maxiter` iterations. apply(r): M r.
template <class T, class F>
BlockSolution block_cg(const CsrView<T>& a, const Block& rights, double rtol, std::int64_t maxiter,
                       F&& apply) {
  const std::size_t n = rights[0].size();
  BlockSolution s{Block(rights.size(), Vec(n, 0.0)), 0, {}, rights.size()};
  Block f, q = orthonormal(rights, f, apply), p;
  for (const Vec& v : q) p.push_back(apply(v));
  while (true) {
    const Block r = add_block(Block(rights.size(), Vec(n, 0.0)), 1.0, q, f);
    bool done = true;
    s.residuals.clear();
    for (std::size_t k = 0; k < rights.size(); ++k) {
      s.residuals.push_back(std::sqrt(dot(r[k], r[k])));
      done = done && s.residuals[k] <= rtol * std::sqrt(dot(rights[k], rights[k]));
    }
    if (done || s.iterations >= maxiter || q.empty()) return s;
    s.least_rank = q.size() < s.least_rank ? q.size() : s.least_rank;
    Block ap, gram, unit;
    for (const Vec& v : p) ap.push_back(multiply(a, v));
    for (std::size_t i = 0; i < p.size(); ++i) {
      gram.emplace_back();
      for (const Vec& v : ap) gram[i].push_back(dot(p[i], v));
      unit.emplace_back(p.size(), 0.0);
      unit[i][i] = 1.0;
    }
    const Block step = solve_dense(gram, unit);
    s.x = add_block(s.x, 1.0, p, product(step, f));
    Block b;
    const Block next = orthonormal(add_block(q, -1.0, ap, step), b, apply);
    f = product(b, f);
    Block back(p.size(), Vec(next.size()));  // B^T
    for (std::size_t i = 0; i < p.size(); ++i)
      for (std::size_t j = 0; j < next.size(); ++j) back[i][j] = b[j][i];
    Block images;
    for (const Vec& v : next) images.push_back(apply(v));
    p = add_block(images, 1.0, p, back);
    q = next;
    ++s.iterations;
  }
}

}  // namespace cpufree::reference
