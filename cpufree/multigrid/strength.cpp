#include "cpufree/multigrid/strength.hpp"

#include <cmath>
#include <numeric>

namespace cpufree::multigrid {

namespace {

// The largest eigenvalue of a symmetric tridiagonal matrix, by bisection on Sturm sequences.
double largest_of_tridiagonal(const std::vector<double>& diagonal, const std::vector<double>& off) {
  double high = 0.0;  // by rows
  for (std::size_t k = 0; k < diagonal.size(); ++k)
    high = std::max(
        high, diagonal[k] + (k > 0 ? off[k - 1] : 0.0) + (k + 1 < diagonal.size() ? off[k] : 0.0));
  double low = 0.0;
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (low + high);
    bool above = false;  // an eigenvalue is
    double d = 1.0;
    for (std::size_t k = 0; k < diagonal.size() && !above; ++k) {
      d = diagonal[k] - middle - (k > 0 ? off[k - 1] * off[k - 1] / d : 0.0);
      if (d == 0.0) d = -1e-300;
      above = d > 0.0;
    }
    (above ? low : high) = middle;
  }
  return high;
}

// Sums of f(row), in units of `fixed`.
template <class F>
std::uint64_t fixed_sum_over_rows(std::int32_t rows, F&& f) {
  std::vector<std::uint64_t> sums(at(pieces_of(rows)), 0);
  for_pieces(rows, [&](int piece, RowRange range) {
    std::uint64_t sum = 0;
    for (std::int32_t row = range.begin; row < range.end; ++row) sum += fixed(f(row));
    sums[at(piece)] = sum;
  });
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

// The largest eigenvalue of a symmetric matrix, from below, by the Lanczos method from a vector of
// noise. product(row, v): that row of the matrix times v.
template <class F>
double lanczos(std::int32_t rows, F&& product) {
  std::vector<double> v(at(rows)), before(at(rows), 0.0), w(at(rows));
  LanczosSums sums;
  sums.square[0] = fixed_sum_over_rows(rows, [&](std::int32_t i) {
    v[at(i)] = lanczos_start(i, rows);
    return v[at(i)] * v[at(i)];
  });
  for (std::size_t step = 0; step < at(kLanczosSteps) && sums.goes_on(rows, step); ++step) {
    const double norm = std::sqrt(from_fixed(sums.square[step]));
    const double inverse = 1.0 / norm, beta = step > 0 ? norm : 0.0;  // v is not normalised
    sums.product[step] = fixed_sum_over_rows(rows, [&](std::int32_t i) {
      w[at(i)] = inverse * product(i, v);
      return inverse * v[at(i)] * w[at(i)];
    });
    const double alpha = from_fixed(sums.product[step]);
    sums.square[step + 1] = fixed_sum_over_rows(rows, [&](std::int32_t i) {
      const double mine = inverse * v[at(i)];
      v[at(i)] = w[at(i)] - alpha * mine - beta * before[at(i)];
      before[at(i)] = mine;
      return v[at(i)] * v[at(i)];
    });
  }
  return sums.largest(rows);
}

}  // namespace

// What is smaller is not known well enough in units of 2^-40.
bool LanczosSums::goes_on(std::int32_t rows, std::size_t step) const {
  return from_fixed(square[step]) > rows * 0x1p-34;
}

double LanczosSums::largest(std::int32_t rows) const {
  std::vector<double> diagonal, off;
  for (std::size_t step = 0; step < at(kLanczosSteps) && goes_on(rows, step); ++step) {
    if (step > 0) off.push_back(std::sqrt(from_fixed(square[step])));
    diagonal.push_back(from_fixed(product[step]));
  }
  return diagonal.empty() ? 1.0 : largest_of_tridiagonal(diagonal, off);
}

Strength::Strength(const SparseMatrix& a, double theta) {
  std::vector<double> threshold(at(a.rows()));
  for_rows(a.rows(), [&](std::int32_t row) {
    double most = 0.0;
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      if (a.col[at(k)] != row) most = std::max(most, std::abs(a.val[at(k)]));
    threshold[at(row)] = threshold_of(most, theta);
  });
  bits_.resize(place(a, a.rows() - 1) + at((a.end(a.rows() - 1) - a.begin(a.rows() - 1)) / 8 + 1));
  for_rows(a.rows(), [&](std::int32_t row) {
    std::uint8_t* const bits = bits_.data() + place(a, row);
    const std::int64_t length = a.end(row) - a.begin(row);
    for (std::int64_t byte = 0; 8 * byte <= length; ++byte) bits[byte] = 0;
    for (std::int64_t bit = 0; bit < length; ++bit) {
      const auto k = at(a.begin(row) + bit);
      const bool strong = a.col[k] != row && is_strong(std::abs(a.val[k]), theta,
                                                       threshold[at(row)], threshold[at(a.col[k])]);
      if (strong) bits[bit / 8] = static_cast<std::uint8_t>(bits[bit / 8] | 1U << (bit % 8));
    }
  });
}

StrongGraph strong_graph(const SparseMatrix& a, const std::vector<std::int32_t>& owner,
                         const Strength& strong) {
  StrongGraph graph;
  graph.row_ptr.assign(at(a.rows()) + 1, 0);
  graph.isolated.assign(at(a.rows()), 1);
  const auto each = [&](std::int32_t row, auto&& f) {
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      if (strong(a, row, k)) f(a.col[at(k)]);
  };
  for_rows(a.rows(), [&](std::int32_t row) {
    each(row, [&](std::int32_t column) {
      graph.isolated[at(row)] = 0;
      if (owner[at(column)] == owner[at(row)]) ++graph.row_ptr[at(row) + 1];
    });
  });
  std::partial_sum(graph.row_ptr.begin(), graph.row_ptr.end(), graph.row_ptr.begin());
  graph.col.resize(at(graph.row_ptr.back()));
  for_rows(a.rows(), [&](std::int32_t row) {
    std::int64_t to = graph.row_ptr[at(row)];
    each(row, [&](std::int32_t column) {
      if (owner[at(column)] == owner[at(row)]) graph.col[at(to++)] = column;
    });
  });
  return graph;
}

bool has_weak(const SparseMatrix& a, const Strength& strong) {
  return sum_over_rows(a.rows(), [&](std::int32_t row) {
           std::int64_t weak = 0;
           for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
             weak += a.col[at(k)] != row && !strong(a, row, k) ? 1 : 0;
           return static_cast<double>(weak);
         }) > 0.0;
}

std::vector<double> filtered_diagonal(const SparseMatrix& a, std::span<const double> constant,
                                      const Strength& strong) {
  std::vector<double> diagonal(at(a.rows()), 1.0);
  for_rows(a.rows(), [&](std::int32_t row) {
    double weak = 0.0;
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      if (a.col[at(k)] != row && !strong(a, row, k))
        weak += a.val[at(k)] * (constant[at(a.col[at(k)])] / constant[at(row)]);
    diagonal[at(row)] = guarded_diagonal(1.0 + weak);
  });
  return diagonal;
}

double largest_eigenvalue(const SparseMatrix& a) {
  return lanczos(a.rows(), [&](std::int32_t row, const std::vector<double>& v) {
    double sum = 0.0;
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      sum += a.val[at(k)] * v[at(a.col[at(k)])];
    return sum;
  });
}

double largest_eigenvalue(const SparseMatrix& a, const std::vector<double>& diagonal,
                          const Strength& strong) {
  std::vector<double> root(diagonal.size());  // of 1 / D
  for_rows(a.rows(), [&](std::int32_t i) { root[at(i)] = 1.0 / std::sqrt(diagonal[at(i)]); });
  return lanczos(a.rows(), [&](std::int32_t row, const std::vector<double>& v) {
    double sum = 0.0;
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
      const std::int32_t column = a.col[at(k)];
      if (strong(a, row, k)) sum += a.val[at(k)] * v[at(column)] * root[at(column)];
    }
    return v[at(row)] + sum * root[at(row)];
  });
}

}  // namespace cpufree::multigrid
