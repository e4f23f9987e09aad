// Builds WarpSlices (host code), in two steps: first the shape, from rows, columns and values; then
// the bytes, any run of slices at a time, so that they can be written straight into the buffers
// from which they are sent to a GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpufree/formats/slices/slice_choice.hpp"
#include "cpufree/formats/warp_slices.hpp"
#include "cpufree/problem/blocks/block_halo.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// What a share is made from.
template <class T>
struct ShareSource {
  const LocalSystem<T>& local;
  const BlockColumns* columns = nullptr;  // what the kernel calls columns; null: as they are
  Codes codes = {};
  const std::int32_t* entry_names = nullptr;  // of all entries: what `columns` says; null: ask it

  std::int32_t column(std::int64_t entry) const {
    if (entry_names != nullptr) return entry_names[entry];
    const std::int32_t c = local.col[static_cast<std::size_t>(entry)];
    return columns == nullptr ? c : (*columns)(c);
  }
  std::int64_t begin_of(std::int32_t row) const {
    return local.row_ptr[static_cast<std::size_t>(row)];
  }
  T value(std::int64_t entry) const { return local.val[static_cast<std::size_t>(entry)]; }
  // The column that padding of a row without entries reads: its own. Rows between two levels of
  // multigrid may outnumber the columns: then the last one, for what lies behind the operand may be
  // a NaN, and zero times that is one.
  std::int32_t name(std::int32_t row) const {
    const std::int32_t own = row < local.rows() ? row : local.rows() - 1;
    return columns == nullptr ? own : (*columns)(own);
  }
};

// The shape of one block's share. Units and tails count from the share's first.
struct WarpSliceShape {
  std::vector<WarpSlice> slice;
  std::vector<std::int64_t> tail_ptr;  // 33 for each slice that has tails
  std::vector<LaneRows> rows;          // of each slice
  std::vector<double> dictionary;      // empty: values are not coded
  bool single = false;                 // as Codes says
  std::int64_t units = 0;
  std::int64_t tail_entries = 0;

  // Where slice k ends, and the next one begins.
  std::int64_t end_of(std::size_t k) const {
    return k + 1 < slice.size() ? std::int64_t{slice[k + 1].first} : units;
  }
  Simple simple() const;
  // Appends a slice whose width and code have been chosen, and whose lanes have `lengths` entries,
  // `beyond` of them beyond its width. Values of the matrix have `value_bytes`.
  void append(WarpSlice chosen, const LaneRows& of, const std::int64_t (&lengths)[kSliceRows],
              std::int64_t beyond, std::int64_t value_bytes);
  // What values as they are take in slices.
  std::int64_t stored_bytes(std::int64_t value_bytes) const {
    return single ? std::int64_t{sizeof(float)} : value_bytes;
  }
  // Whether the values of a slice are not coded.
  bool plain_values(const WarpSlice& of) const {
    return dictionary.empty() || of.code == ColumnCode::plain;
  }
  // Whether it is to be made without runs, to see whether it is simple then: on chip a single code
  // for all is worth more than runs here and there.
  bool may_be_simple() const;
  SliceKinds kinds() const;
  WarpSlicesSize size() const {
    return {units,
            static_cast<std::int32_t>(slice.size()),
            static_cast<std::int32_t>(tail_ptr.size()),
            tail_entries,
            static_cast<std::int32_t>(dictionary.size()),
            simple(),
            kinds()};
  }
};

// The `run` of rows that lanes are to share: kRun where nearly all of them come in runs.
inline std::int32_t usual_run(std::int32_t in_runs, std::int32_t rows) {
  return 10 * std::int64_t{in_runs} >= 9 * std::int64_t{rows} ? kRun : 1;
}
template <class T>
std::int32_t usual_run(const ShareSource<T>& source, RowRange rows);

// The shape of a share whose rows are these ranges; each begins with a slice of its own.
template <class T>
WarpSliceShape shape_of(const ShareSource<T>& source, const std::vector<LaneRows>& ranges);

// Writes slices [first, end) of `shape` to `to`, kSliceUnit bytes for each of their units. `to` is
// aligned to 8 bytes.
template <class T>
void fill_warp_slices(const ShareSource<T>& source, const WarpSliceShape& shape, std::size_t first,
                      std::size_t end, std::byte* to);

// Writes the tails of all slices.
template <class T>
void fill_tails(const ShareSource<T>& source, const WarpSliceShape& shape, std::int32_t* col,
                T* val);

// The chunks of a share in the order in which each warp of a block reads them (SliceRing).
struct SliceFeed {
  std::vector<FeedItem> items;
  std::vector<std::uint32_t> first;  // warps + 1
};

// Of a share whose shape is of these ranges. Throws InvalidInput where slices are too many.
template <class T>
SliceFeed feed_of(const WarpSliceShape& shape, const std::vector<LaneRows>& ranges, int warps);

// Bytes of a slot that holds any chunk of the share and the head of its slice.
template <class T>
std::int32_t slot_bytes(const WarpSliceShape& shape);

}  // namespace cpufree
