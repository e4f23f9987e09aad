// Whether halos of blocks are out of the question, told from the rows of a matrix as they come.
#pragma once

#include <cstdint>
#include <span>

#include "cpufree/problem/csr.hpp"

namespace cpufree {

// Whether contiguous pieces of equal weight, `blocks` of the rows [cuts[k], cuts[k + 1]) of each PE
// k, together read more than `most` rows of others: make_block_halos then makes none. (Its pieces
// end between the nodes of a mesh, up to six rows from these.) What reads far more is told from a
// few pieces.
template <class T>
bool pieces_read_more(const CsrView<T>& matrix, std::span<const std::int64_t> cuts, int blocks,
                      std::int64_t most);

}  // namespace cpufree
