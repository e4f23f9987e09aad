// Which entries of a scaled matrix are strong, and the filtered matrix of these alone.
#pragma once

#include <functional>

#include "cpufree/multigrid/sparse.hpp"

namespace cpufree::multigrid {

// Strong couplings of the rows of one PE, without diagonals.
struct StrongGraph {
  std::vector<std::int64_t> row_ptr;
  std::vector<std::int32_t> col;
  // Rows with no strong coupling to any row, of this PE or another one.
  std::vector<char> isolated;

  std::int32_t rows() const { return static_cast<std::int32_t>(row_ptr.size()) - 1; }
};

// `a` has a unit diagonal: an entry is strong where |a_ij| >= theta.
inline bool is_strong(double value, double theta) { return value >= theta || value <= -theta; }

StrongGraph strong_graph(const SparseMatrix& a, const std::vector<std::int32_t>& owner,
                         double theta);

// Whether there are entries beside the diagonal that are not strong.
bool has_weak(const SparseMatrix& a, double theta);

// The filtered matrix F (Vanek, Mandel & Brezina 1996): strong entries as they are, and a diagonal
// that weak ones are added to, so that F `constant` = A `constant`. That diagonal is no less than
// kLeastDiagonal, 1 being that of A: coarse operators have positive couplings, and without a bound
// it may become negative (of a lognormal coefficient it did, and the largest eigenvalue of
// D^-1 F was 2344).
inline constexpr double kLeastDiagonal = 0.3;
std::vector<double> filtered_diagonal(const SparseMatrix& a, const std::vector<double>& constant,
                                      double theta);

// The largest eigenvalue of a symmetric matrix, from below, by `steps` of the Lanczos method from
// a vector of noise. product(v, w): w = the matrix times v.
double largest_eigenvalue(
    std::int32_t rows, int steps,
    const std::function<void(const std::vector<double>&, std::vector<double>&)>& product);

// Of a, and of D^-1/2 F D^-1/2 with the filtered matrix and its diagonal.
double largest_eigenvalue(const SparseMatrix& a);
double largest_eigenvalue(const SparseMatrix& a, const std::vector<double>& diagonal, double theta);

}  // namespace cpufree::multigrid
