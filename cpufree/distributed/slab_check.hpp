// What a rank checks of the rows it is given, and of their entries. Rows and columns in messages
// are those of the matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/problem/csr.hpp"

namespace cpufree {

// The first row of each rank, and the number of all. Unless the slabs are, by rank, all rows of one
// matrix, it throws: InvalidInput in the first rank whose rows do not fit, in the others what calls
// throw where a member has failed.
template <class T>
std::vector<std::int64_t> gather_bounds(const RowSlab<T>& slab, Team& team);

// Which rows have a column of another rank. Throws InvalidInput unless the columns increase in each
// row, and are of the matrix.
template <class T, class I>
std::vector<char> find_boundary(const RowSlab<T, I>& slab);

// Looks at all entries of this rank, and at pairs of them. Returns the largest asymmetry. Throws
// BadEntry.
template <class T, class I>
double check_own_entries(const RowSlab<T, I>& slab, double tolerance);

// a_ii of a row of the slab, 0 where none is stored.
template <class T, class I>
double diagonal_of(const RowSlab<T, I>& slab, std::int32_t row);

// Two entries that should be the same.
struct Pair {
  std::int64_t row = 0, column = 0;
  double here = 0.0, there = 0.0;  // a_ij, a_ji
  double diagonal_here = 0.0, diagonal_there = 0.0;
};
// |a_ij - a_ji| / sqrt(a_ii a_jj). Throws BadEntry where that is above `tolerance`.
double asymmetry_of(const Pair& pair, double tolerance);

}  // namespace cpufree
