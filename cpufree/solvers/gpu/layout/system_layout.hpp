// How a matrix lies on the GPUs of a System: decided from rows that the host has, or from what GPUs
// tell of rows that they have. Either way it is the same, to the last bit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cpufree/base/laps.hpp"
#include "cpufree/problem/remote_plan.hpp"
#include "cpufree/solvers/gpu/layout/layouts.hpp"
#include "cpufree/solvers/gpu/place.hpp"

namespace cpufree {

// What kernels are chosen by, and memory is reserved by.
struct LayoutFacts {
  int blocks = 1;            // of a PE
  int threads = 0;           // of a block
  bool block_halos = false;  // packets among the blocks of a PE
  // Lanes share rows: the matrix comes through rings, or stays on chip.
  bool lanes_share_rows = false;
  bool on_chip = false;  // where it does, kernels for simple shares on chip alone read it
  Extent extent;
  std::size_t packets = 0;             // of a PE, for one vector
  std::vector<ShareSize> sizes;        // of all blocks of all PEs, which keep the same on chip
  std::int64_t rows = 0, entries = 0;  // of the matrix
  std::int64_t first_row = 0;          // of the vectors: that of a slab, in the matrix
  double bytes_of_pe = 0.0;            // of the matrix
};

// What kernels find there. Shares are read as simple ones on chip alone: of a matrix that cannot
// stay there some may be by chance, as those of the first blocks, whose columns are small.
inline SliceKinds kinds_of(const LayoutFacts& facts) {
  constexpr std::int64_t kMostOnChip = 227 << 10;  // bytes of a block, on any GPU
  SliceKinds kinds = facts.packets > 0 && !facts.block_halos ? kHaloPackets : 0;
  bool may_stay = true;
  for (const ShareSize& share : facts.sizes) {
    kinds |= share.matrix.kinds;
    may_stay = may_stay && share.matrix.units * kSliceUnit <= kMostOnChip;
  }
  if (!may_stay) kinds &= ~(kSimpleColumns | kSimpleRuns);
  return kinds | (has_kind(kinds, kRuns) ? 0 : kSingles);  // a PE without rows has no slices
}

// Lays the shares of all blocks out. LayoutOptions::names are its own.
using LayOut = std::function<std::vector<PeLayout>(const LayoutOptions&)>;
// The layouts in the best format. `facts` has blocks, threads, halos and the size of the matrix,
// and gets lanes_share_rows and on_chip.
template <class T>
std::vector<PeLayout> choose_format(const GpuPlace& place, LayoutFacts& facts,
                                    const LayOut& lay_out);

// Where each PE's rows begin, and the last one's end, if GPUs are to lay a matrix out, provided
// that they have room; none: the host is. `part` and `order` as in make_system.
template <class T>
std::vector<std::int64_t> cuts_for_gpus(const GpuPlace& place, const CsrView<T>& matrix,
                                        std::span<const std::int32_t> part,
                                        std::span<const std::int32_t> order);

// Whether the GPUs have room to lay a matrix out. PE k has rows [cuts[k], cuts[k + 1]).
template <class T>
bool have_room(const GpuPlace& place, const GivenCsr<T>& matrix,
               std::span<const std::int64_t> cuts);

// Where the host is to make levels of multigrid, before it does: throws OutOfMemory where the GPUs
// have no room for a matrix and these.
template <class T>
void require_room_for_levels(const GpuPlace& place, const CsrView<T>& matrix);

// Rows on their GPUs, as they are in the matrix, and what is found in them.
template <class T>
struct SentRows {
  std::vector<GpuRows<T>> rows;
  FoundInRows found;
};

// Sends rows to their GPUs and has these look at them, at all entries if `inspect`.
template <class T>
SentRows<T> send_to_gpus(const GpuPlace& place, const GivenCsr<T>& matrix,
                         std::span<const std::int64_t> cuts, bool inspect, LapTimer& timer);

// Rows on their GPUs, in the numbers of the PEs.
template <class T>
struct ArrivedRows {
  FoundInRows found;
  HaloPlan<T> plan;  // of number_rows
  GpuLayouts<T> layouts;
};

// Gives rows without a flaw the numbers of the PEs.
template <class T>
ArrivedRows<T> number_on_gpus(SentRows<T> sent, LapTimer& timer);

template <class T>
struct SystemLayout {
  LayoutFacts facts;
  HaloPlan<T> plan;                                // of the PEs here; without rows that GPUs have
  std::vector<PeLayout> pes;                       // likewise
  std::vector<std::vector<std::int32_t>> sources;  // of each PE here: who sends each packet
  std::vector<RemotePlan> far;                     // likewise, where there are several nodes
  // Rows that GPUs have renumbered for halos of blocks: HalosOnGpus::order.
  std::vector<gpu::DeviceArray<std::int32_t>> order;
  PlanReport report;
};

// `plan` has the rows of the PEs here; `order` as in make_system. Throws InvalidInput where a GPU
// cannot hold its rows.
template <class T>
SystemLayout<T> lay_out_by_host(const GpuPlace& place, HaloPlan<T> plan,
                                std::span<const std::int32_t> order);
// Takes the plan of the rows, and leaves the rest.
template <class T>
SystemLayout<T> lay_out_by_gpus(const GpuPlace& place, ArrivedRows<T>& rows);

// How other values of the same pattern would lie in a new system: those of old.plan or, unless it
// is null, of `rows`, which get the order of the old ones. None: not as the old ones do.
template <class T>
std::optional<std::vector<PeLayout>> lay_out_again(const GpuPlace& place,
                                                   const SystemLayout<T>& old,
                                                   GpuLayouts<T>* rows = nullptr);

}  // namespace cpufree
