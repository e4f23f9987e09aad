// Sorts rows by length within windows, so that slices are padded less.
//
// "SELL-C-sigma": Kreutzer, Hager, Wellein, Fehske and Bishop 2014, "A unified sparse matrix data
// format for efficient general sparse matrix-vector multiplication on modern processors with wide
// SIMD units". C is kSliceRows here, sigma the rows of a window.
#pragma once

#include <cstdint>

#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/problem/peers.hpp"

namespace cpufree {

// Rows of a window, a multiple of those of a slice. (One H200: 128 to 512 differ by 6 %, and not in
// the same way for different matrices.)
inline constexpr std::int32_t kLengthWindow = 256;

// Renumbers interior rows of all PEs (interior_order.hpp): each `window` of them, longest first and
// shortest first in turn, so that rows at the seam of two windows are alike, too: slices begin
// where blocks do. Rows of one length stay in their order, so that those of one node stay together,
// which read the same lines of the operand. Where slices of all PEs, a lane for each row or, if
// rows are long, kLongRowLanes, would shrink by next to nothing, nothing is done on any. `plan` has
// the PEs here; all processes call it together.
template <class T>
void sort_by_length(HaloPlan<T>& plan, const Peers& peers, std::int32_t window = kLengthWindow);

}  // namespace cpufree
