// How the blocks' shares of a matrix lie on its GPUs, made there: what share_layout.cpp and
// upload.cpp do on the host. Shapes of slices come to the host, entries stay.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cpufree/formats/layout/slices.hpp"
#include "cpufree/solvers/gpu/layout/block_halos.hpp"
#include "cpufree/solvers/gpu/layout/rows.hpp"
#include "cpufree/solvers/gpu/share_layout.hpp"
#include "cpufree/solvers/host/setup.hpp"

namespace cpufree {

// What a PE's matrix is made of besides slices, on its GPU.
template <class T>
struct TailsOnGpu {
  gpu::DeviceArray<std::int32_t> tail_col;
  gpu::DeviceArray<T> tail_val;
};
template <class T>
struct BesideSlicesOnGpu : TailsOnGpu<T> {
  gpu::DeviceArray<std::int32_t> global_row;  // of each place of the private vectors; -1 in gaps
  gpu::DeviceArray<T> inverse;                // of the diagonal, likewise; 1 in gaps
  double bound = 0.0;                         // of the spectrum
};

template <class T>
class GpuLayouts {
 public:
  // Of rows in the numbers and the sequence of their PEs.
  explicit GpuLayouts(std::vector<GpuRows<T>> rows);

  // As shares_of says, with the neighbours of `halos`.
  Shares shares(const HaloPlan<T>& halos) const;
  // As make_block_plans does.
  std::vector<std::vector<BlockPlan>> block_plans(const HaloPlan<T>& halos, int blocks,
                                                  Awaited awaited = Awaited::those_read);
  // Gives rows the order that their blocks want: with halos of blocks, if these can be had, or as
  // they have been before; or for blocks of block_plans.
  std::optional<HalosOnGpus> make_halos(HaloPlan<T>& halos, int blocks, std::int64_t most_reads) {
    return make_block_halos(halos, rows_, blocks, most_reads);
  }
  void take_halos(const std::vector<gpu::DeviceArray<std::int32_t>>& order,
                  const std::vector<std::vector<BlockPlan>>& plans) {
    take_block_halos(rows_, order, plans);
  }
  void sort() { sort_rows(rows_); }
  // As lay_out_shares does.
  std::vector<PeLayout> lay_out(std::vector<std::vector<BlockPlan>> plans,
                                const LayoutOptions& options);
  const GpuRows<T>& rows(std::size_t k) const { return rows_[k]; }
  // Writes the slices of PE k, whose shapes are on its GPU, to `bytes`, and makes their tails.
  TailsOnGpu<T> fill_slices(std::size_t k, const PeLayout& layout, const WarpSlice* slices,
                            std::byte* bytes);
  // The same, and what goes with A.
  BesideSlicesOnGpu<T> fill(std::size_t k, const PeLayout& layout, const WarpSlice* slices,
                            std::byte* bytes);

 private:
  using Ranges = std::vector<layout::SliceRange>;
  struct Values {  // different ones of each block
    gpu::DeviceArray<layout::ValueTable> table;
    std::vector<std::vector<double>> dictionary;  // empty: too many, or none
    std::vector<std::int64_t> entries;            // of each block
  };
  struct Shapes {
    std::vector<WarpSlice> slice;
    std::vector<std::int64_t> beyond;
    std::vector<std::int32_t> with_tails;  // slices
    std::vector<std::int64_t> lengths;     // of their lanes
  };

  // Rows as slices have them, with the names that kernels give columns, if there are any.
  layout::LocalRows<T> local(std::size_t k) const {
    layout::LocalRows<T> named = as_they_are(k);
    if (rows_[k].row_name.size() == 0) return named;
    named.entry_name = rows_[k].entry_name.data();
    named.row_name = rows_[k].row_name.data();
    return named;
  }
  layout::LocalRows<T> as_they_are(std::size_t k) const {
    return {rows_[k].ptr.data(), rows_[k].col.data(), rows_[k].val.data(), rows_[k].columns};
  }
  std::vector<std::int64_t> begins_of(std::size_t k, const std::vector<std::int32_t>& rows);
  void choose_lanes(std::size_t k, PeLayout& pe, const LayoutOptions& options);
  void choose_runs(std::size_t k, PeLayout& pe);
  void find_values(std::size_t k, const PeLayout& pe);
  Shapes shape(std::size_t k, const Ranges& ranges);
  void make_shapes(std::size_t k, PeLayout& pe, const LayoutOptions& options);
  void make_simple(std::size_t k, PeLayout& pe, const LayoutOptions& options);

  std::vector<GpuRows<T>> rows_;
  std::vector<Values> values_;  // of each PE, once they have been asked for
};

}  // namespace cpufree
