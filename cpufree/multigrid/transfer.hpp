// From one level to the next: the smoothed prolongator, and the Galerkin product.
#pragma once

#include <optional>

#include "cpufree/multigrid/aggregation.hpp"

namespace cpufree::multigrid {

// (I - 4/(3 lambda) D_F^-1 F) T. T(i, c) = constant(i) where row i is of aggregate c; F is the
// filtered matrix, D_F its `diagonal`, lambda the largest eigenvalue of D_F^-1 F.
SparseMatrix smoothed_prolongator(const SparseMatrix& a, const Aggregates& aggregates,
                                  const std::vector<double>& constant,
                                  const std::vector<double>& diagonal, const Strength& strong,
                                  double lambda);

// P^T A P; nothing where that takes more than `most` multiplications, as where a row is coupled to
// all others: the product could be larger than memory.
std::optional<SparseMatrix> galerkin_product(const SparseMatrix& a, const SparseMatrix& p,
                                             double most);

// Inverse square roots of a diagonal; where an entry is not positive, 1.
std::vector<double> inverse_roots(const SparseMatrix& a);

// S A S, with a diagonal of ones.
void scale_both_sides(SparseMatrix& a, const std::vector<double>& s);
// P S.
void scale_columns(SparseMatrix& p, const std::vector<double>& s);

// The inverse of a symmetric positive definite matrix, row by row, itself symmetric to the last
// bit. Rows at which it is singular become 0.
std::vector<double> dense_inverse(const SparseMatrix& a);

}  // namespace cpufree::multigrid
