// A small part of a matrix, taken around a row: what it tells of the whole is in expected.py.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/problem/csr.hpp"

namespace cpufree {

template <class T>
struct RowPart {
  std::vector<std::int64_t> row_ptr;  // rows + 1
  std::vector<std::int32_t> col;      // numbers within the part
  std::vector<T> val;
};

// The principal submatrix of `size` rows around row `start`, or of fewer where no more are
// connected. Rows are taken step by step in the graph of the matrix, those of the last step by
// their numbers, and keep their sequence. Time goes with the entries of these rows, not with the
// matrix.
template <class T>
RowPart<T> part_around(const CsrView<T>& matrix, std::int32_t start, std::int32_t size);

}  // namespace cpufree
