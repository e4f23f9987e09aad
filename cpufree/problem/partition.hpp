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

// What a row costs in one iteration, in bytes: a value and a column index for each nonzero; some
// twelve passes over vectors, and as much again for the time that short rows take whatever their
// length. The weight by which rows are shared among blocks and PEs. (Geo_1438 begins with thousands
// of rows of one entry: with passes alone, the block that has them is the last one to be done.)
constexpr std::int64_t row_weight(std::int64_t nnz) { return 12 * nnz + 192; }

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
