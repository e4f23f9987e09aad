#include "cpufree/multigrid/transfer.hpp"

#include <cmath>

namespace cpufree::multigrid {

SparseMatrix smoothed_prolongator(const SparseMatrix& a, const Tentative& t, double lambda,
                                  const Strength* strong, const std::vector<double>& diagonal) {
  const double omega = 4.0 / (3.0 * lambda);
  const auto modes = at(t.coarse.modes);
  return matrix_of_rows(a.rows(), t.columns(), a.nonzeros() / 2, [&](RowRange) {
    return [&, omega, sums = RowSums(t.columns())](std::int32_t row, std::vector<std::int32_t>& col,
                                                   std::vector<double>& val) mutable {
      for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
        const std::int32_t j = a.col[at(k)], to = t.of_row[at(j)];
        if (to < 0) continue;
        double factor = 1.0 - omega;  // D_F^-1 F has a diagonal of ones
        if (j != row) {
          if (strong != nullptr && !(*strong)(a, row, k)) continue;
          factor = -omega * a.val[at(k)] / (strong == nullptr ? 1.0 : diagonal[at(row)]);
        }
        const double* const of_j = t.values.data() + at(j) * modes;
        for (std::int32_t c = t.first[at(to)]; c < t.first[at(to) + 1]; ++c)
          sums.add(c, factor * of_j[c - t.first[at(to)]]);
      }
      sums.move_to(col, val);
    };
  });
}

std::optional<SparseMatrix> galerkin_product(const SparseMatrix& a, const SparseMatrix& p,
                                             double most) {
  if (multiplications(a, p) > most) return std::nullopt;
  const SparseMatrix ap = multiply(a, p, false), r = transpose(p);
  if (multiplications(r, ap) > most) return std::nullopt;
  return multiply(r, ap);
}

void scale_columns(SparseMatrix& p, const std::vector<double>& s) {
  for_rows(p.rows(), [&](std::int32_t row) {
    for (std::int64_t k = p.begin(row); k < p.end(row); ++k) p.val[at(k)] *= s[at(p.col[at(k)])];
  });
}

std::vector<double> dense_inverse(const SparseMatrix& a) {
  constexpr double kSingular = 1e-12;  // a pivot below, of a matrix with a diagonal of ones
  const std::size_t n = at(a.rows());
  std::vector<double> l(n * n, 0.0);  // A = L L^T, row by row
  for (std::int32_t row = 0; row < a.rows(); ++row)
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      l[at(row) * n + at(a.col[at(k)])] = a.val[at(k)];
  std::vector<char> regular(n, 1);
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = l.data() + i * n;
    for (std::size_t j = 0; j <= i; ++j) {
      const double* const other = l.data() + j * n;
      double sum = row[j];
      for (std::size_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      if (j < i)
        row[j] = regular[j] != 0 ? sum / other[j] : 0.0;
      else if (sum > kSingular)
        row[i] = std::sqrt(sum);
      else
        regular[i] = 0, row[i] = 1.0;
    }
  }
  std::vector<double> inverse(n * n, 0.0);
  in_parallel(static_cast<int>(n), [&](int c) {  // column c, from e_c
    if (regular[at(c)] == 0) return;
    double* const x = inverse.data() + at(c) * n;
    x[at(c)] = 1.0;
    for (std::size_t i = at(c); i < n; ++i) {
      double sum = x[i];
      for (std::size_t k = at(c); k < i; ++k) sum -= l[i * n + k] * x[k];
      x[i] = regular[i] != 0 ? sum / l[i * n + i] : 0.0;
    }
    for (std::size_t i = n; i-- > 0;) {
      x[i] = regular[i] != 0 ? x[i] / l[i * n + i] : 0.0;
      for (std::size_t k = 0; k < i; ++k) x[k] -= l[i * n + k] * x[i];
    }
  });
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j)
      inverse[i * n + j] = inverse[j * n + i] = 0.5 * (inverse[i * n + j] + inverse[j * n + i]);
  return inverse;
}

}  // namespace cpufree::multigrid
