// What the GPU of one PE has in its memory: the matrix, its place among the others, and vectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpufree/launch/gpu/heaps.hpp"
#include "cpufree/solvers/gpu/kernels/remote.hpp"
#include "cpufree/solvers/gpu/layout/system_layout.hpp"
#include "cpufree/solvers/host/factor_layout.hpp"
#include "cpufree/solvers/host/heap.hpp"
#include "cpufree/solvers/host/scaling.hpp"

namespace cpufree {

// A factor of a PE's preconditioner, and where each block's part begins: slices, rows, values,
// narrow and wide columns.
struct FactorOnGpu {
  FactorOnGpu(int device, const std::vector<SlicedFactor>& blocks);
  FactorSlices view(std::size_t block) const;
  gpu::DeviceArray<FactorSlice> slice;
  gpu::DeviceArray<std::int32_t> row;
  gpu::DeviceArray<float> value;
  gpu::DeviceArray<std::uint16_t> narrow;
  gpu::DeviceArray<std::int32_t> wide;
  std::vector<std::array<std::size_t, 5>> first;
  std::vector<std::int32_t> counts;
};

template <class T>
struct FactorsOnGpu {
  std::vector<FactorOnGpu> factor;
  gpu::DeviceArray<std::int32_t> partners;
  gpu::DeviceArray<T> scale;
  std::array<gpu::DeviceArray<T>, 2> operand;
  gpu::DeviceArray<FactorShare<T>> shares;
};

// The shares of all blocks of a PE.
template <class T>
struct SlicesOnGpu {
  gpu::DeviceArray<std::byte> bytes;
  gpu::DeviceArray<WarpSlice> slices;
  gpu::DeviceArray<std::int64_t> tail_ptr;
  gpu::DeviceArray<std::int32_t> tail_col;
  gpu::DeviceArray<T> tail_val, dictionary;
};

template <class T>
struct PeMemory : SlicesOnGpu<T> {
  template <class U>
  using Array = gpu::DeviceArray<U>;

  std::int32_t rows = 0;
  std::int32_t interior = 0;
  std::int64_t private_rows = 0;
  Array<FeedItem> feed;             // chunks, block after block; none where there are no rings
  Array<std::uint32_t> feed_first;  // warps + 1 of each block
  Array<std::int32_t> partners;     // notify, await and await_local of all blocks
  Array<std::int64_t> send_ptr;
  Array<Destination> destinations;
  Array<std::int32_t> source, global_row;
  Array<std::int32_t> names;  // of a slab's rows (row_names), once they are needed
  RemoteTables remote;        // where there are several nodes
  Array<BlockShare<WarpSlices<T>>> shares;
  FactorsOnGpu<T> factors;
  Array<Split> splits;                            // of the blocks, once they have been asked for
  std::array<Array<T>, kPrivateVectors> vectors;  // in the order of `each_private`
};

// Those of the PEs of this process.
template <class T>
using PeMemories = std::vector<PeMemory<T>>;

// Brings the entries of a plan to its GPUs, PE k to those of slices[k], where there is room for the
// bytes alone, or other values in the same places.
template <class T>
void fill_slices(const std::vector<int>& devices, const HaloPlan<T>& plan,
                 const std::vector<PeLayout>& layouts, std::span<SlicesOnGpu<T>* const> slices);
// The same of rows that GPUs have, those of PE k, to memory of their own or where slices are.
template <class T>
void fill_slices(GpuLayouts<T>& rows, std::size_t k, const PeLayout& layout,
                 SlicesOnGpu<T>& slices);
// A block's share of them. Rings are fed by `feed`, if there are any.
template <class T>
WarpSlices<T> slices_of(const SlicesOnGpu<T>& pe, const ShareLayout& share,
                        const FeedItem* feed = nullptr, const std::uint32_t* feed_first = nullptr);

// Brings a matrix to its GPUs, in its format: the rows of a plan, or rows that GPUs have. For the
// first time, where there is room for the slices alone, or with other values in the same places.
// Returns what bounds the spectrum of D^-1 A, of all PEs. Throws OutOfMemory, as those below do.
template <class T>
double fill_from_host(const GpuPlace& place, const HaloPlan<T>& plan,
                      const std::vector<PeLayout>& layouts, PeMemories<T>& pes);
template <class T>
double fill_from_gpus(const GpuPlace& place, GpuLayouts<T>& rows,
                      const std::vector<PeLayout>& layouts, PeMemories<T>& pes);

// Tells the blocks of the PEs their shares, and whom they wait for. `rings`: solves may have some.
template <class T>
void link_pes(const GpuPlace& place, const SystemLayout<T>& layout, bool rings, const Heap<T>& heap,
              const GpuHeaps& heaps, PeMemories<T>& pes);

// Factors that the GPU of a PE has made, by the numbers of the matrix less `first`.
struct FactorsByGpu {
  std::int64_t first = 0;
  Factors factors;
};

// Gives PEs the factors of a preconditioner, and tells the report: those that GPUs have made, or,
// where there are none, the host makes them from the values of the plan.
template <class T>
void make_factors(const GpuPlace& place, SystemLayout<T>& layout, const Heap<T>& heap,
                  const GpuHeaps& heaps, std::vector<FactorsByGpu> by_gpus, PeMemories<T>& pes);

}  // namespace cpufree
