// What there is to see in the arrays of a matrix, before it is used: on all cores, and without a
// copy of it.
#pragma once

#include <cstdint>
#include <span>

#include "cpufree/base/pages.hpp"
#include "cpufree/problem/csr.hpp"

namespace cpufree {

// Whether arrays are rows of a square matrix: `row_ptr` rises from 0 to the number of columns, and
// the columns of each row increase strictly, from 0 to n - 1. I: int32 or int64.
template <class I>
bool are_rows(std::span<const std::int64_t> row_ptr, std::span<const I> col);

// The same numbers in 64 bits.
PageVector<std::int64_t> widened(std::span<const std::int32_t> numbers);

struct EntryReport {
  bool mirrored = true;  // where there is (i, j), there is (j, i)
  // The rest is of those that have a mirror image.
  bool symmetric = true;  // values of mirror images are equal
  // Largest |a_ij - a_ji| / sqrt(|a_ii a_jj|): infinite where an entry of a diagonal is missing.
  double asymmetry = 0.0;
  bool finite = true;
  bool positive_diagonal = true;  // every row has an entry there, above 0
};

// Largest asymmetry that passes as rounding. Its scale is that of the Jacobi-scaled matrix, whose
// entries are at most 1 in size if A is positive definite.
template <class T>
inline constexpr double kSymmetryTolerance = sizeof(T) == sizeof(float) ? 1e-5 : 1e-12;

// Looks at all entries of a matrix whose arrays are rows. Each entry above the diagonal is looked
// up below it, by bisection; if all are found there, and as many are below as above, the pattern is
// symmetric, for no two have the same mirror image.
template <class T>
EntryReport inspect(const CsrView<T>& a);

// The largest of some values, 0 where none is above it. NaN is passed over.
template <class T>
T largest_entry(std::span<const T> values);

// The power of two by which a matrix of these values is divided before it is solved, 0 where the
// largest is near 1. It is exact, but for values that become too small to have all their digits,
// and keeps squares of A p in the range of double, and A p in that of T.
template <class T>
int range_exponent(std::span<const T> values);

// Whether a matrix maps translations to 0: in each row, entries of each of the unknowns of a
// node, which columns name in turn, sum to 0, but for `tolerance` times the sum of their amounts.
// Some rows throughout the matrix are looked at first, which settles it, mostly.
template <class T>
bool maps_to_zero(const CsrView<T>& a, int unknowns, double tolerance);

// The Euclidean norm of b - A x, sums in double precision; its bits do not depend on the cores. No
// solver has a part in it: it is the check of what a solver has found. Columns are places in x.
template <class T>
double residual_norm(const CsrView<T>& a, std::span<const double> b, std::span<const double> x);

// Mean of |place_i - place_j| over the entries (i, j) of rows of the same part. `place` and `part`
// of each row; empty: the rows as they come, one part. 0 where there are no such entries. Of many
// entries (kLookedAtAll), those of some groups of rows, throughout the matrix, stand for all.
inline constexpr std::int64_t kLookedAtAll = 1 << 20;
double mean_distance(std::span<const std::int64_t> row_ptr, std::span<const std::int32_t> col,
                     std::span<const std::int32_t> place, std::span<const std::int32_t> part);

}  // namespace cpufree
