// Sparse matrices in compressed rows. Plain data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// Rows [begin, end).
struct RowRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t size() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

}  // namespace cpufree
