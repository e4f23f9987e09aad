// Sorts rows by length within windows, so that slices are padded less.
//
// "SELL-C-sigma": Kreutzer, Hager, Wellein, Fehske and Bishop 2014, "A unified sparse matrix data
// format for efficient general sparse matrix-vector multiplication on modern processors with wide
// SIMD units". C is kSliceRows here, sigma the rows of a window.
#pragma once

#include <array>
#include <cstdint>

#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/problem/peers.hpp"

namespace cpufree {

// Rows of a window: an odd number of slices, that warps, of which a block has a power of two,
// find themselves elsewhere in each window, and have as much to do as one another in the end; and
// whole nodes, of three unknowns. Of Serena and audikw_1 the busiest warp of 16 has 1.03 and 1.08
// times the mean of its block; with 16 slices a window it would be 1.07 and 1.73, with eight 1.30
// and 2.61.
inline constexpr std::int32_t kLengthWindow = 15 * kSliceRows;

// Entries of slices of windows, padding included: a lane for each row, and kLongRowLanes.
using WindowEntries = std::array<std::int64_t, 2>;

// Those of all PEs.
struct WindowSums {
  std::int64_t interior = 0, nonzeros = 0;  // interior rows, and their entries
  WindowEntries before{}, after{};          // in the order before and after

  void add(std::int64_t rows, std::int64_t of_rows, const WindowEntries& in_order);
  void add_sorted(const WindowEntries& sorted);
  // Whether slices without any padding would be worth it, of rows of which only `before` is known.
  bool may_pay() const;
  // Whether rows are to be sorted: where slices shrink by more than next to nothing, a lane for
  // each row or, if rows are long, kLongRowLanes.
  bool pays() const;
};

// Renumbers interior rows of all PEs (interior_order.hpp): each `window` of them, longest first and
// shortest first in turn, so that rows at the seam of two windows are alike, too: slices begin
// where blocks do. Rows of one length stay in their order, and windows do not end within a node, so
// that rows of the same columns stay together: they read the same lines of the operand, and what
// neighbours in its numbering is stored as one (formats/warp_slices.hpp). Where slices of all PEs,
// a lane for each row or, if rows are long, kLongRowLanes, would shrink by next to nothing, nothing
// is done on any. `plan` has the PEs here; all processes call it together.
template <class T>
void sort_by_length(HaloPlan<T>& plan, const Peers& peers, std::int32_t window = kLengthWindow);

}  // namespace cpufree
