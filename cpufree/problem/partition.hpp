// Sharing rows among parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/csr.hpp"

namespace cpufree {

// What a row costs in one iteration, in bytes: a value and a column index for each nonzero; and
// what rows take whatever their length, vectors and the turn of a slice, as clocks of blocks on one
// H200 have it. (Hook_1498, Geo_1438 and Bump_2911 begin and end with thousands of rows of one
// entry: with fewer bytes for a row, the blocks that have them are the last ones to be done. By
// their clocks these would have 320, 320 and 395, Flan_1565 330. With 384 instead of 288 Bump_2911
// and Hook_1498 take 1 to 2 % less, audikw_1 and Flan_1565 1 % more.) The weight by which rows are
// shared among blocks and PEs.
constexpr std::int64_t row_weight(std::int64_t nnz) { return 12 * nnz + 384; }

// Splits `rows` into `parts` contiguous ranges of about equal weight. `row_ptr` is indexed by row.
// Every row lies in exactly one range; ranges may be empty; no cut is further than half a row from
// the ideal one.
std::vector<RowRange> split_rows(std::span<const std::int64_t> row_ptr, RowRange rows, int parts);

// How many parts of rows with so many nonzeros are worth threads.
inline int parts_for_threads(std::int64_t entries) {
  constexpr std::int64_t kGrain = 200'000;  // nonzeros that are worth a thread
  return static_cast<int>(
      std::min<std::int64_t>(entries / kGrain + 1, std::int64_t{4} * available_cores()));
}

// Calls f for runs of rows that are together all of them, on all cores.
template <class F>
void for_chunks(std::span<const std::int64_t> row_ptr, F&& f) {
  const auto rows = static_cast<std::int32_t>(row_ptr.size() - 1);
  const auto chunks = split_rows(row_ptr, {0, rows}, parts_for_threads(row_ptr.back()));
  in_parallel(static_cast<int>(chunks.size()), [&](int k) { f(chunks[at(k)]); });
}

// Contiguous partition of all rows: part[i] is the PE that owns row i.
std::vector<std::int32_t> contiguous_partition(std::span<const std::int64_t> row_ptr, int pes);

}  // namespace cpufree
