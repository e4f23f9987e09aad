#include "cpufree/multigrid/sparse.hpp"

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

// Gustavson 1978, "Two fast algorithms for sparse matrices".
SparseMatrix multiply(const SparseMatrix& a, const SparseMatrix& b) {
  return matrix_of_rows(a.rows(), b.columns, [&](RowRange) {
    // place: where the entry of each column is, if the current row has one.
    return [&a, &b, place = std::vector<std::int64_t>(at(b.columns), -1),
            values = std::vector<double>()](std::int32_t row, std::vector<std::int32_t>& col,
                                            std::vector<double>& val) mutable {
      const auto begin = static_cast<std::int64_t>(col.size());
      values.clear();
      for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
        for (std::int64_t m = b.begin(a.col[at(k)]); m < b.end(a.col[at(k)]); ++m) {
          std::int64_t& to = place[at(b.col[at(m)])];
          const double product = a.val[at(k)] * b.val[at(m)];
          if (to < begin) {
            to = static_cast<std::int64_t>(col.size());
            col.push_back(b.col[at(m)]);
            values.push_back(product);
          } else {
            values[at(to - begin)] += product;
          }
        }
      std::sort(col.begin() + begin, col.end());
      for (auto k = at(begin); k < col.size(); ++k)
        val.push_back(values[at(place[at(col[k])] - begin)]);
    };
  });
}

}  // namespace cpufree::multigrid
