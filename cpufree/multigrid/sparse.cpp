#include "cpufree/multigrid/sparse.hpp"

#include <cmath>
#include <numeric>

namespace cpufree::multigrid {

SparseMatrix transpose(const SparseMatrix& a) {
  SparseMatrix t;
  t.columns = a.rows();
  t.row_ptr.resize(at(a.columns) + 1);
  std::ranges::fill(t.row_ptr, 0);
  for (const std::int32_t column : a.col) ++t.row_ptr[at(column) + 1];
  std::partial_sum(t.row_ptr.begin(), t.row_ptr.end(), t.row_ptr.begin());
  t.col.resize(a.col.size());
  t.val.resize(a.val.size());
  std::vector<std::int64_t> next(t.row_ptr.begin(), t.row_ptr.end() - 1);
  for (std::int32_t row = 0; row < a.rows(); ++row)
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
      const std::int64_t to = next[at(a.col[at(k)])]++;
      t.col[at(to)] = row;
      t.val[at(to)] = a.val[at(k)];
    }
  return t;
}

std::vector<double> inverse_roots(const SparseMatrix& a) {
  std::vector<double> s(at(a.rows()), 1.0);
  for_rows(a.rows(), [&](std::int32_t row) {
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      if (a.col[at(k)] == row && a.val[at(k)] > 0.0) s[at(row)] = 1.0 / std::sqrt(a.val[at(k)]);
  });
  return s;
}

void scale_both_sides(SparseMatrix& a, const std::vector<double>& s) {
  for_rows(a.rows(), [&](std::int32_t row) {
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
      const std::int32_t column = a.col[at(k)];
      a.val[at(k)] = column == row ? 1.0 : a.val[at(k)] * s[at(row)] * s[at(column)];
    }
  });
}

double multiplications(const SparseMatrix& a, const SparseMatrix& b) {
  return sum_over_rows(a.rows(), [&](std::int32_t row) {
    std::int64_t count = 0;
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      count += b.end(a.col[at(k)]) - b.begin(a.col[at(k)]);
    return static_cast<double>(count);
  });
}

SparseMatrix multiply(const SparseMatrix& a, const SparseMatrix& b, bool sorted) {
  return matrix_of_rows(a.rows(), b.columns, a.nonzeros(), [&](RowRange) {
    return [&a, &b, sorted, sums = RowSums(b.columns)](
               std::int32_t row, std::vector<std::int32_t>& col, std::vector<double>& val) mutable {
      for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
        const double factor = a.val[at(k)];
        const std::int32_t of = a.col[at(k)];
        for (std::int64_t m = b.begin(of); m < b.end(of); ++m)
          sums.add(b.col[at(m)], factor * b.val[at(m)]);
      }
      sums.move_to(col, val, sorted);
    };
  });
}

}  // namespace cpufree::multigrid
