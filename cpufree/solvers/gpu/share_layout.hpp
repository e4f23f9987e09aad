// How a PE's share of the system lies in a GPU's memory: where each block's slices and private rows
// are, how the work of writing them is cut up, and what stays on chip. Host arithmetic, no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpufree/base/machine.hpp"
#include "cpufree/base/pages.hpp"
#include "cpufree/formats/warp_slices_build.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/solvers/host/spec.hpp"
#include "cpufree/solvers/resident.hpp"

namespace cpufree {

// One block's share. `first_...`: where it begins in the arrays of its PE. A block's private rows
// are its boundary rows, then its interior rows.
struct ShareLayout {
  BlockPlan plan;
  LaneRows interior, boundary;  // plan.interior and plan.boundary
  WarpSliceShape shape;         // of these two
  std::int64_t first_unit = 0;
  std::int64_t first_slice = 0;
  std::int64_t first_tail = 0;
  std::int64_t first_tail_entry = 0;
  std::int64_t first_value = 0;  // of the dictionaries
  std::int64_t first_private = 0;
  std::int64_t first_operand = 0;  // halos of blocks: in exchanged vectors
};

// What kernels call the column of each entry of a PE, with halos of blocks. BlockColumns searches
// for it, and several layouts are tried: without these, a layout takes 5 to 14 times as long.
using EntryNames = PageVector<std::int32_t>;
using SharedNames = std::shared_ptr<const EntryNames>;

struct PeLayout {
  std::vector<ShareLayout> shares;
  std::int64_t units = 0;  // kSliceUnit bytes each
  std::int64_t slices = 0;
  std::int64_t tails = 0;
  std::int64_t tail_entries = 0;
  std::int64_t values = 0;
  std::int64_t private_rows = 0;  // with the gaps that align blocks
  // Halos of blocks:
  std::vector<std::int32_t> packets;  // of each row, see BlockColumns
  std::int64_t operand_rows = 0;      // of an exchanged vector: what blocks own and read
  SharedNames names;                  // null: they are looked up

  // What the kernel calls the columns of a share, with halos of blocks.
  BlockColumns columns_of(const ShareLayout& share) const {
    return {{share.plan.boundary.begin, share.plan.interior.end},
            static_cast<std::int32_t>(packets.size()),
            packets.data(),
            share.plan.reads};
  }
};

// What there is to know of all of them.
struct LayoutOptions {
  bool block_halos = false;  // the plans are of make_block_halos
  Codes codes = {};
  // 2^lanes_log2 lanes share a row; -1: as many as is best. `threads`: of a block.
  std::int32_t lanes_log2 = 0;
  int threads = kSliceRows;
  bool spread = false;  // rows that are fewer than threads have as many lanes as there are for them
  std::vector<SharedNames> names = {};  // of PEs, with halos of blocks; none: they are looked up
};

// Those of all PEs, whose plans are of make_block_halos.
template <class T>
std::vector<SharedNames> name_entries(const HaloPlan<T>& plan,
                                      const std::vector<std::vector<BlockPlan>>& plans);

// Rows with N entries in all, shared among lanes of a block of T threads. `lanes_log2`:
// by how many, or -1.
LaneRows rows_on_lanes(RowRange rows, std::int64_t entries, int threads, std::int32_t lanes_log2);
// As many lanes for each row as there are threads, where rows are fewer.
LaneRows spread_rows(RowRange rows, int threads);
// Rows of a block's share as the options say, but for their `run`.
LaneRows lanes_for(const BlockPlan& block, RowRange rows, std::int64_t entries,
                   const LayoutOptions& options);
// Chunks of slices that a warp of the block sums for these rows, one after the other.
std::int64_t chunks_in_turn(const LaneRows& rows, std::int64_t entries, int threads);

// Places for the shares of these blocks, which have no shapes yet; and, once they have, where each
// begins.
std::vector<PeLayout> begin_layouts(std::vector<std::vector<BlockPlan>> plans, bool block_halos);
void place_shares(std::vector<PeLayout>& layouts);

// Layouts of all PEs.
template <class T>
std::vector<PeLayout> lay_out_shares(const HaloPlan<T>& plan,
                                     std::vector<std::vector<BlockPlan>> plans,
                                     const LayoutOptions& options = {});

// What the busiest warp of all blocks, of N threads, sums in a product: entries of its lanes,
// padding included, and as many as it could sum while it begins a slice or a tail.
std::int64_t busiest_warp(const std::vector<PeLayout>& layouts, int threads);

// What the entries of a share are made from. `columns` is where its BlockColumns are to live.
template <class T>
ShareSource<T> source_of(const LocalSystem<T>& local, const PeLayout& layout,
                         const ShareLayout& share, BlockColumns& columns, Codes codes = {});

// The original number of the row at each place of the private vectors; -1 in gaps.
template <class T>
std::vector<std::int32_t> private_rows(const LocalSystem<T>& local, const PeLayout& layout);

// A run of slices of one share, to be written and sent in one go.
struct Chunk {
  std::size_t share = 0;
  std::size_t first = 0;  // slices [first, end) of the share
  std::size_t end = 0;
  std::int64_t first_unit = 0;  // of the PE
  std::int64_t units = 0;
};

// Cuts a PE's slices into chunks of at most `most` units; a slice that has more is one by itself.
std::vector<Chunk> cut_into_chunks(const PeLayout& layout, std::int64_t most);

// f(bytes) of each array that a PE's shares take: those of SlicesOnGpu.
template <class T, class F>
void each_array_of(const PeLayout& layout, F&& f) {
  f(static_cast<double>(layout.units) * kSliceUnit);
  f(static_cast<double>(layout.slices) * sizeof(WarpSlice));
  f(static_cast<double>(layout.tails) * sizeof(std::int64_t));
  f(static_cast<double>(layout.tail_entries) * sizeof(std::int32_t));
  f(static_cast<double>(layout.tail_entries) * sizeof(T));
  f(static_cast<double>(layout.values) * sizeof(T));
}

// What shares take in all.
template <class T>
double bytes_of(std::span<const PeLayout> layouts) {
  double bytes = 0.0;
  for (const PeLayout& layout : layouts)
    each_array_of<T>(layout, [&](double array) { bytes += array; });
  return bytes;
}

// How large a block's share is.
struct ShareSize {
  std::int32_t rows = 0;
  WarpSlicesSize matrix;
  std::int32_t reads = 0;       // packets, with halos of blocks
  std::int32_t warps = 0;       // that would have slices of their own, if there were enough
  std::int32_t slot_bytes = 0;  // of a ring (SliceRing)
};
// Of all blocks of all PEs.
template <class T>
std::vector<ShareSize> sizes_of(const std::vector<PeLayout>& layouts);
// Whether all shares are simple ones (Simple), values as they are.
bool all_simple(const std::vector<ShareSize>& shares);
// Most rows of a block.
std::int32_t most_rows(const std::vector<ShareSize>& shares);

// What a block keeps on chip, and the bytes that takes.
struct FastMemory {
  Residency residency;
  std::size_t bytes = 0;
};

// What a solve would keep on chip.
struct OnChipRequest {
  int vectors = 0;       // private ones
  bool scratch = false;  // exchanges scratch vectors in every iteration
  std::size_t value_bytes = 0;
  // Rings: warps of a block; slots of each (0: no rings, -1: as many as pay); see RingShape.
  int warps = 0;
  int slots = 0;
  bool passing = false;
  std::int32_t kept = 0;  // where all vectors stay on chip; the rest is then passing
  double matrix_bytes = 0.0, vector_bytes = 0.0;  // of a PE, of one of its vectors
  double cached_bytes = Machine{}.solver_cached_bytes;
};

// Whether matrix and operands, too, stay on chip.
inline bool keeps_operands(const Residency& kept, const OnChipRequest& wanted) {
  return kept.matrix && (kept.scratch || !wanted.scratch);
}

// All vectors, p (a copy, or itself) and the matrix if the shares of all blocks fit into `limit`
// bytes, if need be without the scratch vector, or without b; else rings, and as many vectors as
// fit, and pay. `mode`: SystemSpec::residency.
FastMemory choose_residency(const std::vector<ShareSize>& shares, const OnChipRequest& wanted,
                            std::size_t limit, int mode);

}  // namespace cpufree
