// Where a sequence of rows is cut into pieces of equal weight, and what rows of a block count as
// its boundary. For host and kernels.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

// The weight that comes before the end of a piece, of `all`.
CPUFREE_FN std::int64_t piece_goal(std::int64_t all, int piece, int pieces) {
  return all / pieces * (piece + 1) + all % pieces * (piece + 1) / pieces;
}

// The cut of [begin, end] before which the weight is nearest to `goal`. weight_before(i) does not
// decrease with i.
template <class F>
CPUFREE_FN std::int32_t nearest_cut(const F& weight_before, std::int64_t goal, std::int32_t begin,
                                    std::int32_t end) {
  std::int32_t first = begin;  // smallest cut that reaches the goal, by bisection
  while (first < end) {
    const std::int32_t middle = first + (end - first) / 2;
    if (weight_before(middle) < goal)
      first = middle + 1;
    else
      end = middle;
  }
  if (first > begin && goal - weight_before(first - 1) < weight_before(first) - goal)
    --first;  // the cut before is nearer
  return first;
}

// The place of [0, end] nearest to `cut` where the rows before and behind it differ in what they
// read: rows of a node of a mesh, which come one after another, stay together. Where a node is
// torn, slices of all the rows that read it have no columns in runs
// (formats/slices/slice_codes.hpp). same(k): whether rows k - 1 and k are alike.
template <class F>
CPUFREE_FN std::int32_t cut_between_nodes(const F& same, std::int32_t cut, std::int32_t end) {
  constexpr std::int32_t kFar = 6;  // nodes have few rows; those of a dense block are all alike
  for (std::int32_t by = 0; by <= kFar; ++by)
    for (int side = 0; side < 2; ++side) {
      const std::int32_t k = side == 0 ? cut - by : cut + by;
      if (k >= 0 && k <= end && (k == 0 || k == end || !same(k))) return k;
    }
  return cut;
}

// How many of a block's `interior` rows, the last ones, count as boundary, which costs a packet
// each: all, where they are fewer than a slice has and not worth a turn of their own; those that
// would begin one more slice, where the last slice of the `boundary` has room for them, and for the
// rest of their node. same(k): whether interior rows k - 1 and k are of one node.
template <class F>
CPUFREE_FN std::int32_t rows_to_fill(const F& same, std::int32_t boundary, std::int32_t interior,
                                     std::int32_t slice) {
  if (interior < slice) return interior;
  const std::int32_t room = (slice - boundary % slice) % slice;
  std::int32_t over = interior % slice;
  while (over > 0 && over <= room && over < interior && same(interior - over)) ++over;
  return over <= room ? over : 0;
}

}  // namespace cpufree
