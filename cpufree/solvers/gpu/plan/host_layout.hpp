// How a matrix lies on the GPUs of a System, and the arithmetic of it that needs no GPU: a machine
// without one can say how much memory a system will take (memory.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cpufree/formats/factor_slices_build.hpp"
#include "cpufree/problem/blocks/block_halo.hpp"
#include "cpufree/problem/remote_plan.hpp"
#include "cpufree/solvers/gpu/place.hpp"
#include "cpufree/solvers/gpu/share_layout.hpp"
#include "cpufree/solvers/host/setup.hpp"

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

// Levels exchange by stores, and rows of A are to be in the threads that have them on level 0: how
// the matrix lies is not for the user to choose. Throws InvalidInput, Unsupported.
void prepare_for_multigrid(GpuPlace& place);

// Bytes of dynamic shared memory of a block before a kernel is chosen, about; less where GPUs have
// less, or PEs share one.
inline constexpr std::size_t kRoomOnChip = 220'000;
std::size_t room_on_chip(const GpuPlace& place, int blocks);
// The same of a block that has a multiprocessor by itself.
std::size_t most_room_on_chip(const GpuPlace& place);
// What a solve would keep there.
template <class T>
OnChipRequest on_chip_request(const GpuPlace& place, const LayoutFacts& facts,
                              const SolveSpec& spec);

// Whether a GPU is to make the hierarchy of a matrix with N nonzeros: one process has all of
// it, the constant is its near-null space, and no levels come from outside.
bool gpu_makes_hierarchy(const GpuPlace& place, std::int64_t nonzeros);

// PEs of a matrix that GPUs lay out, at most (layout::kMostParts).
inline constexpr int kMostPesOfLayout = 64;
// Where each PE's rows begin, and the last one's end, if GPUs are to lay a matrix out, provided
// that they have room; none: the host is. `part` and `order` as in make_system.
template <class T>
std::vector<std::int64_t> cuts_for_gpus(const GpuPlace& place, const CsrView<T>& matrix,
                                        std::span<const std::int32_t> part,
                                        std::span<const std::int32_t> order);

template <class T>
struct HostLayout {
  LayoutFacts facts;
  HaloPlan<T> plan;                                // of the PEs here; without rows that GPUs have
  std::vector<PeLayout> pes;                       // likewise
  std::vector<std::vector<std::int32_t>> sources;  // of each PE here: who sends each packet
  std::vector<RemotePlan> far;                     // likewise, where there are several nodes
  PlanReport report;
};

// Teams at once for a number of rows: enough for all multiprocessors. Each has a Cholesky factor in
// memory, 17 KB.
inline std::int64_t inverse_teams(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows, 1, 16384);
}
inline constexpr std::int64_t kFarInverse = 64 * 65 / 2;  // of layout::kMostInverse entries

// Bytes that a GPU is to have free to lay out its share of a matrix: `pes` of the PEs, which have
// these rows and nonzeros, of all nonzeros that there are. `sent`: it has not got them yet.
// `first`: it makes the levels of multigrid.
struct LaidOutShare {
  std::int64_t pes = 1, rows = 0, nonzeros = 0, all_nonzeros = 0;
  bool sent = true, first = false;
};
double room_for_layout(const SystemSpec& spec, const LaidOutShare& share, std::size_t value_bytes);

// As many blocks as a PE has multiprocessors, where there are rows for them, at most `rows` a PE.
int default_blocks(const GpuPlace& place, std::size_t rows);

// `plan` has the rows of the PEs here; `order` as in make_system. Throws InvalidInput where a GPU
// cannot hold its rows.
template <class T>
HostLayout<T> lay_out_by_host(const GpuPlace& place, HaloPlan<T> plan,
                              std::span<const std::int32_t> order);

// The places of a PE's rows: blocks have their boundary rows first.
PrivatePlaces places_of(const PeLayout& layout, std::int32_t rows);

// The steps of that, for rows that GPUs have, too. What there is to know before rows are shared
// among blocks.
template <class T>
void begin_layout(const GpuPlace& place, HaloPlan<T> plan, const Shares& shares, HostLayout<T>& to);
// Halos of blocks, where they pay and can be had: the rows of the blocks, else none. make(reads):
// those of blocks that together read at most N packets.
using MakeHalos = std::function<std::optional<BlockHalos>(std::int64_t reads)>;
template <class T>
std::optional<std::vector<std::vector<BlockPlan>>> use_block_halos(const GpuPlace& place,
                                                                   const Shares& shares,
                                                                   const Peers& peers,
                                                                   HostLayout<T>& to,
                                                                   const MakeHalos& make);
// Who sends each ghost of these blocks, where ghosts travel as packets.
template <class T>
void find_sources(const std::vector<std::vector<BlockPlan>>& plans, const Peers& peers,
                  HostLayout<T>& to);
// Shares of rows that the host has. What the plan and `plans` refer to outlives it.
template <class T>
LayOut host_lay_out(const HaloPlan<T>& plan, const std::vector<std::vector<BlockPlan>>& plans,
                    bool block_halos);
// The shares of all blocks, and what there is to know of them.
template <class T>
void lay_out_pes(const GpuPlace& place, const LayOut& lay_out, HostLayout<T>& to);

}  // namespace cpufree
