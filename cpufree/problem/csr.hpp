// Sparse matrices in compressed rows. Plain data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/problem/row_range.hpp"

namespace cpufree {

// A whole matrix, not owned: n rows, columns sorted within each row, pattern symmetric.
template <class T>
struct CsrView {
  std::int32_t n = 0;
  std::span<const std::int64_t> row_ptr;  // n + 1
  std::span<const std::int32_t> col;      // row_ptr[n]
  std::span<const T> val;                 // row_ptr[n]

  std::int64_t nnz() const { return row_ptr.empty() ? 0 : row_ptr.back(); }
  std::int64_t row_nnz(std::int32_t i) const {
    const auto k = static_cast<std::size_t>(i);
    return row_ptr[k + 1] - row_ptr[k];
  }
};

// Some consecutive rows of a matrix that need not be anywhere as a whole, not owned. The rows that
// are here are numbered in 32 bits, those of the matrix in 64, and so the columns, as I; of a whole
// matrix, 32 bits are enough.
template <class T, class I = std::int64_t>
struct RowSlab {
  std::int64_t first = 0;                 // of the rows, among those of the matrix
  std::int64_t all_rows = 0;              // of the matrix
  std::span<const std::int64_t> row_ptr;  // rows() + 1, from 0
  std::span<const I> col;                 // increasing within each row
  std::span<const T> val;

  std::int64_t rows() const { return static_cast<std::int64_t>(row_ptr.size()) - 1; }
  std::int64_t end() const { return first + rows(); }
};

}  // namespace cpufree
