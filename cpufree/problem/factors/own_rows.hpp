// What a PE has of the matrix without looking at others: its own rows and columns, from which it
// makes the factors of its preconditioner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// A PE's diagonal block of A, scaled: S A S with S_ii = 1 / sqrt(|a_ii|), so that single precision
// holds its factors whatever the range of A. Rows are numbered by their original numbers, so that
// nothing that is made of them depends on how rows lie in memory.
struct OwnRows {
  std::int64_t first = 0;             // the original number of row 0, where a slab is renumbered
  std::vector<std::int32_t> local;    // the PE's number of each row
  std::vector<std::int32_t> name;     // the original one, increasing
  std::vector<double> scale;          // S, as the type of the solve holds it
  std::vector<std::int64_t> row_ptr;  // rows() + 1
  std::vector<std::int32_t> col;      // increasing within each row
  std::vector<double> val;

  std::int32_t rows() const { return static_cast<std::int32_t>(local.size()); }
  std::span<const std::int32_t> columns(std::int32_t row) const {
    return {col.data() + row_ptr[static_cast<std::size_t>(row)], count(row)};
  }
  std::span<const double> values(std::int32_t row) const {
    return {val.data() + row_ptr[static_cast<std::size_t>(row)], count(row)};
  }

 private:
  std::size_t count(std::int32_t row) const {
    const auto i = static_cast<std::size_t>(row);
    return static_cast<std::size_t>(row_ptr[i + 1] - row_ptr[i]);
  }
};

// `first`: of a slab, the number in the matrix of its first row.
template <class T>
OwnRows own_rows_of(const LocalSystem<T>& local, std::int64_t first = 0);

// The same from the whole matrix, for the rows whose original numbers are given by the PE's.
template <class T>
OwnRows own_rows_of(const CsrView<T>& matrix, const std::vector<std::int32_t>& global_row);

}  // namespace cpufree
