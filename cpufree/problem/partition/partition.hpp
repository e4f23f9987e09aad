// Sharing rows among parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/piece_cuts.hpp"
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

// The same for rows of which padded(i) is what rows [0, i) take, as a row_ptr's entry would be.
template <class F>
std::vector<RowRange> split_by(F&& padded, RowRange rows, int parts) {
  const auto weight_before = [&](std::int32_t i) {
    return row_weight(padded(i)) - row_weight(0) + row_weight(0) * static_cast<std::int64_t>(i);
  };
  std::vector<RowRange> ranges(static_cast<std::size_t>(parts));
  const std::int64_t low = weight_before(rows.begin);
  const std::int64_t all = weight_before(rows.end) - low;
  std::int32_t cut = rows.begin;
  for (int part = 0; part < parts; ++part) {
    const std::int64_t goal = low + piece_goal(all, part, parts);
    const std::int32_t first = nearest_cut(weight_before, goal, cut, rows.end);
    const std::int32_t end = part + 1 == parts ? rows.end : first;
    ranges[static_cast<std::size_t>(part)] = {cut, end};
    cut = end;
  }
  return ranges;
}

// How many parts of rows with N nonzeros are worth threads.
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

// Where the rows of each PE begin in a contiguous partition, and the last one's end. Each cut is at
// the row boundary nearest to where PEs would have equal nonzeros, or rows, where there are none.
std::vector<std::int64_t> contiguous_cuts(std::span<const std::int64_t> row_ptr, int pes);
// The same: part[i] is the PE that owns row i.
std::vector<std::int32_t> contiguous_partition(std::span<const std::int64_t> row_ptr, int pes);

}  // namespace cpufree
