// Matrices of rows and matrices of blocks: a block for each pair of nodes, padded with zeros where
// nodes have fewer rows than others.
#pragma once

#include "cpufree/multigrid/block_matrix.hpp"
#include "cpufree/multigrid/near_null_space.hpp"

namespace cpufree::multigrid {

// `rows`: those of each node; a block is as high and as wide as the node of most rows.
BlockMatrix blocks_of(const SparseMatrix& a, const std::vector<std::int32_t>& node,
                      const Groups& rows);

// Back again: block rows become `rows`, block column c the columns first[c] to first[c + 1] - 1.
SparseMatrix rows_of(BlockMatrix blocks, const Groups& rows, std::span<const std::int32_t> first);

// Sizes of the blocks, in the Frobenius norm, scaled to a diagonal of ones: how strongly nodes are
// coupled.
SparseMatrix node_matrix(const BlockMatrix& a);

// What a tentative prolongator has for each node, a block.
PageVector<double> blocks_of(const Tentative& t, const Groups& rows, std::int32_t height);

// Inverse square roots of the diagonal, for each node as many as a block has rows; where an entry
// is not positive, 1.
std::vector<double> inverse_roots(const BlockMatrix& a);
// S A S, with a diagonal of ones; and P S.
void scale_both_sides(BlockMatrix& a, const std::vector<double>& s);
void scale_columns(BlockMatrix& p, const std::vector<double>& s);

}  // namespace cpufree::multigrid
