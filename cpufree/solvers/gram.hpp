// Small dense matrices of a block of K columns: one of coefficients, by which rows of a vector are
// multiplied; Gram matrices, which are sums over all rows; and their factors.
#pragma once

#include <cmath>

#include "cpufree/device/columns.hpp"

namespace cpufree {

// A K x K matrix of coefficients, row by row.
template <class T, int K>
struct Coefficients {
  Columns<T, K> row[static_cast<unsigned>(K)];
  // v M, of a row v of a vector.
  CPUFREE_KERNEL_FN Columns<T, K> times(const Columns<T, K>& v) const {
    Columns<T, K> sum = v[0] * row[0];
    CPUFREE_UNROLL
    for (int k = 1; k < K; ++k) sum += v[k] * row[k];
    return sum;
  }
};

// Entries on and above the diagonal of a K x K matrix, row by row.
template <int K>
inline constexpr int kUpper = K * (K + 1) / 2;
template <int K>
CPUFREE_FN constexpr int upper_index(int i, int j) {
  return i <= j ? i * K - i * (i - 1) / 2 + j - i : upper_index<K>(j, i);
}

// Partial sums of V^T W, in double precision: what lies below the diagonal may be left out.
template <int K>
struct GramSums {
  Columns<double, K> row[static_cast<unsigned>(K)] = {};

  template <class T>
  CPUFREE_KERNEL_FN void add(const Columns<T, K>& v, const Columns<T, K>& w) {
    using Parts = ColumnParts<T, K>;
    CPUFREE_UNROLL
    for (int n = 0; n < Columns<T, K>::kParts; ++n) {
      const auto part = Parts::wide(w.part[n]);
      CPUFREE_UNROLL
      for (int i = 0; i < K && i < (n + 1) * Parts::width; ++i)
        row[i].part[n] += static_cast<double>(v[i]) * part;
    }
  }
  // Entries on and above the diagonal, from out[first].
  template <int N>
  CPUFREE_KERNEL_FN void list(double (&out)[N]) const {
    static_assert(N >= kUpper<K>);
    CPUFREE_UNROLL
    for (int i = 0; i < K; ++i) {
      CPUFREE_UNROLL
      for (int j = i; j < K; ++j) out[upper_index<K>(i, j)] = row[i][j];
    }
  }
};

// G = B^T B of a Gram matrix G = V^T M V of K columns, with as many rows of B as G has rank: a
// Cholesky factor with pivots of D^-1/2 G D^-1/2, D the diagonal of G. The columns of V W are
// orthonormal in the inner product of M, and V = (V W) B but for what was left out.
template <int K>
struct RankFactor {
  double b[K][K];  // rows of the rank and beyond: 0
  int order[K];    // column of the pivot of each row
  double scale[K];
  int rank;
  unsigned dropped;  // columns that depend on those of the pivots
  double smallest;   // pivot
  bool sound;        // G is finite, and has no negative diagonal entry

  // By one thread. Columns whose pivots are at most `least` depend on others.
  CPUFREE_KERNEL_FN void factor(const double* g, double least) {
    double pivot[K];
    unsigned left = 0;
    sound = true;
    for (int j = 0; j < K; ++j) {
      const double d = g[upper_index<K>(j, j)];
      sound = sound && d >= 0.0 && d - d == 0.0;
      scale[j] = d > 0.0 ? 1.0 / std::sqrt(d) : 0.0;
      pivot[j] = scale[j] > 0.0 ? 1.0 : 0.0;
      if (scale[j] > 0.0) left |= 1U << j;
      for (int i = 0; i < K; ++i) b[i][j] = 0.0;
    }
    smallest = 1.0;
    for (rank = 0; rank < K; ++rank) {
      const int best = largest(pivot, left);
      if (best < 0 || !(pivot[best] > least)) break;
      smallest = pivot[best] < smallest ? pivot[best] : smallest;
      left &= ~(1U << best);
      order[rank] = best;
      eliminate(g, pivot, left, best);
    }
    dropped = left;
    for (int i = 0; i < rank; ++i)
      for (int j = 0; j < K; ++j) b[i][j] = scale[j] > 0.0 ? b[i][j] / scale[j] : 0.0;
  }

  // Column k of W, into column[0 .. K - 1].
  CPUFREE_KERNEL_FN void inverse(int k, double (&column)[K]) const {
    for (int j = 0; j < K; ++j) column[j] = 0.0;
    if (k >= rank) return;
    column[order[k]] = 1.0 / b[k][order[k]];
    for (int i = k - 1; i >= 0; --i) {
      double sum = 0.0;
      for (int j = i + 1; j <= k; ++j) sum += b[i][order[j]] * column[order[j]];
      column[order[i]] = -sum / b[i][order[i]];
    }
  }

 private:
  CPUFREE_KERNEL_FN static int largest(const double (&pivot)[K], unsigned left) {
    int best = -1;
    for (int j = 0; j < K; ++j)
      if (((left >> j) & 1U) != 0U && (best < 0 || pivot[j] > pivot[best])) best = j;
    return best;
  }
  // Row `rank` of the factor, whose pivot is that of column `best`.
  CPUFREE_KERNEL_FN void eliminate(const double* g, double (&pivot)[K], unsigned left, int best) {
    const double root = std::sqrt(pivot[best]);
    b[rank][best] = root;
    for (int j = 0; j < K; ++j) {
      if (((left >> j) & 1U) == 0U) continue;
      double entry = g[upper_index<K>(best, j)] * scale[best] * scale[j];
      for (int i = 0; i < rank; ++i) entry -= b[i][best] * b[i][j];
      b[rank][j] = entry / root;
      pivot[j] -= b[rank][j] * b[rank][j];
    }
  }
};

// The Cholesky factor of the first `rank` rows and columns of a symmetric matrix.
template <int K>
struct LowerFactor {
  double l[K][K];
  int rank;
  bool doubtful;  // rounding errors alone may be why the matrix is not positive definite

  // By one thread. False: the matrix is not positive definite.
  CPUFREE_KERNEL_FN bool factor(const double* g, int rows) {
    rank = rows;
    for (int j = 0; j < rank; ++j) {
      for (int i = j; i < rank; ++i) {
        double entry = g[upper_index<K>(j, i)];
        for (int k = 0; k < j; ++k) entry -= l[i][k] * l[j][k];
        if (i == j && !(entry > 0.0)) {
          constexpr double kDoubt = 1e-10;
          doubtful = -entry <= kDoubt * g[upper_index<K>(j, j)];
          return false;
        }
        l[i][j] = i == j ? std::sqrt(entry) : entry / l[j][j];
      }
    }
    return true;
  }
  // column = G^-1 column, of the first `rank` rows; the others are 0.
  CPUFREE_KERNEL_FN void solve(double (&column)[K]) const {
    for (int i = 0; i < rank; ++i) {
      for (int k = 0; k < i; ++k) column[i] -= l[i][k] * column[k];
      column[i] /= l[i][i];
    }
    for (int i = rank - 1; i >= 0; --i) {
      for (int k = i + 1; k < rank; ++k) column[i] -= l[k][i] * column[k];
      column[i] /= l[i][i];
    }
    for (int i = rank; i < K; ++i) column[i] = 0.0;
  }
};

}  // namespace cpufree
