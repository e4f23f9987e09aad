// Small matrices for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/csr.hpp"

namespace testing_matrices {

template <class T>
struct Matrix {
  std::vector<std::int64_t> row_ptr{0};
  std::vector<std::int32_t> col;
  std::vector<T> val;
  std::int32_t n() const { return static_cast<std::int32_t>(row_ptr.size()) - 1; }
  cpufree::CsrView<T> view() const { return {n(), row_ptr, col, val}; }
};

using Entries = std::map<std::pair<std::int32_t, std::int32_t>, double>;

template <class T>
Matrix<T> from_entries(std::int32_t n, const Entries& entries) {
  Matrix<T> a;
  a.row_ptr.assign(static_cast<std::size_t>(n) + 1, 0);
  for (const auto& [place, value] : entries) {
    ++a.row_ptr[static_cast<std::size_t>(place.first) + 1];
    a.col.push_back(place.second);
    a.val.push_back(static_cast<T>(value));
  }
  for (std::size_t i = 1; i < a.row_ptr.size(); ++i) a.row_ptr[i] += a.row_ptr[i - 1];
  return a;
}

// 5-point Laplacian on an nx x ny grid, plus `shift` on the diagonal.
template <class T = double>
Matrix<T> grid2d(std::int32_t nx, std::int32_t ny, double shift = 0.0) {
  Entries e;
  for (std::int32_t j = 0; j < ny; ++j)
    for (std::int32_t i = 0; i < nx; ++i) {
      const std::int32_t row = j * nx + i;
      e[{row, row}] = 4.0 + shift;
      if (i > 0) e[{row, row - 1}] = -1.0;
      if (i + 1 < nx) e[{row, row + 1}] = -1.0;
      if (j > 0) e[{row, row - nx}] = -1.0;
      if (j + 1 < ny) e[{row, row + nx}] = -1.0;
    }
  return from_entries<T>(nx * ny, e);
}

// Random symmetric diagonally dominant matrix: rows of very different lengths, some of them with
// nothing but a diagonal, one (row 0) coupled to every third row.
template <class T = double>
Matrix<T> irregular(std::int32_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(0.1, 1.0);
  Entries e;
  const auto couple = [&](std::int32_t i, std::int32_t j) {
    if (i == j) return;
    const double v = -value(random);
    e[{i, j}] = e[{j, i}] = v;
  };
  for (std::int32_t i = 0; i < n; ++i) {
    if (i % 7 == 5) continue;
    for (unsigned k = 0; k < random() % 5; ++k) {
      const auto j = static_cast<std::int32_t>(random() % static_cast<unsigned>(n));
      if (j % 7 != 5) couple(i, j);
    }
  }
  for (std::int32_t j = 3; j < n; j += 3)
    if (j % 7 != 5) couple(0, j);
  std::vector<double> sums(static_cast<std::size_t>(n), 0.0);
  for (const auto& [place, v] : e) sums[static_cast<std::size_t>(place.first)] -= v;
  for (std::int32_t i = 0; i < n; ++i) e[{i, i}] = sums[static_cast<std::size_t>(i)] + 0.5 + i % 3;
  return from_entries<T>(n, e);
}

// A grid of nodes with three unknowns each, which read the same columns.
inline Matrix<double> three_a_node(std::int32_t nx, std::int32_t ny) {
  const auto nodes = grid2d<double>(nx, ny);
  Entries e;
  for (std::int32_t i = 0; i < nodes.n(); ++i)
    for (auto k = nodes.row_ptr[cpufree::at(i)]; k < nodes.row_ptr[cpufree::at(i) + 1]; ++k)
      for (std::int32_t u = 0; u < 9; ++u)
        e[{3 * i + u / 3, 3 * nodes.col[cpufree::at(k)] + u % 3}] = 1.0;
  return from_entries<double>(3 * nodes.n(), e);
}

// Every row is coupled to the `near` before it, by values of all sizes, some of them equal.
template <class T = double>
Matrix<T> banded(std::int32_t n, std::int32_t near, double diagonal) {
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) {
    e[{i, i}] = diagonal;
    for (std::int32_t j = std::max(0, i - near); j < i; ++j)
      e[{i, j}] = e[{j, i}] = -std::abs(std::sin(i % 7 + 3.0 * (j % 5)));
  }
  return from_entries<T>(n, e);
}

// Rows that read the ones beside them, and two that all others read.
template <class T = double>
Matrix<T> with_hubs(std::int32_t n, std::int32_t one, std::int32_t other) {
  Entries e;
  for (std::int32_t i = 0; i < n; ++i) {
    e[{i, i}] = i == one || i == other ? 0.3 * n : 4.0;
    if (i > 0) e[{i, i - 1}] = e[{i - 1, i}] = -0.5 - 0.1 * (i % 3);
    for (const std::int32_t hub : {one, other})
      if (i != hub) e[{i, hub}] = e[{hub, i}] = -0.1 - 0.01 * (i % 5);
  }
  return from_entries<T>(n, e);
}

inline std::vector<std::int32_t> random_partition(std::int32_t n, int pes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> part(static_cast<std::size_t>(n));
  for (auto& p : part) p = static_cast<std::int32_t>(random() % static_cast<unsigned>(pes));
  return part;
}

template <class T = double>
std::vector<T> wave(std::int32_t n) {
  std::vector<T> b(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] =
        static_cast<T>(1.0 + 0.5 * static_cast<double>((i * 37) % 11) - static_cast<double>(i % 5));
  return b;
}

// Several right-hand sides of different difficulty.
template <class T>
std::vector<std::vector<T>> waves(std::int32_t n, int columns) {
  std::vector<std::vector<T>> all(static_cast<std::size_t>(columns), wave<T>(n));
  for (std::size_t k = 0; k < all.size(); ++k)
    for (std::size_t i = 0; i < all[k].size(); ++i)
      all[k][i] = static_cast<T>(all[k][i] * std::cos(0.3 * static_cast<double>(k * i)));
  return all;
}

// ||b - A x|| in double precision.
template <class T>
double residual_norm(const Matrix<T>& a, const std::vector<T>& x, const std::vector<T>& b) {
  using cpufree::at;
  double sum = 0.0;
  for (std::int32_t i = 0; i < a.n(); ++i) {
    double r = static_cast<double>(b[at(i)]);
    for (auto k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k)
      r -= static_cast<double>(a.val[at(k)]) * static_cast<double>(x[at(a.col[at(k)])]);
    sum += r * r;
  }
  return std::sqrt(sum);
}

// Complex Hermitian matrices in the two forms in which solvers have them (Sliced::pairs).
// The real matrix of twice the size, and that of the parts of entries, stored once.
struct ComplexForms {
  Matrix<double> real, pairs;
};

// Of the sizes of a symmetric matrix, with a phase on each pair of entries.
inline ComplexForms with_phases(const Matrix<double>& sizes) {
  using cpufree::at;
  Entries real, pairs;
  for (std::int32_t i = 0; i < sizes.n(); ++i)
    for (std::int64_t k = sizes.row_ptr[at(i)]; k < sizes.row_ptr[at(i) + 1]; ++k) {
      const std::int32_t j = sizes.col[at(k)];
      const double angle = i == j ? 0.0 : i < j ? 7.0 * i + j : -(7.0 * j + i);
      const double a = sizes.val[at(k)] * std::cos(angle), b = sizes.val[at(k)] * std::sin(angle);
      real[{2 * i, 2 * j}] = real[{2 * i + 1, 2 * j + 1}] = pairs[{2 * i, 2 * j}] = a;
      real[{2 * i + 1, 2 * j}] = pairs[{2 * i + 1, 2 * j + 1}] = b;
      real[{2 * i, 2 * j + 1}] = -b;
    }
  return {from_entries<double>(2 * sizes.n(), real), from_entries<double>(2 * sizes.n(), pairs)};
}

}  // namespace testing_matrices
