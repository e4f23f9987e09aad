#include "cpufree/multigrid/transfer.hpp"

#include <cmath>

namespace cpufree::multigrid {

namespace {

struct Smoothing {
  const BlockView& a;
  const std::vector<std::int32_t>& aggregate;
  const double* t;
  double omega;
  const Strength* strong;
  const std::vector<double>& diagonal;
};

// A row of the prolongator. Where blocks have one row, D_F^-1 F has a diagonal of ones.
template <class D, class M, class Sums>
void sum_row(const Smoothing& s, std::int32_t row, D d, M m, Sums& sums) {
  const BlockView& a = s.a;
  const bool filtered = s.strong != nullptr;
  for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
    const std::int32_t j = a.col[at(k)];
    if (s.aggregate[at(j)] < 0 || (filtered && j != row && !(*s.strong)(a, row, k))) continue;
    const double* const t = s.t + std::int64_t{j} * d * m;
    sums.add(s.aggregate, j, j + 1, [&](double* sum, std::int64_t) {
      const double* const block = a.val + k * d * d;
      const double scale = filtered ? s.omega / s.diagonal[at(row)] : s.omega;
      for (int i = 0; i < d; ++i)
        for (int e = 0; e < d; ++e) {
          const bool diagonal = j == row && i == e;
          const double factor = diagonal ? 1.0 - s.omega : -scale * block[i * d + e];
          for (int c = 0; c < m; ++c) sum[i * m + c] += factor * t[e * m + c];
        }
    });
  }
}

}  // namespace

BlockMatrix smoothed_prolongator(const BlockView& a, const Aggregates& aggregates,
                                 std::span<const double> t, std::int32_t width, double lambda,
                                 const Strength* strong, const std::vector<double>& diagonal) {
  const Smoothing s{a, aggregates.of_row, t.data(), 4.0 / (3.0 * lambda), strong, diagonal};
  BlockMatrix p{a.height, width, {}};
  p.entries = with_sizes(a.height, width, [&](auto d, auto m) {
    using Sums = RowSums<decltype(times(d, m))>;
    return matrix_of_rows(
        a.rows(), aggregates.count, threads_for(aggregates.count, a.row_ptr.back()),
        [&] { return Sums(aggregates.count, times(d, m)); },
        [&](Sums& sums, std::int32_t row, auto& col, auto& val) {
          sum_row(s, row, d, m, sums);
          sums.move_to(col, val);
        },
        times(d, m));
  });
  return p;
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
