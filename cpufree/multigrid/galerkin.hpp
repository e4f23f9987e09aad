// The Galerkin product P^T A P.
#pragma once

#include <optional>

#include "cpufree/multigrid/block_matrix.hpp"

namespace cpufree::multigrid {

// P^T A P of a symmetric A, itself symmetric to the last bit; nothing where one of the two products
// takes more than `most` multiplications, as where a row is coupled to all others: the product
// could be larger than memory. `upper`: where its blocks on the diagonal and behind it are, which
// is filled in where it is empty.
std::optional<BlockMatrix> galerkin_product(const BlockView& a, const BlockView& p, double most,
                                            SparsePattern& upper);

}  // namespace cpufree::multigrid
