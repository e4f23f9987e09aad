// Rows of small matrices as ranks have them.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/csr.hpp"
#include "matrices.hpp"

namespace testing_matrices {

using cpufree::at;
using cpufree::RowSlab;

// The rows of one rank, with columns in 64 bits, all of them moved by `shift`.
template <class T>
struct Rows {
  std::int64_t first, all;
  std::vector<std::int64_t> row_ptr{0}, col;
  std::vector<T> val;
  RowSlab<T> slab() const { return {first, all, row_ptr, col, val}; }
};

template <class T>
Rows<T> rows_of(const Matrix<T>& a, std::int32_t first, std::int32_t end, std::int64_t shift = 0) {
  Rows<T> rows{first + shift, a.n() + shift, {0}, {}, {}};
  for (std::int32_t i = first; i < end; ++i) {
    for (auto k = a.row_ptr[at(i)]; k < a.row_ptr[at(i) + 1]; ++k) {
      rows.col.push_back(a.col[at(k)] + shift);
      rows.val.push_back(a.val[at(k)]);
    }
    rows.row_ptr.push_back(static_cast<std::int64_t>(rows.col.size()));
  }
  return rows;
}

using Cuts = std::vector<std::int32_t>;  // where the rows of each rank begin, then all rows

inline std::vector<std::int32_t> part_of(const Cuts& cuts) {
  std::vector<std::int32_t> part;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k)
    part.insert(part.end(), at(cuts[k + 1] - cuts[k]), static_cast<std::int32_t>(k));
  return part;
}

// The part of a vector that goes with rows [first, end).
template <class T>
std::vector<T> entries_of(const std::vector<T>& v, std::int32_t first, std::int32_t end) {
  return {v.begin() + first, v.begin() + end};
}

}  // namespace testing_matrices
