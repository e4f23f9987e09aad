// Which entries of a scaled matrix are strong, and the filtered matrix of these alone.
#pragma once

#include <array>
#include <span>

#include "cpufree/multigrid/rules.hpp"
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

// Which entries of a matrix with a diagonal of ones are strong: those beside the diagonal of theta
// or more. Where the largest ones of both rows are small, as in rows of 27 equal entries, half of
// the larger of these is enough, but no less than theta / 8: what is smaller is left to the
// smoother. A bit for each entry; it may be kept for a matrix with other values.
class Strength {
 public:
  Strength() = default;
  Strength(const SparseMatrix& a, double theta);

  // Whether there are entries beside the diagonal that are not strong.
  bool has_weak() const { return weak_; }

  // Entry k of a, in this row.
  template <class A>
  bool operator()(const A& a, std::int32_t row, std::int64_t k) const {
    const std::int64_t bit = k - a.begin(row);
    return (bits_[place(a, row) + at(bit / 8)] >> (bit % 8) & 1) != 0;
  }

 private:
  // Where the bits of a row begin: rows have bytes of their own.
  template <class A>
  static std::size_t place(const A& a, std::int32_t row) {
    return at(byte_of_row(row, a.begin(row)));
  }
  PageVector<std::uint8_t> bits_;
  bool weak_ = false;
};

StrongGraph strong_graph(const SparseMatrix& a, const std::vector<std::int32_t>& owner,
                         const Strength& strong);

// The filtered matrix F (Vanek, Mandel & Brezina 1996): strong entries as they are, and a diagonal
// that weak ones are added to, so that F `constant` = A `constant`. That diagonal is no less than
// kLeastDiagonal, 1 being that of A: coarse operators have positive couplings, and without a bound
// it may become negative (of a lognormal coefficient it did, and the largest eigenvalue of
// D^-1 F was 2344).
std::vector<double> filtered_diagonal(const SparseMatrix& a, std::span<const double> constant,
                                      const Strength& strong);

// What the Lanczos method sums up, by `fixed`: squares of vectors that are not normalised, and
// products of these with what the matrix makes of them, normalised.
struct LanczosSums {
  std::array<std::uint64_t, kLanczosSteps + 1> square{};
  std::array<std::uint64_t, kLanczosSteps> product{};

  // Whether there is a vector for this step.
  bool goes_on(std::int32_t rows, std::size_t step) const;
  // The largest eigenvalue of a matrix with N rows, from below.
  double largest(std::int32_t rows) const;
};

// The largest eigenvalue, from below (ten steps of the Lanczos method from a vector of noise): of
// a, and of D^-1/2 F D^-1/2 with the filtered matrix F and its diagonal D.
double largest_eigenvalue(const SparseMatrix& a);
double largest_eigenvalue(const SparseMatrix& a, const std::vector<double>& diagonal,
                          const Strength& strong);

}  // namespace cpufree::multigrid
