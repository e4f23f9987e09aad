// From one level to the next: the smoothed prolongator, and the Galerkin product.
#pragma once

#include <optional>

#include "cpufree/multigrid/near_null_space.hpp"

namespace cpufree::multigrid {

// (I - 4/(3 lambda) D_F^-1 F) T. F is the filtered matrix of the `strong` entries, D_F its
// `diagonal`, lambda the largest eigenvalue of D_F^-1 F. Without `strong` F is A.
SparseMatrix smoothed_prolongator(const SparseMatrix& a, const Tentative& t, double lambda,
                                  const Strength* strong, const std::vector<double>& diagonal);

// P^T A P; nothing where that takes more than `most` multiplications, as where a row is coupled to
// all others: the product could be larger than memory.
std::optional<SparseMatrix> galerkin_product(const SparseMatrix& a, const SparseMatrix& p,
                                             double most);

// P S.
void scale_columns(SparseMatrix& p, const std::vector<double>& s);

// The inverse of a symmetric positive definite matrix, row by row, itself symmetric to the last
// bit. Rows at which it is singular become 0.
std::vector<double> dense_inverse(const SparseMatrix& a);

}  // namespace cpufree::multigrid
