// From one level to the next: the smoothed prolongator; and the inverse of the last one.
#pragma once

#include <span>

#include "cpufree/multigrid/aggregation.hpp"
#include "cpufree/multigrid/block_matrix.hpp"
#include "cpufree/multigrid/near_null_space.hpp"

namespace cpufree::multigrid {

// (I - 4/(3 lambda) D_F^-1 F) T, of a matrix of blocks and the aggregates of its nodes; `t`: T, as
// high as the blocks are and `width` wide for each node. F is the filtered matrix of the `strong`
// entries, D_F its `diagonal`, lambda the largest eigenvalue of D_F^-1 F. Without `strong`, as for
// blocks of several rows, F is A. `known`: the pattern of the result, null where it is to be found.
BlockMatrix smoothed_prolongator(const BlockView& a, const Aggregates& aggregates,
                                 std::span<const double> t, std::int32_t width, double lambda,
                                 const Strength* strong, const std::vector<double>& diagonal,
                                 const SparsePattern* known = nullptr);

// The inverse of a symmetric positive definite matrix, row by row, itself symmetric to the last
// bit. Where A maps vectors of the near-null space to 0, the pseudo-inverse. Other rows at which it
// is singular become 0.
std::vector<double> dense_inverse(const SparseMatrix& a, const NearNullSpace& near = {});

}  // namespace cpufree::multigrid
