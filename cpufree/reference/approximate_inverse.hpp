// Factorised sparse approximate inverse (Kolotilina & Yeremin 1993, "Factorized sparse approximate
// inverse preconditionings I. Theory", SIAM J. Matrix Anal. Appl. 14(1)), dense and serial.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace cpufree::reference {

using Dense = std::vector<std::vector<double>>;

// The solution y of a y = e, e the last unit vector, a symmetric positive definite: elimination.
inline std::vector<double> last_column_of_inverse(Dense a) {
  const std::size_t n = a.size();
  std::vector<double> y(n, 0.0);
  y[n - 1] = 1.0;
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
    }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) y[i] -= a[i][j] * y[j];
    y[i] /= a[i][i];
  }
  return y;
}

// Row i of G: with J = pattern[i], whose last number is i, it is y / sqrt(y_last) at J, where
// a(J, J) y = e.
inline Dense approximate_inverse(const Dense& a,
                                 const std::vector<std::vector<std::size_t>>& pattern) {
  Dense g(a.size(), std::vector<double>(a.size(), 0.0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto& rows = pattern[i];
    Dense part(rows.size(), std::vector<double>(rows.size()));
    for (std::size_t p = 0; p < rows.size(); ++p)
      for (std::size_t q = 0; q < rows.size(); ++q) part[p][q] = a[rows[p]][rows[q]];
    const auto y = last_column_of_inverse(part);
    for (std::size_t p = 0; p < rows.size(); ++p) g[i][rows[p]] = y[p] / std::sqrt(y.back());
  }
  return g;
}

}  // namespace cpufree::reference
