#include "cpufree/solvers/gpu/layout/layouts.hpp"

#include <algorithm>
#include <bit>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"

namespace cpufree {

namespace {

using gpu::DeviceArray;
using gpu::OnDevice;
using Int32s = DeviceArray<std::int32_t>;
using Int64s = DeviceArray<std::int64_t>;

// The ranges of rows of all shares, their slices one behind the other; a share's interior first.
std::vector<layout::SliceRange> ranges_of(const PeLayout& pe, const Codes& codes = {}) {
  std::vector<layout::SliceRange> ranges;
  std::int32_t first = 0;
  for (std::size_t b = 0; b < pe.shares.size(); ++b)
    for (const LaneRows& rows : {pe.shares[b].interior, pe.shares[b].boundary}) {
      ranges.push_back({rows, codes, first, static_cast<std::int32_t>(b)});
      first += rows.slices();
    }
  return ranges;
}

std::int64_t slices_of(const std::vector<layout::SliceRange>& ranges) {
  return ranges.back().first + std::int64_t{ranges.back().rows.slices()};
}

// The share of the slices from `next` on, which it passes.
WarpSliceShape shape_of_share(const ShareLayout& share, const std::vector<WarpSlice>& slices,
                              const std::vector<std::int64_t>& beyond,
                              const std::vector<std::int64_t>& lengths, std::size_t first,
                              std::size_t first_tails, std::vector<double> dictionary, bool single,
                              std::int64_t value_bytes) {
  WarpSliceShape shape;
  shape.single = single;
  shape.dictionary = std::move(dictionary);
  std::size_t s = first, tails = first_tails;
  for (const LaneRows& rows : {share.interior, share.boundary})
    for (std::int32_t k = 0; k < rows.slices(); ++k, ++s) {
      std::int64_t of_lanes[kSliceRows] = {};
      if (beyond[s] > 0 || single)
        std::copy_n(&lengths[at(kSliceRows) * tails++], kSliceRows, of_lanes);
      shape.append(slices[s], rows.of_slice(k), of_lanes, beyond[s], value_bytes);
    }
  return shape;
}

}  // namespace

template <class T>
GpuLayouts<T>::GpuLayouts(std::vector<GpuRows<T>> rows) : rows_(std::move(rows)) {}

template <class T>
Shares GpuLayouts<T>::shares(const HaloPlan<T>& halos) const {
  Shares shares;
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    const GpuRows<T>& mine = rows_[k];
    PlanReport::Pe pe{mine.rows,        mine.nnz, halos.local[k].ghosts, mine.rows - mine.interior,
                      mine.ghost_reads, {}};
    pe.neighbours = halos.local[k].neighbours;
    shares.push_back(std::move(pe));
  }
  return shares;
}

template <class T>
std::vector<std::vector<BlockPlan>> GpuLayouts<T>::block_plans(const HaloPlan<T>& halos, int blocks,
                                                               Awaited awaited) {
  const int pes = static_cast<int>(rows_.size());
  std::vector<std::vector<BlockPlan>> plans(rows_.size());
  in_parallel(pes, [&](int k) {
    const GpuRows<T>& mine = rows_[at(k)];
    const OnDevice here(mine.device());
    const auto costs = [&](std::int32_t begin, std::int32_t end) {
      const std::int64_t count = (end - begin + kSliceRows - 1) / kSliceRows;
      const Int64s cost = Int64s::uninitialised(mine.device(), at(count));
      launch_layout(layout::CostSlices<T>{mine.ptr.data(), begin, end, cost.data()}, count,
                    mine.stream);
      return fetch(mine.stream, cost.data(), at(count));
    };
    const PaddedRows padded(mine.interior, mine.rows, costs(0, mine.interior),
                            costs(mine.interior, mine.rows));
    plans[at(k)] = share_rows(padded, mine.interior, mine.rows, blocks);
  });
  if (awaited == Awaited::everybody) {
    await_everybody(halos, plans, blocks);
    return plans;
  }
  const BoundaryRanges boundaries = gather_boundaries(plans, AllHere(rows_.size()));
  std::vector<BlockReads> reads(at(pes) * at(blocks));
  in_parallel(pes, [&](int k) {
    const GpuRows<T>& mine = rows_[at(k)];
    const OnDevice here(mine.device());
    std::vector<std::int32_t> interior, boundary;
    for (const BlockPlan& block : plans[at(k)]) {
      interior.push_back(block.interior.end);
      boundary.push_back(block.boundary.end);
    }
    const int slots = pes * blocks;
    const Int32s interior_end{mine.stream, interior}, boundary_end{mine.stream, boundary};
    const Int32s source{mine.stream, ghost_sources(halos.local[at(k)], boundaries)};
    const DeviceArray<std::uint32_t> local{mine.stream, at(blocks) * at(blocks)};
    const DeviceArray<std::uint32_t> remote{mine.stream, at(blocks) * at(slots)};
    launch_layout(
        layout::FindPartners<T>{mine.ptr.data(), mine.col.data(), mine.rows, mine.interior, blocks,
                                slots, interior_end.data(), boundary_end.data(), source.data(),
                                local.data(), remote.data()},
        mine.rows, mine.stream);
    const auto of_pe = fetch(mine.stream, local.data(), local.size());
    const auto of_others = fetch(mine.stream, remote.data(), remote.size());
    for (int b = 0; b < blocks; ++b) {
      BlockReads& block = reads[at(k) * at(blocks) + at(b)];
      for (int other = 0; other < blocks; ++other)
        block.local.push_back(of_pe[at(b) * at(blocks) + at(other)] != 0 ? 1 : 0);
      for (int slot = 0; slot < slots; ++slot)
        if (of_others[at(b) * at(slots) + at(slot)] != 0) block.remote.push_back(slot);
    }
  });
  set_partners(plans, reads);
  return plans;
}

// Where some rows of PE k begin.
template <class T>
std::vector<std::int64_t> GpuLayouts<T>::begins_of(std::size_t k,
                                                   const std::vector<std::int32_t>& rows) {
  const GpuRows<T>& mine = rows_[k];
  const Int32s list{mine.stream, rows};
  const Int64s to = Int64s::uninitialised(mine.device(), rows.size());
  const auto count = static_cast<std::int64_t>(rows.size());
  launch_layout(layout::TakeNumbers<T>{mine.ptr.data(), list.data(), count, to.data()}, count,
                mine.stream);
  return fetch(mine.stream, to.data(), rows.size());
}

template <class T>
void GpuLayouts<T>::choose_lanes(std::size_t k, PeLayout& pe, const LayoutOptions& options) {
  std::vector<std::int32_t> ends;
  for (const ShareLayout& share : pe.shares)
    for (const RowRange rows : {share.plan.interior, share.plan.boundary}) {
      ends.push_back(rows.begin);
      ends.push_back(rows.end);
    }
  const auto begins = options.spread ? std::vector<std::int64_t>(ends.size()) : begins_of(k, ends);
  std::size_t next = 0;
  values_[k].entries.assign(pe.shares.size(), 0);
  for (ShareLayout& share : pe.shares)
    for (auto [from, to] : {std::pair(&share.plan.interior, &share.interior),
                            std::pair(&share.plan.boundary, &share.boundary)}) {
      const std::int64_t entries = begins[next + 1] - begins[next];
      *to = lanes_for(share.plan, *from, entries, options);
      values_[k].entries[next / 4] += entries;
      next += 2;
    }
  if (options.spread) return;
  choose_runs(k, pe);
}

template <class T>
void GpuLayouts<T>::choose_runs(std::size_t k, PeLayout& pe) {
  const GpuRows<T>& mine = rows_[k];
  const Ranges ranges = ranges_of(pe);
  if (std::ranges::none_of(ranges, [](const auto& r) { return r.rows.lanes_log2 > 0; })) return;
  const DeviceArray<layout::SliceRange> there{mine.stream, ranges};
  const DeviceArray<std::uint32_t> in_runs{mine.stream, ranges.size()};
  launch_layout(layout::CountRuns<T>{local(k), there.data(), static_cast<int>(ranges.size()),
                                     slices_of(ranges), in_runs.data()},
                slices_of(ranges), mine.stream);
  const auto found = fetch(mine.stream, in_runs.data(), ranges.size());
  std::size_t next = 0;
  for (ShareLayout& share : pe.shares)
    for (LaneRows* rows : {&share.interior, &share.boundary}) {
      const auto runs = static_cast<std::int32_t>(found[next++]);
      if (rows->lanes_log2 > 0) rows->run = usual_run(runs, rows->size());
    }
}

// The dictionaries of the blocks of PE k, numbered by the first entries that have each value.
template <class T>
void GpuLayouts<T>::find_values(std::size_t k, const PeLayout& pe) {
  const GpuRows<T>& mine = rows_[k];
  Values& values = values_[k];
  const Ranges ranges = ranges_of(pe);
  const DeviceArray<layout::SliceRange> there{mine.stream, ranges};
  const int blocks = static_cast<int>(pe.shares.size());
  values.table = DeviceArray<layout::ValueTable>::uninitialised(mine.device(), pe.shares.size());
  launch_layout(layout::ClearTables<T>{values.table.data(), blocks},
                std::int64_t{blocks} * kValuePlaces, mine.stream);
  launch_layout(layout::FindValues<T>{local(k), there.data(), static_cast<int>(ranges.size()),
                                      slices_of(ranges), values.table.data()},
                slices_of(ranges) * kSliceRows, mine.stream);
  const auto found = DeviceArray<T>::uninitialised(mine.device(), kMostValues * at(blocks));
  const Int32s count = Int32s::uninitialised(mine.device(), at(blocks));
  launch_layout(layout::NumberValues<T>{values.table.data(), blocks, found.data(), count.data()},
                std::int64_t{blocks} * kValuePlaces, mine.stream);
  const auto counts = fetch(mine.stream, count.data(), at(blocks));
  const auto all = fetch(mine.stream, found.data(), found.size());
  values.dictionary.assign(at(blocks), {});
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(b * kMostValues);
    if (values.entries[b] > 0) values.dictionary[b].assign(first, first + counts[b]);
  }
}

template <class T>
auto GpuLayouts<T>::shape(std::size_t k, const Ranges& ranges) -> Shapes {
  const GpuRows<T>& mine = rows_[k];
  const std::int64_t slices = slices_of(ranges);
  const int count = static_cast<int>(ranges.size());
  const DeviceArray<layout::SliceRange> there{mine.stream, ranges};
  const auto slice = DeviceArray<WarpSlice>::uninitialised(mine.device(), at(slices));
  const Int64s beyond = Int64s::uninitialised(mine.device(), at(slices));
  launch_layout(
      layout::ShapeSlices<T>{local(k), there.data(), count, slices, slice.data(), beyond.data()},
      slices, mine.stream);
  Shapes shapes{fetch(mine.stream, slice.data(), at(slices)),
                fetch(mine.stream, beyond.data(), at(slices)),
                {},
                {}};
  for (std::size_t s = 0; s < shapes.beyond.size(); ++s)
    if (shapes.beyond[s] > 0 || ranges.front().codes.single)
      shapes.with_tails.push_back(static_cast<std::int32_t>(s));
  const auto tails = static_cast<std::int64_t>(shapes.with_tails.size());
  const Int32s list{mine.stream, shapes.with_tails};
  const Int64s lengths = Int64s::uninitialised(mine.device(), at(tails * kSliceRows));
  launch_layout(
      layout::CountLanes<T>{local(k), there.data(), count, list.data(), tails, lengths.data()},
      tails * kSliceRows, mine.stream);
  shapes.lengths = fetch(mine.stream, lengths.data(), at(tails * kSliceRows));
  return shapes;
}

template <class T>
void GpuLayouts<T>::make_shapes(std::size_t k, PeLayout& pe, const LayoutOptions& options) {
  const Ranges ranges = ranges_of(pe, options.codes);
  const bool coded = options.codes.columns && options.codes.values;
  if (coded && values_[k].dictionary.empty()) find_values(k, pe);
  const Shapes found = shape(k, ranges);
  constexpr std::int64_t kSlices = 4000;  // that are worth a thread
  const auto threads =
      static_cast<int>(std::min<std::int64_t>(slices_of(ranges) / kSlices + 1, available_cores()));
  const auto nothing = [] { return 0; };
  in_parallel(static_cast<int>(pe.shares.size()), threads, nothing, [&](int, int b) {
    const std::size_t first = at(ranges[2 * at(b)].first);
    const auto tails = std::ranges::lower_bound(found.with_tails, static_cast<std::int32_t>(first));
    pe.shares[at(b)].shape =
        shape_of_share(pe.shares[at(b)], found.slice, found.beyond, found.lengths, first,
                       at(tails - found.with_tails.begin()),
                       coded ? values_[k].dictionary[at(b)] : std::vector<double>{},
                       options.codes.single, sizeof(T));
  });
}

// Shares that runs here and there keep from being simple, without runs.
template <class T>
void GpuLayouts<T>::make_simple(std::size_t k, PeLayout& pe, const LayoutOptions& options) {
  PeLayout some;
  std::vector<std::size_t> which;
  for (std::size_t b = 0; b < pe.shares.size(); ++b)
    if (pe.shares[b].shape.may_be_simple()) {
      some.shares.push_back(pe.shares[b]);
      which.push_back(b);
    }
  if (which.empty()) return;
  Codes codes = options.codes;
  codes.runs = false;
  const Ranges ranges = ranges_of(some, codes);
  const Shapes found = shape(k, ranges);
  for (std::size_t b = 0; b < which.size(); ++b) {
    const std::size_t first = at(ranges[2 * b].first);
    const auto tails = std::ranges::lower_bound(found.with_tails, static_cast<std::int32_t>(first));
    WarpSliceShape& old = pe.shares[which[b]].shape;
    auto simple =
        shape_of_share(some.shares[b], found.slice, found.beyond, found.lengths, first,
                       at(tails - found.with_tails.begin()), old.dictionary, old.single, sizeof(T));
    if (simple.simple() != Simple::no) old = std::move(simple);
  }
}

template <class T>
std::vector<PeLayout> GpuLayouts<T>::lay_out(std::vector<std::vector<BlockPlan>> plans,
                                             const LayoutOptions& options) {
  auto layouts = begin_layouts(std::move(plans), false);
  values_.resize(rows_.size());
  in_parallel(static_cast<int>(layouts.size()), [&](int k) {
    const OnDevice here(rows_[at(k)].device());
    choose_lanes(at(k), layouts[at(k)], options);
    make_shapes(at(k), layouts[at(k)], options);
    make_simple(at(k), layouts[at(k)], options);
  });
  place_shares(layouts);
  return layouts;
}

template <class T>
TailsOnGpu<T> GpuLayouts<T>::fill_slices(std::size_t k, const PeLayout& pe, const WarpSlice* slices,
                                         std::byte* bytes) {
  const GpuRows<T>& mine = rows_[k];
  const OnDevice here(mine.device());
  const Ranges ranges = ranges_of(pe);
  const int range_count = static_cast<int>(ranges.size());
  std::vector<layout::BlockPlace> places;
  std::vector<std::int32_t> with_tails;
  std::vector<std::int64_t> tail_ptr;
  std::int32_t s = 0;
  for (const ShareLayout& share : pe.shares) {
    places.push_back(
        {share.first_unit, share.shape.dictionary.empty() ? 0 : 1, share.shape.single ? 1 : 0});
    for (const WarpSlice& slice : share.shape.slice) {
      if (slice.tails != -1) with_tails.push_back(s);
      ++s;
    }
    for (const std::int64_t tail : share.shape.tail_ptr)
      tail_ptr.push_back(share.first_tail_entry + tail);
  }
  const DeviceArray<layout::SliceRange> there{mine.stream, ranges};
  const DeviceArray<layout::BlockPlace> place{mine.stream, places};
  gpu::clear(bytes, at(pe.units * kSliceUnit), mine.stream);
  const layout::ValueTable* table = k < values_.size() ? values_[k].table.data() : nullptr;
  launch_layout(layout::FillSlices<T>{local(k), there.data(), range_count, pe.slices, slices,
                                      place.data(), table, bytes},
                pe.slices * kSliceRows, mine.stream);
  TailsOnGpu<T> beside;
  beside.tail_col = Int32s::uninitialised(mine.device(), at(pe.tail_entries));
  beside.tail_val = DeviceArray<T>::uninitialised(mine.device(), at(pe.tail_entries));
  const Int32s list{mine.stream, with_tails};
  const Int64s tails{mine.stream, tail_ptr};
  const auto count = static_cast<std::int64_t>(with_tails.size());
  launch_layout(
      layout::FillTails<T>{local(k), there.data(), range_count, slices, list.data(), count,
                           tails.data(), beside.tail_col.data(), beside.tail_val.data()},
      count * kSliceRows, mine.stream);
  mine.stream.wait("the slices of a matrix");
  return beside;
}

template <class T>
BesideSlicesOnGpu<T> GpuLayouts<T>::fill(std::size_t k, const PeLayout& pe, const WarpSlice* slices,
                                         std::byte* bytes) {
  const GpuRows<T>& mine = rows_[k];
  const OnDevice here(mine.device());
  BesideSlicesOnGpu<T> beside;
  static_cast<TailsOnGpu<T>&>(beside) = fill_slices(k, pe, slices, bytes);
  std::vector<layout::PrivateRange> private_ranges;
  for (const ShareLayout& share : pe.shares)
    private_ranges.push_back({share.first_private, share.plan.boundary, share.plan.interior});
  const DeviceArray<layout::PrivateRange> of_blocks{mine.stream, private_ranges};
  beside.global_row = Int32s::uninitialised(mine.device(), at(pe.private_rows));
  beside.inverse = DeviceArray<T>::uninitialised(mine.device(), at(pe.private_rows));
  launch_layout(
      layout::FillPrivate<T>{as_they_are(k), mine.names(), mine.first, of_blocks.data(),
                             static_cast<int>(pe.shares.size()), pe.private_rows,
                             beside.global_row.data(), beside.inverse.data(), mine.facts.data()},
      summing_threads(pe.private_rows), mine.stream);
  beside.bound = std::bit_cast<double>(fetch(mine.stream, mine.facts.data(), 1)[0].bound);
  return beside;
}

template class GpuLayouts<float>;
template class GpuLayouts<double>;

}  // namespace cpufree
