// Builds WarpSlices (host code), in two steps: first the shape, from the lengths of the rows; then
// the entries, any run of slices at a time, so that they can be written straight into the buffers
// from which they are sent to a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/problem/block_halo.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/warp_slices.hpp"

namespace cpufree {

// The shape of one block's share. Positions count from the share's first entry.
struct WarpSliceShape {
  std::vector<WarpSlice> slice;
  std::vector<std::int64_t> tail_ptr;  // 33 for each slice that has tails
  std::vector<RowRange> rows;          // of each slice, at most 32
  std::int64_t entries = 0;

  // Where the entries of slice k end, and those of the next one begin.
  std::int64_t end_of(std::size_t k) const {
    return k + 1 < slice.size() ? slice[k + 1].first : entries;
  }
};

// Appends the slices of `rows`, the first of them being new. `row_ptr` is indexed by row. Every
// slice begins at a multiple of 32 entries.
void append_warp_slices(std::span<const std::int64_t> row_ptr, RowRange rows,
                        WarpSliceShape& shape);

// Writes all entries of slices [first, end) of `shape` to `col` and `val`, whose element 0 is that
// of slice `first`. `columns`, if not null: what the kernel calls them.
template <class T>
void fill_warp_slices(const LocalSystem<T>& local, const WarpSliceShape& shape, std::size_t first,
                      std::size_t end, std::int32_t* col, T* val,
                      const BlockColumns* columns = nullptr);

}  // namespace cpufree
