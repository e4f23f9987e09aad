#include "cpufree/solvers/gpu/share_layout.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/machine.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/cutting.hpp"

namespace cpufree {

namespace {
// Blocks' parts of private vectors begin at multiples of this: 128 bytes and more, the unit of
// coalesced loads.
constexpr std::int64_t kAlignment = 32;

// Rows of a block with packets are sorted by length, and a block has few turns of its warps for
// long and short ones to even out. One with more rows than threads has warps with twice the work of
// others, if 32 rows go to each at a time; of eight at a time that four lanes share, all have about
// the same. What is lost is in loops over vectors, which leave three threads of four idle: much
// where blocks work in place and have thousands of rows (audikw_1: 246 us an iteration of prcg, 267
// with eight rows), little here (bmwcra_1: 47.0 and 40.9, with 16 rows 44.0; crankseg_2: 47.8 and
// 39.6, with 16 rows 46.1; one H200). With no more rows than threads nothing is gained, either
// (crankseg_1: 31.7 and 32.6).
constexpr std::int32_t kThinWithPackets = 2;

std::int64_t align(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}
}  // namespace

std::int64_t chunks_in_turn(const LaneRows& rows, std::int64_t entries, int threads) {
  if (rows.size() == 0) return 0;
  const std::int64_t of_row = (entries + rows.size() - 1) / rows.size();
  const std::int64_t of_lane = ((of_row - 1) >> rows.lanes_log2) + 1;
  const std::int64_t at_once = threads >> rows.thin;
  return (rows.size() + at_once - 1) / at_once * rows.slices_in_turn() *
         ((of_lane + kChunkWidth - 1) / kChunkWidth);
}

LaneRows rows_on_lanes(RowRange rows, std::int64_t entries, int threads, std::int32_t lanes_log2) {
  LaneRows best{rows};
  if (lanes_log2 < 0)
    for (lanes_log2 = 0; lanes_log2 < kMostLanesLog2 &&
                         entries >= (std::int64_t{rows.size()} * kChunkWidth << (lanes_log2 + 1));)
      ++lanes_log2;
  best.lanes_log2 = lanes_log2;
  std::int64_t least = chunks_in_turn(best, entries, threads);
  for (LaneRows other = best; ++other.thin <= lanes_log2 && rows.size() << other.thin <= threads;)
    if (const auto chunks = chunks_in_turn(other, entries, threads); chunks < least)
      best = other, least = chunks;
  return best;
}

// Those of a level of multigrid depend on the number of rows alone: all of its matrices have the
// same row in the same thread.
LaneRows spread_rows(RowRange rows, int threads) {
  LaneRows spread{rows};
  while (spread.thin < kMostLanesLog2 && rows.size() << (spread.thin + 1) <= threads) ++spread.thin;
  spread.lanes_log2 = spread.thin;
  return spread;
}

LaneRows lanes_for(const BlockPlan& block, RowRange rows, std::int64_t entries,
                   const LayoutOptions& options) {
  if (options.spread) return spread_rows(rows, options.threads);
  LaneRows shared = rows_on_lanes(rows, entries, options.threads, options.lanes_log2);
  if (options.block_halos && block.rows() > options.threads)
    shared.thin = std::min(shared.lanes_log2, kThinWithPackets);
  return shared;
}

std::vector<PeLayout> begin_layouts(std::vector<std::vector<BlockPlan>> plans, bool block_halos) {
  std::vector<PeLayout> layouts(plans.size());
  for (std::size_t pe = 0; pe < plans.size(); ++pe) {
    if (block_halos) layouts[pe].packets = packets_of_rows(plans[pe]);
    for (BlockPlan& plan : plans[pe]) layouts[pe].shares.emplace_back().plan = std::move(plan);
  }
  return layouts;
}

void place_shares(std::vector<PeLayout>& layouts) {
  for (PeLayout& pe : layouts)
    for (ShareLayout& share : pe.shares) {
      const WarpSlicesSize size = share.shape.size();
      share.first_unit = std::exchange(pe.units, pe.units + size.units);
      share.first_slice = std::exchange(pe.slices, pe.slices + size.slices);
      share.first_tail = std::exchange(pe.tails, pe.tails + size.tails);
      share.first_tail_entry = std::exchange(pe.tail_entries, pe.tail_entries + size.tail_entries);
      share.first_value = std::exchange(pe.values, pe.values + size.values);
      share.first_private =
          std::exchange(pe.private_rows, pe.private_rows + align(share.plan.rows()));
      share.first_operand = std::exchange(
          pe.operand_rows,
          pe.operand_rows +
              align(share.plan.rows() + static_cast<std::int64_t>(share.plan.reads.size())));
    }
}

namespace {
// The column that each packet of a PE has: ghosts, then the boundary rows of its blocks.
template <class T>
std::vector<std::int32_t> columns_of_packets(const LocalSystem<T>& local,
                                             const std::vector<BlockPlan>& blocks) {
  std::vector<std::int32_t> columns(at(local.ghosts));
  std::iota(columns.begin(), columns.end(), local.rows());
  for (const BlockPlan& block : blocks)
    for (std::int32_t row = block.boundary.begin; row < block.boundary.end; ++row)
      columns.push_back(row);
  return columns;
}
}  // namespace

template <class T>
std::vector<SharedNames> name_entries(const HaloPlan<T>& plan,
                                      const std::vector<std::vector<BlockPlan>>& plans) {
  std::vector<std::vector<std::int32_t>> columns;
  std::vector<std::shared_ptr<EntryNames>> names;
  for (std::size_t pe = 0; pe < plans.size(); ++pe) {
    columns.push_back(columns_of_packets(plan.local[pe], plans[pe]));
    names.push_back(std::make_shared<EntryNames>(plan.local[pe].col.size()));
  }
  for_blocks(plan, static_cast<int>(plans.front().size()), [&](int pe, int first, int end) {
    const LocalSystem<T>& local = plan.local[at(pe)];
    // Of other blocks' columns, those that this one reads are set: it looks at no others.
    PageVector<std::int32_t> name(at(local.rows()) + at(local.ghosts));
    for (int b = first; b < end; ++b) {
      const BlockPlan& block = plans[at(pe)][at(b)];
      const RowRange own{block.boundary.begin, block.interior.end};
      std::int32_t next = own.size();
      for (const std::int32_t packet : block.reads) name[at(columns[at(pe)][at(packet)])] = next++;
      for (auto k = local.row_ptr[at(own.begin)]; k < local.row_ptr[at(own.end)]; ++k) {
        const std::int32_t column = local.col[at(k)];
        const bool mine = column >= own.begin && column < own.end;
        (*names[at(pe)])[at(k)] = mine ? column - own.begin : name[at(column)];
      }
    }
  });
  return {names.begin(), names.end()};
}

template <class T>
std::vector<PeLayout> lay_out_shares(const HaloPlan<T>& plan,
                                     std::vector<std::vector<BlockPlan>> plans,
                                     const LayoutOptions& options) {
  const int blocks = static_cast<int>(plans.front().size());
  auto layouts = begin_layouts(std::move(plans), options.block_halos);
  for (std::size_t pe = 0; pe < options.names.size(); ++pe) layouts[pe].names = options.names[pe];
  std::int64_t entries = 0;
  for (const LocalSystem<T>& local : plan.local) entries += local.row_ptr.back();
  const int all = static_cast<int>(layouts.size()) * blocks;
  const int jobs = entries < 100'000 ? 1 : all;  // no threads for a small system
  in_parallel(jobs, [&](int job) {
    for (int k = job; k < all; k += jobs) {
      PeLayout& layout = layouts[at(k / blocks)];
      ShareLayout& share = layout.shares[at(k % blocks)];
      BlockColumns columns;
      const auto source =
          source_of(plan.local[at(k / blocks)], layout, share, columns, options.codes);
      const auto on_lanes = [&](RowRange range) {
        const auto& ptr = source.local.row_ptr;
        LaneRows shared =
            lanes_for(share.plan, range, ptr[at(range.end)] - ptr[at(range.begin)], options);
        if (!options.spread && shared.lanes_log2 > 0) shared.run = usual_run(source, range);
        return shared;
      };
      share.interior = on_lanes(share.plan.interior);
      share.boundary = on_lanes(share.plan.boundary);
      share.shape = shape_of(source, {share.interior, share.boundary});
    }
  });
  place_shares(layouts);
  return layouts;
}

namespace {
// What a warp sums of a slice (busiest_warp). Measured on one H200, prcg, matrices of 66 to 186
// entries a row on chip: 12 ns an entry, and 450 ns a slice.
std::int64_t entries_of(const WarpSliceShape& shape, const WarpSlice& slice) {
  constexpr std::int64_t kToBegin = 36;
  std::int64_t sum = slice.width + kToBegin;
  if (slice.tails < 0) return sum;
  const std::int64_t* const tail = shape.tail_ptr.data() + slice.tails;
  for (int l = 0; l < kSliceRows; ++l)
    if (tail[l + 1] > tail[l])
      sum += (tail[l + 1] - tail[l] + kSliceRows - 1) / kSliceRows + kToBegin;
  return sum;
}
}  // namespace

std::int64_t busiest_warp(const std::vector<PeLayout>& layouts, int threads) {
  std::int64_t most = 0;
  std::vector<std::int64_t> warps(at(threads / kSliceRows));
  for (const PeLayout& pe : layouts)
    for (const ShareLayout& share : pe.shares) {
      std::ranges::fill(warps, 0);
      std::size_t s = 0;
      for (const LaneRows& range : {share.interior, share.boundary})
        for (std::int32_t k = 0; k < range.slices(); ++k)
          warps[at(k / range.slices_in_turn()) % warps.size()] +=
              entries_of(share.shape, share.shape.slice[s++]);
      most = std::max(most, *std::ranges::max_element(warps));
    }
  return most;
}

template <class T>
ShareSource<T> source_of(const LocalSystem<T>& local, const PeLayout& layout,
                         const ShareLayout& share, BlockColumns& columns, Codes codes) {
  columns = layout.columns_of(share);
  return {local, layout.packets.empty() ? nullptr : &columns, codes,
          layout.names ? layout.names->data() : nullptr};
}

template <class T>
std::vector<std::int32_t> private_rows(const LocalSystem<T>& local, const PeLayout& layout) {
  std::vector<std::int32_t> rows(at(layout.private_rows), -1);
  for (const ShareLayout& share : layout.shares) {
    auto to = rows.begin() + share.first_private;
    for (const RowRange range : {share.plan.boundary, share.plan.interior})
      to = std::copy(local.global_row.begin() + range.begin, local.global_row.begin() + range.end,
                     to);
  }
  return rows;
}

std::vector<Chunk> cut_into_chunks(const PeLayout& layout, std::int64_t most) {
  std::vector<Chunk> chunks;
  for (std::size_t s = 0; s < layout.shares.size(); ++s) {
    const WarpSliceShape& shape = layout.shares[s].shape;
    for (std::size_t k = 0; k < shape.slice.size();) {
      const std::int64_t begin = shape.slice[k].first;
      Chunk chunk{s, k, k + 1, layout.shares[s].first_unit + begin, 0};
      while (chunk.end < shape.slice.size() && shape.end_of(chunk.end) - begin <= most) ++chunk.end;
      chunk.units = shape.end_of(chunk.end - 1) - begin;
      k = chunk.end;
      if (chunk.units > 0) chunks.push_back(chunk);
    }
  }
  return chunks;
}

template <class T>
std::vector<ShareSize> sizes_of(const std::vector<PeLayout>& layouts) {
  std::vector<ShareSize> sizes;
  for (const PeLayout& pe : layouts)
    for (const ShareLayout& share : pe.shares) {
      sizes.push_back({share.plan.rows(), share.shape.size(),
                       static_cast<std::int32_t>(share.plan.reads.size()),
                       std::max(share.interior.turns(), share.boundary.turns()),
                       slot_bytes<T>(share.shape)});
    }
  return sizes;
}

bool all_simple(const std::vector<ShareSize>& shares) {
  return std::ranges::all_of(shares, [](const ShareSize& share) {
    return share.matrix.simple != Simple::no && share.matrix.values == 0;
  });
}

std::int32_t most_rows(const std::vector<ShareSize>& shares) {
  return std::ranges::max_element(shares, {}, &ShareSize::rows)->rows;
}

namespace {
// Slots of a ring that keep memory busy while one of them is read. More take room from the first
// cache, on which the products live: 60.8 us without rings, 46.4 with 2 slots, 51.1 with 4
// (crankseg_1, one H200, cg).
constexpr int kUsualSlots = 2;
// Bytes on chip from which on another vector does not pay where values are coded: it takes from the
// L1 cache, of which 60 KB are left, 28 beyond. Of such a product, which is bound by what it
// looks up, that is worth more: in a trial build on one H200 an iteration of cg took 225 us with
// one vector of Flan_1565 and 207 without, 95 with two of ldoor and 83 with one (but 255 with one
// of Serena, whose values are as they are, and 274 without).
constexpr std::size_t kRoomBesideCodes = 185'000;
// Rows of a block from which on it pays to fetch vectors ahead: several rounds of its threads.
constexpr std::int32_t kLongVectors = 2048;

// Whether vectors are read from far memory often enough to be fetched ahead, where the largest
// block has that number of rows: from the L2 cache, where they are otherwise, that is one more
// thing to do (ecology2, 41 MB in all: 20.0 us an iteration of prcg without, 22.4 with it; tmt_sym,
// 58 MB: 27.7 and 29.4; G3_circuit, 113 MB: 66.6 and 64.8; poisson3d of 128^3 rows, 103 MB: 84.2
// and 76.7; one H200).
bool prefetch_pays(const Residency& kept, const OnChipRequest& wanted, std::int32_t rows) {
  const int far = wanted.vectors - kept.vectors + (kept.direction ? 0 : 1);
  return rows >= kLongVectors && far > 0 &&
         wanted.matrix_bytes + (far + 1) * wanted.vector_bytes > wanted.cached_bytes;
}

// Rings for all blocks, as large as wanted. None if they do not fit: no slots.
RingShape ring_within(const std::vector<ShareSize>& shares, const OnChipRequest& wanted,
                      std::size_t limit) {
  RingShape ring;
  for (const ShareSize& share : shares) {
    ring.warps = std::max(ring.warps, std::min(share.warps, wanted.warps));
    ring.slot_bytes = std::max(ring.slot_bytes, share.slot_bytes);
  }
  ring.passing = wanted.passing;
  ring.slots = wanted.slots < 0 ? kUsualSlots : wanted.slots;
  while (ring.slots > 0 && ring_bytes(ring) > limit) --ring.slots;
  return ring.slots > 1 ? ring : RingShape{};
}

// Rows that all blocks have at most, but for one of 32.
std::int32_t usual_rows(const std::vector<ShareSize>& shares) {
  std::vector<std::int32_t> rows;
  for (const ShareSize& share : shares) rows.push_back(share.rows);
  const auto usual = rows.end() - 1 - static_cast<std::ptrdiff_t>(rows.size() / 32);
  std::ranges::nth_element(rows, usual);
  return *usual;
}

// As many vectors as fit, at most `vectors`. A copy of p saves one or two reads an iteration, a
// private vector two or three accesses: it is the first to make room. With halos of blocks it is p
// itself, from which products read.
FastMemory keep_vectors(Residency kept, const OnChipRequest& wanted, std::size_t limit,
                        std::int32_t rows, int vectors) {
  const bool spared = kept.reads == 0;
  kept.scratch = false;
  for (kept.vectors = std::min(wanted.vectors, vectors); kept.vectors > 0; --kept.vectors)
    for (const bool direction : {true, false}) {
      kept.direction = direction || !spared;
      kept.ring.kept = kept.vectors == wanted.vectors ? wanted.kept : 0;
      kept.ring.passing = wanted.passing || kept.ring.kept > 0;
      kept.prefetch = prefetch_pays(kept, wanted, rows);
      const std::size_t bytes = resident_bytes(kept, wanted.value_bytes, 0);
      if (bytes <= limit) return {kept, bytes};
    }
  Residency none;
  none.values = kept.values;
  none.ring = kept.ring;
  none.ring.kept = 0;
  none.ring.passing = wanted.passing;
  none.prefetch = prefetch_pays(none, wanted, rows);
  return {none, resident_bytes(none, wanted.value_bytes, 0)};
}
}  // namespace

FastMemory choose_residency(const std::vector<ShareSize>& shares, const OnChipRequest& wanted,
                            std::size_t limit, int mode) {
  if (mode == 0) return {};
  const auto in_16_bytes = static_cast<std::int32_t>(16 / wanted.value_bytes);
  const auto padded = [&](std::int32_t count) {
    return (count + in_16_bytes - 1) / in_16_bytes * in_16_bytes;
  };
  FastMemory best;
  Residency& kept = best.residency;
  kept.stride = padded(std::max(most_rows(shares), 1));
  kept.direction = kept.matrix = true;
  for (const ShareSize& share : shares) {
    kept.reads = std::max(kept.reads, share.reads);
    kept.operand = std::max(kept.operand, padded(share.rows + share.reads));
  }
  kept.operand = std::max(kept.operand, kept.stride);
  // With the matrix, where it fits; else the scratch vector makes room, or b, the last of the
  // vectors: it is read only where b - A x is computed.
  for (const int fewer : {0, 1})
    for (const bool scratch : {wanted.scratch && kept.reads > 0, false}) {
      kept.vectors = wanted.vectors - fewer;
      kept.scratch = scratch;
      best.bytes = 0;
      for (const ShareSize& share : shares)
        best.bytes = std::max(
            best.bytes, resident_bytes(kept, wanted.value_bytes,
                                       resident_matrix_bytes(share.matrix, wanted.value_bytes)));
      if (mode < 0 && best.bytes <= limit) return best;
    }
  kept.matrix = false;
  for (const ShareSize& share : shares) kept.values = std::max(kept.values, share.matrix.values);
  kept.ring = ring_within(shares, wanted, limit);
  if (kept.ring.slots > 0 && kept.values > 0) limit = std::min(limit, kRoomBesideCodes);
  const FastMemory of_all = keep_vectors(kept, wanted, limit, most_rows(shares), wanted.vectors);
  if (kept.reads > 0 || of_all.residency.vectors > 0) return of_all;
  // One at least, if it takes that a few blocks, those with the most rows, keep none. (More are not
  // worth the L1 cache: audikw_1 took 249 us an iteration of prcg with one, and 263 with two.)
  kept.stride = kept.operand = padded(std::max(usual_rows(shares), 1));
  return keep_vectors(kept, wanted, limit, most_rows(shares), 1);
}

#define CPUFREE_SHARES(T)                                                                       \
  template std::vector<SharedNames> name_entries(const HaloPlan<T>&,                            \
                                                 const std::vector<std::vector<BlockPlan>>&);   \
  template std::vector<PeLayout> lay_out_shares(                                                \
      const HaloPlan<T>&, std::vector<std::vector<BlockPlan>>, const LayoutOptions&);           \
  template ShareSource<T> source_of(const LocalSystem<T>&, const PeLayout&, const ShareLayout&, \
                                    BlockColumns&, Codes);                                      \
  template std::vector<ShareSize> sizes_of<T>(const std::vector<PeLayout>&);                    \
  template std::vector<std::int32_t> private_rows(const LocalSystem<T>&, const PeLayout&);
CPUFREE_SHARES(float)
CPUFREE_SHARES(double)

}  // namespace cpufree
