#include "cpufree/multigrid/sparse.hpp"

#include <cmath>

#include "cpufree/multigrid/transpose.hpp"

namespace cpufree::multigrid {

SparseMatrix transpose(const SparseMatrix& a) {
  SparseMatrix t;
  t.columns = a.rows();
  t.col.resize(a.col.size());
  t.val.resize(a.val.size());
  const BlockView view = view_of(a);
  Transposition turn(view);
  turn.write([&](std::size_t to, std::int32_t row, std::int64_t k) {
    t.col[to] = row;
    t.val[to] = a.val[at(k)];
  });
  t.row_ptr = turn.first();
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
      a.val[at(k)] = column == row ? 1.0 : a.val[at(k)] * (s[at(row)] * s[at(column)]);
    }
  });
}

}  // namespace cpufree::multigrid
