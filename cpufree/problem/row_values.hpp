// The values of a matrix, row by row, where its pattern is known already.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "cpufree/base/error.hpp"
#include "cpufree/base/index.hpp"
#include "cpufree/problem/csr.hpp"

namespace cpufree {

[[noreturn]] inline void refuse_column(std::int32_t row, std::int32_t column) {
  throw InvalidInput("the matrix has no entry (row " + std::to_string(row) + ", column " +
                     std::to_string(column) +
                     "), where the one before has one: lay it out as a new system");
}

// The values of one row. Columns that are asked for in the order in which they are stored are found
// at once, others by bisection.
template <class T>
class RowValues {
 public:
  RowValues() = default;
  RowValues(const CsrView<T>& a, std::int32_t row)
      : row_(row),
        first_(a.col.data() + a.row_ptr[at(row)]),
        end_(a.col.data() + a.row_ptr[at(row) + 1]),
        next_(first_),
        values_(a.val.data() + a.row_ptr[at(row)]) {}

  T at_column(std::int32_t column) {
    if (next_ == end_ || *next_ != column) {
      next_ = std::lower_bound(first_, end_, column);
      if (next_ == end_ || *next_ != column) refuse_column(row_, column);
    }
    return values_[next_++ - first_];
  }

 private:
  std::int32_t row_ = 0;
  const std::int32_t* first_ = nullptr;
  const std::int32_t* end_ = nullptr;
  const std::int32_t* next_ = nullptr;
  const T* values_ = nullptr;
};

}  // namespace cpufree
