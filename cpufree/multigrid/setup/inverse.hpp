// Kernels that make a hierarchy on a GPU: the inverse of the last level's matrix, dense and in
// place, block by block (Gauss and Jordan), without pivots: it is symmetric and positive definite.
#pragma once

#include "cpufree/multigrid/setup/strength.hpp"

namespace cpufree::multigrid::setup {

inline constexpr int kInverseBlock = 32;  // rows that are eliminated at once

// w = A v.
struct MultiplyVector {
  Rows a;
  const double* v = nullptr;
  double* w = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, a.count, [&](std::int64_t row) {
      double sum = 0.0;
      for (std::int64_t k = a.ptr[row]; k < a.ptr[row + 1]; ++k) sum += a.val[k] * v[a.col[k]];
      w[row] = sum;
    });
  }
};

// The matrix that is inverted: A, row by row, and `factor` v v^T.
struct SpreadDense {
  Rows a;
  const double* v = nullptr;
  double factor = 0.0;
  double* to = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_team_item(port, a.count, a.count, [&](std::int64_t row) {
      double* const mine = to + row * a.count;
      for (std::int64_t j = port.team_lane(); j < a.count; j += P::team_lanes())
        mine[j] = factor * v[row] * v[j];
      port.sync_team();
      for (std::int64_t k = a.ptr[row] + port.team_lane(); k < a.ptr[row + 1]; k += P::team_lanes())
        mine[a.col[k]] += a.val[k];
    });
  }
};

// What the steps of a block work on.
struct DenseBlock {
  std::int64_t rows = 0;  // of the matrix
  std::int64_t first = 0;
  int size = 0;               // rows of the block
  double* matrix = nullptr;   // rows x rows
  double* inverse = nullptr;  // of the block, size x size
  double* right = nullptr;    // that times the block's rows, size x rows
  double* left = nullptr;     // the block's columns as they were, rows x size

  CPUFREE_KERNEL_FN double& at(std::int64_t i, std::int64_t j) const {
    return matrix[i * rows + j];
  }
  CPUFREE_KERNEL_FN bool has(std::int64_t i) const { return i >= first && i < first + size; }
};

// The inverse of the block itself, by one team. Rows at which it is singular become 0.
struct InvertBlock {
  DenseBlock of;
  double singular = 0.0;  // a pivot that is no larger

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    static_assert(kInverseBlock * kInverseBlock * sizeof(double) <= P::kTeamBytes);
    if (port.team() > 0) return;
    auto* const m = reinterpret_cast<double*>(port.team_memory());
    const int size = of.size, lane = port.team_lane(), lanes = P::team_lanes();
    for (int e = lane; e < size * size; e += lanes)
      m[e] = of.at(of.first + e / size, of.first + e % size);
    port.sync_team();
    for (int p = 0; p < size; ++p) {
      const double pivot = m[p * size + p];
      const double inverse = pivot > singular ? 1.0 / pivot : 0.0;
      port.sync_team();
      for (int c = lane; c < size; c += lanes) {
        if (c == p) continue;
        const double mine = m[p * size + c] * inverse;
        for (int r = 0; r < size; ++r)
          if (r != p) m[r * size + c] -= m[r * size + p] * mine;
      }
      port.sync_team();
      for (int q = lane; q < size; q += lanes) {
        if (q == p) {
          m[p * size + p] = inverse;
          continue;
        }
        m[p * size + q] *= inverse;
        m[q * size + p] *= -inverse;
      }
      port.sync_team();
    }
    for (int e = lane; e < size * size; e += lanes) of.inverse[e] = m[e];
  }
};

// The block's rows times its inverse, and its columns, aside.
struct SetBlockAside {
  DenseBlock of;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, of.size * of.rows, [&](std::int64_t item) {
      const std::int64_t r = item / of.rows, j = item % of.rows;
      double sum = 0.0;
      for (int s = 0; s < of.size; ++s) sum += of.inverse[r * of.size + s] * of.at(of.first + s, j);
      of.right[item] = sum;
      of.left[j * of.size + r] = of.at(j, of.first + r);
    });
  }
};

// All rows without the block's, which takes its inverse's place.
struct EliminateBlock {
  DenseBlock of;

  CPUFREE_KERNEL_FN double eliminated(std::int64_t i, std::int64_t j) const {
    const bool row = of.has(i), column = of.has(j);
    if (row && column) return of.inverse[(i - of.first) * of.size + j - of.first];
    if (row) return of.right[(i - of.first) * of.rows + j];
    double sum = 0.0;
    for (int s = 0; s < of.size; ++s)
      sum += of.left[i * of.size + s] *
             (column ? of.inverse[s * of.size + j - of.first] : of.right[s * of.rows + j]);
    return (column ? 0.0 : of.at(i, j)) - sum;
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, of.rows * of.rows, [&](std::int64_t item) {
      of.matrix[item] = eliminated(item / of.rows, item % of.rows);
    });
  }
};

// The inverse without `factor` v v^T, symmetric to the last bit; as a sparse matrix.
struct PlaceInverse {
  std::int64_t rows = 0;
  const double* from = nullptr;
  const double* v = nullptr;
  double factor = 0.0;
  std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;
  double* val = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows * rows, [&](std::int64_t item) {
      const std::int64_t i = item / rows, j = item % rows;
      val[item] = 0.5 * (from[item] + from[j * rows + i]) - factor * (v[i] * v[j]);
      col[item] = static_cast<std::int32_t>(j);
      if (j == 0) ptr[i] = item;
      if (item + 1 == rows * rows) ptr[rows] = item + 1;
    });
  }
};

}  // namespace cpufree::multigrid::setup
