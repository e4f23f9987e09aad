#include "cpufree/run/share_layout.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {
// Blocks' parts of private vectors begin at multiples of this: 128 bytes and more, the unit of
// coalesced loads.
constexpr std::int64_t kAlignment = 32;

std::int64_t align(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}
}  // namespace

template <class T>
std::vector<PeLayout> lay_out_shares(const HaloPlan<T>& plan,
                                     std::vector<std::vector<BlockPlan>> plans,
                                     const LayoutOptions& options) {
  std::vector<PeLayout> layouts(plans.size());
  const int blocks = static_cast<int>(plans.front().size());
  for (std::size_t pe = 0; pe < plans.size(); ++pe) {
    if (options.block_halos) layouts[pe].packets = packets_of_rows(plans[pe]);
    layouts[pe].shares.resize(at(blocks));
    for (std::size_t b = 0; b < at(blocks); ++b)
      layouts[pe].shares[b].plan = std::move(plans[pe][b]);
  }
  std::int64_t rows = 0;
  for (const LocalSystem<T>& local : plan.local) rows += local.rows();
  const int all = static_cast<int>(plans.size()) * blocks;
  const int jobs = rows < 50'000 ? 1 : all;  // no threads for a small system
  in_parallel(jobs, [&](int job) {
    for (int k = job; k < all; k += jobs) {
      PeLayout& layout = layouts[at(k / blocks)];
      ShareLayout& share = layout.shares[at(k % blocks)];
      BlockColumns columns;
      const auto source =
          source_of(plan.local[at(k / blocks)], layout, share, columns, options.codes);
      share.shape = shape_of(source, {share.plan.interior, share.plan.boundary});
      share.boundary_slice = (share.plan.interior.size() + kWarp - 1) / kWarp;
    }
  });
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
  return layouts;
}

template <class T>
ShareSource<T> source_of(const LocalSystem<T>& local, const PeLayout& layout,
                         const ShareLayout& share, BlockColumns& columns, Codes codes) {
  columns = layout.columns_of(share);
  return {local, layout.packets.empty() ? nullptr : &columns, codes};
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

std::vector<ShareSize> sizes_of(const std::vector<PeLayout>& layouts) {
  std::vector<ShareSize> sizes;
  for (const PeLayout& pe : layouts)
    for (const ShareLayout& share : pe.shares)
      sizes.push_back({share.plan.rows(), share.shape.size(),
                       static_cast<std::int32_t>(share.plan.reads.size())});
  return sizes;
}

std::int32_t most_rows(const std::vector<ShareSize>& shares) {
  return std::ranges::max_element(shares, {}, &ShareSize::rows)->rows;
}

FastMemory choose_residency(const std::vector<ShareSize>& shares, const Wanted& wanted,
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
  for (kept.vectors = wanted.vectors; kept.vectors > 0; --kept.vectors) {
    best.bytes = resident_bytes(kept, wanted.value_bytes, 0);
    if (best.bytes <= limit) return best;
  }
  return {};
}

template std::vector<PeLayout> lay_out_shares(const HaloPlan<float>&,
                                              std::vector<std::vector<BlockPlan>>,
                                              const LayoutOptions&);
template std::vector<PeLayout> lay_out_shares(const HaloPlan<double>&,
                                              std::vector<std::vector<BlockPlan>>,
                                              const LayoutOptions&);
template ShareSource<float> source_of(const LocalSystem<float>&, const PeLayout&,
                                      const ShareLayout&, BlockColumns&, Codes);
template ShareSource<double> source_of(const LocalSystem<double>&, const PeLayout&,
                                       const ShareLayout&, BlockColumns&, Codes);
template std::vector<std::int32_t> private_rows(const LocalSystem<float>&, const PeLayout&);
template std::vector<std::int32_t> private_rows(const LocalSystem<double>&, const PeLayout&);

}  // namespace cpufree
