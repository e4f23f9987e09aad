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

// What a method wants of entries besides that they are finite, in a symmetric pattern: that they
// are symmetric with a positive diagonal; that they are symmetric; nothing.
enum class Wanted : std::int32_t { positive_diagonal, symmetric, finite };

// What is asked of entries. Pairs may differ by `tolerance` times sqrt(s_i s_j), s_i the size of a
// row (size_of_row).
struct EntryRule {
  double tolerance = 0.0;
  Wanted wanted = Wanted::positive_diagonal;
};

// Looks at all entries of this rank, and at pairs of them. Returns the largest asymmetry. Throws
// BadEntry.
template <class T, class I>
double check_own_entries(const RowSlab<T, I>& slab, const EntryRule& rule);

// |a_ii| of a row of the slab, 0 where none is stored; where the diagonal may be of any size, the
// largest |a_ij|.
template <class T, class I>
double size_of_row(const RowSlab<T, I>& slab, std::int32_t row, Wanted wanted);

// Two entries that should be the same.
struct Pair {
  std::int64_t row = 0, column = 0;
  double here = 0.0, there = 0.0;            // a_ij, a_ji
  double size_here = 0.0, size_there = 0.0;  // of their rows
};
// |a_ij - a_ji| / sqrt(s_i s_j). Throws BadEntry where that is above the tolerance.
double asymmetry_of(const Pair& pair, const EntryRule& rule);

}  // namespace cpufree
