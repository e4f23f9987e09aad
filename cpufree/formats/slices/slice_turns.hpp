// Which rows of a range are a thread's, where lanes of a warp may share rows (warp_slices.hpp).
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/device/block.hpp"
#include "cpufree/formats/accurate_sum.hpp"
#include "cpufree/formats/slices/slice_limits.hpp"
#include "cpufree/problem/blocks/slice_rows.hpp"

namespace cpufree {

// Rows [begin, end), 2^lanes_log2 lanes for each in slices, the first of which is `start`. A warp
// takes 32 / 2^thin rows at a time, the slices of which it sums one after the other; `thin`, at
// most `lanes_log2`, is not 0 where a block has fewer rows than threads, or where fewer rows at a
// time give its warps more alike to do.
struct SliceRows {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  std::int32_t start = 0;
  std::int32_t lanes_log2 = 0;
  std::int32_t thin = 0;
};

// Whether my warp has any of the rows.
template <class P>
CPUFREE_KERNEL_FN bool has_rows(P& port, const SliceRows& rows) {
  return (port.lane() - port.lane() % P::warp_width) >> rows.thin < rows.end - rows.begin;
}

// Calls f(row, 0) for all of the rows, each from the first of the 2^thin lanes that have it.
template <class P, class F>
CPUFREE_KERNEL_FN void each_thin(P& port, const SliceRows& rows, F&& f) {
  if ((port.lane() & ((1 << rows.thin) - 1)) != 0) return;
  const std::int32_t step = port.lanes() >> rows.thin;
  for (std::int32_t row = rows.begin + (port.lane() >> rows.thin); row < rows.end; row += step)
    f(row, 0);
}

// Calls f(row, read(row), sum) for all of the rows, from the thread to which each_thin gives it; my
// warp has some (has_rows). What read(row) loads is on its way while sums are made. S: what the
// sums are. lane_sum(s, next): what my lane has of slice s; a warp's slices come in sequence, those
// of its first turn first, and `next` comes after s, or is s where that is the last one.
template <class S, class P, class G, class F, class L>
CPUFREE_KERNEL_FN void each_turn_reading(P& port, const SliceRows& rows, G&& read, F&& f,
                                         L&& lane_sum) {
  const int lane = port.lane() % P::warp_width;
  const bool first = (lane & ((1 << rows.thin) - 1)) == 0;
  const std::int32_t step = port.lanes() >> rows.thin;
  std::int32_t row = rows.begin + (port.lane() >> rows.thin);
  std::int32_t left = rows.end - row + (lane >> rows.thin);  // from my warp's first one on
  // My row among those that the warp takes at a time: which slice it is in, and which lane there
  // has its sum.
  const std::int32_t of_slice = kSliceRows >> rows.lanes_log2;
  const std::int32_t place = lane >> rows.thin;
  const int holder = (place % of_slice) << rows.lanes_log2;
  CPUFREE_ONE_COPY
  for (; left > 0; row += step, left -= step) {
    const std::int32_t taken = kSliceRows >> rows.thin;
    const bool mine = row < rows.end && first;
    const auto given = read(mine ? row : rows.begin);
    S total = {};
    CPUFREE_ONE_COPY
    for (std::int32_t k = 0; k < taken && k < left; k += of_slice) {
      const auto slice = [&](std::int32_t before) {  // rows of slices before
        return rows.start + (before >> (kMostLanesLog2 - rows.lanes_log2));
      };
      const std::int32_t before = rows.end - rows.begin - left + k;
      const bool more = k + of_slice < taken && k + of_slice < left;
      const std::int32_t after = more ? before + of_slice : before - k + step;
      const bool end = !more && left <= step;
      S sum = lane_sum(slice(before), slice(end ? before : after));
      for (int half = kSliceRows / 2 / of_slice; half > 0; half /= 2)
        sum += sum_across(port, sum, half);
      if (rows.lanes_log2 > rows.thin) sum = sum_broadcast(port, sum, holder);
      if (place >= k) total = sum;
    }
    if (mine) f(row, given, total);
  }
}
// The same of f(row, 0, sum) and lane_sum(s).
template <class S, class P, class F, class L>
CPUFREE_KERNEL_FN void each_turn(P& port, const SliceRows& rows, F&& f, L&& lane_sum) {
  each_turn_reading<S>(
      port, rows, [](std::int32_t) { return 0; },
      [&](std::int32_t row, int, const S& sum) { f(row, 0, sum); },
      [&](std::int32_t s, std::int32_t) { return lane_sum(s); });
}

}  // namespace cpufree
