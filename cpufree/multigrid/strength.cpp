#include "cpufree/multigrid/strength.hpp"

#include <atomic>
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
  std::atomic<bool> weak = false;
  for_rows(a.rows(), [&](std::int32_t row) {
    std::uint8_t* const bits = bits_.data() + place(a, row);
    const std::int64_t length = a.end(row) - a.begin(row);
    for (std::int64_t byte = 0; 8 * byte <= length; ++byte) bits[byte] = 0;
    std::int64_t others = 0;  // that are not strong, with the diagonal
    for (std::int64_t bit = 0; bit < length; ++bit) {
      const auto k = at(a.begin(row) + bit);
      const double needed = std::max(threshold[at(row)], threshold[at(a.col[k])]);
      // No branch: which entries are strong cannot be predicted.
      const unsigned strong =
          (a.col[k] != row ? 1U : 0U) & (is_strong(std::abs(a.val[k]), needed) ? 1U : 0U);
      bits[bit / 8] = static_cast<std::uint8_t>(bits[bit / 8] | strong << (bit % 8));
      others += 1 - static_cast<std::int64_t>(strong);
    }
    if (others > 1) weak = true;
  });
  weak_ = weak;
}

StrongGraph strong_graph(const SparseMatrix& a, const std::vector<std::int32_t>& owner,
                         const Strength& strong) {
  StrongGraph graph;
  graph.row_ptr.assign(at(a.rows()) + 1, 0);
  graph.isolated.assign(at(a.rows()), 1);
  // No branch: which entries are strong cannot be predicted.
  for_rows(a.rows(), [&](std::int32_t row) {
    std::int64_t all = 0, inside = 0;
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
      const std::int64_t is = strong(a, row, k) ? 1 : 0;
      all += is;
      inside += is & (owner[at(a.col[at(k)])] == owner[at(row)] ? 1 : 0);
    }
    graph.isolated[at(row)] = all == 0 ? 1 : 0;
    graph.row_ptr[at(row) + 1] = inside;
  });
  std::partial_sum(graph.row_ptr.begin(), graph.row_ptr.end(), graph.row_ptr.begin());
  graph.col.resize(at(graph.row_ptr.back()) + 1);
  for_rows(a.rows(), [&](std::int32_t row) {
    std::int64_t to = graph.row_ptr[at(row)];
    const std::int64_t end = graph.row_ptr[at(row) + 1];
    for (std::int64_t k = a.begin(row); to < end; ++k) {
      graph.col[at(to)] = a.col[at(k)];
      to += strong(a, row, k) & (owner[at(a.col[at(k)])] == owner[at(row)]) ? 1 : 0;
    }
  });
  graph.col.pop_back();
  return graph;
}

std::vector<double> filtered_diagonal(const SparseMatrix& a, std::span<const double> constant,
                                      const Strength& strong) {
  std::vector<double> diagonal(at(a.rows()), 1.0);
  for_rows(a.rows(), [&](std::int32_t row) {
    double sum = 0.0;  // of the diagonal, too, which counts as weak
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      sum += (strong(a, row, k) ? 0.0 : a.val[at(k)]) * constant[at(a.col[at(k)])];
    diagonal[at(row)] = guarded_diagonal(sum / constant[at(row)]);
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
  PageVector<float> filtered(a.val.size());  // 0 where weak; once, for all steps
  for_rows(a.rows(), [&](std::int32_t row) {
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
      const double value = a.val[at(k)] * root[at(row)] * root[at(a.col[at(k)])];
      filtered[at(k)] = strong(a, row, k) ? static_cast<float>(value) : 0.0F;
    }
  });
  return lanczos(a.rows(), [&](std::int32_t row, const std::vector<double>& v) {
    double sum = v[at(row)];
    for (std::int64_t k = a.begin(row); k < a.end(row); ++k)
      sum += filtered[at(k)] * v[at(a.col[at(k)])];
    return sum;
  });
}

}  // namespace cpufree::multigrid
