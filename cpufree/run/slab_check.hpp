// What a rank checks of the rows it is given, and of their entries. Rows and columns in messages
// are those of the matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/problem/partition.hpp"
#include "cpufree/run/team.hpp"

namespace cpufree {

// Calls f for runs of rows that are together all of them, on all cores.
template <class F>
void for_chunks(std::span<const std::int64_t> row_ptr, F&& f) {
  constexpr std::int64_t kGrain = 200'000;  // nonzeros that are worth a thread
  const auto rows = static_cast<std::int32_t>(row_ptr.size() - 1);
  const auto parts = static_cast<int>(
      std::min<std::int64_t>(row_ptr.back() / kGrain + 1, std::int64_t{4} * available_cores()));
  const auto chunks = split_rows(row_ptr, {0, rows}, parts);
  in_parallel(parts, [&](int k) { f(chunks[at(k)]); });
}

// The first row of each rank, and the number of all. Throws InvalidInput, in all members, unless
// the slabs are, by rank, all rows of one matrix.
template <class T>
std::vector<std::int64_t> gather_bounds(const RowSlab<T>& slab, Team& team);

// Which rows have a column of another rank. Throws InvalidInput unless the columns increase in each
// row, and are of the matrix.
template <class T>
std::vector<char> find_boundary(const RowSlab<T>& slab);

// Looks at all entries of this rank, and at pairs of them. Returns the largest asymmetry. Throws
// BadEntry.
template <class T>
double check_own_entries(const RowSlab<T>& slab, double tolerance);

// a_ii of a row of the slab, 0 where none is stored.
template <class T>
double diagonal_of(const RowSlab<T>& slab, std::int32_t row);

// Two entries that should be the same.
struct Pair {
  std::int64_t row = 0, column = 0;
  double here = 0.0, there = 0.0;  // a_ij, a_ji
  double diagonal_here = 0.0, diagonal_there = 0.0;
};
// |a_ij - a_ji| / sqrt(a_ii a_jj). Throws BadEntry where that is above `tolerance`.
double asymmetry_of(const Pair& pair, double tolerance);

}  // namespace cpufree
