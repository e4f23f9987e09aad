#include "cpufree/multigrid/transfer.hpp"

#include <cmath>
#include <numeric>

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

// Works out rows of the prolongator. Where blocks have one row, D_F^-1 F has a diagonal of ones.
template <class D, class M>
class RowSmoother {
 public:
  RowSmoother(const Smoothing& s, std::int32_t aggregates, D d, M m)
      : s_(s), d_(d), m_(m), sums_(aggregates, times(d, m)) {}

  void append(std::int32_t row, std::vector<std::int32_t>& col, std::vector<double>& val) {
    select(row);
    sums_.add(to_, 0, std::ssize(to_), adding_to(row));
    sums_.move_to(col, val);
  }
  void write(std::int32_t row, std::span<const std::int32_t> columns, double* to) {
    select(row);
    sums_.expect(columns);
    sums_.add_expected(to_, 0, std::ssize(to_), adding_to(row));
    sums_.move_to(to);
  }

 private:
  // What adds the product of entry from_[q] of the row.
  auto adding_to(std::int32_t row) {
    const double scale = s_.strong == nullptr ? s_.omega : s_.omega / s_.diagonal[at(row)];
    return [this, row, scale, &a = s_.a](double* sum, std::int64_t q) {
      const std::int64_t k = from_[at(q)];
      const double* const block = a.val + k * d_ * d_;
      const double* const t = s_.t + std::int64_t{a.col[at(k)]} * d_ * m_;
      for (int i = 0; i < d_; ++i)
        for (int e = 0; e < d_; ++e) {
          const bool diagonal = a.col[at(k)] == row && i == e;
          const double factor = diagonal ? 1.0 - s_.omega : -scale * block[i * d_ + e];
          for (int c = 0; c < m_; ++c) sum[i * m_ + c] += factor * t[e * m_ + c];
        }
    };
  }
  // Entries that count: those of F whose columns are of aggregates. No branch: which ones are
  // strong cannot be predicted.
  void select(std::int32_t row) {
    const BlockView& a = s_.a;
    const std::size_t length = at(a.end(row) - a.begin(row));
    to_.resize(length), from_.resize(length);
    std::size_t count = 0;
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
      const std::int32_t j = a.col[at(k)];
      to_[count] = s_.aggregate[at(j)];
      from_[count] = k;
      const bool counts = s_.strong == nullptr || (j == row) | (*s_.strong)(a, row, k);
      count += counts & (to_[count] >= 0) ? 1 : 0;
    }
    to_.resize(count), from_.resize(count);
  }

  const Smoothing& s_;
  [[no_unique_address]] D d_;
  [[no_unique_address]] M m_;
  RowSums<decltype(times(D(), M()))> sums_;
  std::vector<std::int32_t> to_;    // aggregates
  std::vector<std::int64_t> from_;  // entries of A
};

}  // namespace

BlockMatrix smoothed_prolongator(const BlockView& a, const Aggregates& aggregates,
                                 std::span<const double> t, std::int32_t width, double lambda,
                                 const Strength* strong, const std::vector<double>& diagonal,
                                 const SparsePattern* known) {
  const Smoothing s{a, aggregates.of_row, t.data(), 4.0 / (3.0 * lambda), strong, diagonal};
  const std::int32_t count = aggregates.count;
  const int threads = threads_for(count, a.row_ptr.back());
  BlockMatrix p{a.height, width, {}};
  p.entries = with_sizes(a.height, width, [&](auto d, auto m) {
    using Smoother = RowSmoother<decltype(d), decltype(m)>;
    const auto make = [&] { return Smoother(s, count, d, m); };
    if (known != nullptr)
      return matrix_of_pattern(
          *known, count, threads, make,
          [](Smoother& rows, std::int32_t row, auto columns, double* to) {
            rows.write(row, columns, to);
          },
          times(d, m));
    return matrix_of_rows(
        a.rows(), count, threads, make,
        [](Smoother& rows, std::int32_t row, auto& col, auto& val) { rows.append(row, col, val); },
        times(d, m));
  });
  return p;
}

namespace {

// Eight sums side by side, none of which waits for another one.
double dot(const double* a, const double* b, std::size_t n) {
  constexpr std::size_t kSums = 8;
  double sums[kSums] = {};
  std::size_t k = 0;
  for (; k + kSums <= n; k += kSums)
    for (std::size_t s = 0; s < kSums; ++s) sums[s] += a[k + s] * b[k + s];
  for (; k < n; ++k) sums[k % kSums] += a[k] * b[k];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// An orthonormal basis, one vector after the other, of the vectors that A maps to 0.
std::vector<double> null_vectors(const SparseMatrix& a, const NearNullSpace& near) {
  const std::size_t n = at(a.rows());
  std::vector<double> basis;
  for (std::size_t mode = 0; near.vectors.size() == n * at(near.modes) && mode < at(near.modes);
       ++mode) {
    std::vector<double> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = near.vectors[i * at(near.modes) + mode];
    const auto norm = [&] {
      return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    };
    const double size = norm();
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t q = 0; q < basis.size(); q += n) {
        const double part = std::inner_product(v.begin(), v.end(), basis.data() + q, 0.0);
        for (std::size_t i = 0; i < n; ++i) v[i] -= part * basis[q + i];
      }
    const double left = norm();
    double most = 0.0;
    for (std::int32_t row = 0; row < a.rows(); ++row) {
      double sum = 0.0;
      for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
        sum += a.val[at(k)] * v[at(a.col[at(k)])];
      most = std::max(most, std::abs(sum));
    }
    if (!(left > 1e-6 * size) || !(most <= kNull * left)) continue;
    for (const double value : v) basis.push_back(value / left);
  }
  return basis;
}

// Adds `factor` times the projection on a space that has this orthonormal basis.
void add_projection(std::vector<double>& matrix, const std::vector<double>& basis, std::size_t n,
                    double factor) {
  for (std::size_t q = 0; q < basis.size(); q += n)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) matrix[i * n + j] += factor * basis[q + i] * basis[q + j];
}

}  // namespace

// With Q an orthonormal basis of the null space, the pseudo-inverse is (A + Q Q^T)^-1 - Q Q^T.
std::vector<double> dense_inverse(const SparseMatrix& a, const NearNullSpace& near) {
  const std::size_t n = at(a.rows());
  std::vector<double> l(n * n, 0.0);  // A = L L^T, row by row
  for (std::int32_t row = 0; row < a.rows(); ++row)
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      l[at(row) * n + at(a.col[at(k)])] = a.val[at(k)];
  const auto null = null_vectors(a, near);
  add_projection(l, null, n, 1.0);
  std::vector<char> regular(n, 1);
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = l.data() + i * n;
    for (std::size_t j = 0; j <= i; ++j) {
      const double* const other = l.data() + j * n;
      const double sum = row[j] - dot(row, other, j);
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
      const double sum = x[i] - dot(l.data() + i * n + at(c), x + at(c), i - at(c));
      x[i] = regular[i] != 0 ? sum / l[i * n + i] : 0.0;
    }
    for (std::size_t i = n; i-- > 0;) {
      x[i] = regular[i] != 0 ? x[i] / l[i * n + i] : 0.0;
      for (std::size_t k = 0; k < i; ++k) x[k] -= l[i * n + k] * x[i];
    }
  });
  add_projection(inverse, null, n, -1.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j)
      inverse[i * n + j] = inverse[j * n + i] = 0.5 * (inverse[i * n + j] + inverse[j * n + i]);
  return inverse;
}

}  // namespace cpufree::multigrid
