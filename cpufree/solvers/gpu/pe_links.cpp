// Where the blocks of a PE find their shares and their factors, and whom they wait for.
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/engines/gpu_p2p/launch.hpp"
#include "cpufree/solvers/gpu/layout/staging.hpp"
#include "cpufree/solvers/gpu/pe_memory.hpp"

namespace cpufree {

namespace {

// The chunks of the blocks' shares, for their rings. Returns where each block's begin.
template <class T>
std::vector<std::size_t> upload_feeds(PeMemory<T>& pe, int device, const PeLayout& layout,
                                      int warps) {
  std::vector<FeedItem> items;
  std::vector<std::uint32_t> first;
  std::vector<std::size_t> begin;
  std::vector<SliceFeed> feeds(layout.shares.size());
  in_parallel(static_cast<int>(feeds.size()), [&](int b) {
    const ShareLayout& share = layout.shares[at(b)];
    feeds[at(b)] = feed_of<T>(share.shape, {share.interior, share.boundary}, warps);
  });
  for (const SliceFeed& feed : feeds) {
    begin.push_back(items.size());
    items.insert(items.end(), feed.items.begin(), feed.items.end());
    first.insert(first.end(), feed.first.begin(), feed.first.end());
  }
  pe.feed = {device, items};
  pe.feed_first = {device, first};
  return begin;
}

// The blocks' views of their shares. `flags`: of the PE.
template <class T>
void upload_shares(PeMemory<T>& pe, int device, const PeLayout& layout, const LayoutFacts& facts,
                   bool rings, Flag* flags) {
  std::vector<std::int32_t> partners;
  for (const ShareLayout& share : layout.shares)
    for (const auto* list :
         {&share.plan.notify, &share.plan.await, &share.plan.await_local, &share.plan.reads})
      partners.insert(partners.end(), list->begin(), list->end());
  pe.partners = {device, partners};
  const std::int32_t* next = pe.partners.data();
  const auto take = [&](const std::vector<std::int32_t>& list, const std::int32_t*& where,
                        std::int32_t& count) {
    where = next;
    count = static_cast<std::int32_t>(list.size());
    next += list.size();
  };
  const int warps = facts.threads / gpu_p2p::kWarp;
  std::vector<std::size_t> feeds;
  if (rings) feeds = upload_feeds(pe, device, layout, warps);
  std::vector<BlockShare<WarpSlices<T>>> views;
  std::int32_t remote = 0;  // rows that other PEs read, of the blocks before
  for (const ShareLayout& share : layout.shares) {
    const BlockPlan& plan = share.plan;
    BlockShare<WarpSlices<T>> view;
    view.matrix = rings ? slices_of(pe, share, pe.feed.data() + feeds[views.size()],
                                    pe.feed_first.data() + views.size() * at(warps + 1))
                        : slices_of(pe, share);
    const auto rows_of = [](const LaneRows& rows, std::int32_t start) {
      return typename WarpSlices<T>::Rows{rows.begin, rows.end, start, rows.lanes_log2, rows.thin};
    };
    view.interior = rows_of(share.interior, 0);
    view.boundary = rows_of(share.boundary, share.interior.slices());
    view.board.flags = flags;
    take(plan.notify, view.board.notify, view.board.notify_count);
    take(plan.await, view.board.await, view.board.await_count);
    take(plan.await_local, view.board.await_local, view.board.await_local_count);
    view.first_private = share.first_private;
    view.boundary_shift = plan.boundary.begin;
    view.interior_shift = plan.interior.begin - plan.boundary.size();
    view.first_packet = plan.first_packet;
    view.first_operand = share.first_operand;
    take(plan.reads, view.reads, view.read_count);
    view.remote_end = facts.block_halos ? plan.boundary.begin + plan.remote : plan.boundary.end;
    view.send_shift = facts.block_halos ? plan.boundary.begin - remote : pe.interior;
    remote += plan.remote;
    views.push_back(view);
  }
  pe.shares = {device, views};
}

// The same where the GPU tells which row is at each place, by its number in the matrix.
PrivatePlaces places_of(const PeLayout& layout, const gpu::DeviceArray<std::int32_t>& global_row,
                        int device, std::int64_t first, std::size_t rows) {
  PageVector<std::int32_t> row_at(global_row.size());
  fetch_staged({{device, row_at.data(), global_row.data(), row_at.size() * 4}});
  PrivatePlaces places;
  places.place.resize(rows);
  places.rows.resize(layout.shares.size());
  for (const ShareLayout& share : layout.shares) places.first.push_back(share.first_private);
  in_parallel(static_cast<int>(layout.shares.size()), [&](int b) {
    const ShareLayout& share = layout.shares[at(b)];
    for (std::int32_t k = 0; k < share.plan.rows(); ++k) {
      const auto place = static_cast<std::int32_t>(share.first_private) + k;
      const auto row = static_cast<std::int32_t>(row_at[at(place)] - first);
      places.place[at(row)] = place;
      places.rows[at(b)].push_back(row);
    }
  });
  return places;
}

// `flags`: of the PE.
template <class T>
void upload_factors(FactorsOnGpu<T>& to, int device, const PeFactors<T>& factors,
                    const PeLayout& layout, Flag* flags) {
  to.factor.clear();
  for (const auto& blocks : factors.factors) to.factor.emplace_back(device, blocks);
  std::vector<std::int32_t> partners;
  for (const auto& list : factors.partners)
    partners.insert(partners.end(), list.begin(), list.end());
  to.partners = {device, partners};
  to.scale = {device, factors.scale};
  for (auto& operand : to.operand)
    if (operand.data() == nullptr) operand = {device, at(layout.private_rows)};
  std::vector<FactorShare<T>> views;
  const std::int32_t* next = to.partners.data();
  for (std::size_t b = 0; b < layout.shares.size(); ++b) {
    FactorShare<T> view;
    view.count = static_cast<std::int32_t>(to.factor.size());
    for (std::size_t f = 0; f < to.factor.size(); ++f) view.factor[f] = to.factor[f].view(b);
    view.scale = to.scale.data() + layout.shares[b].first_private;
    for (std::size_t o = 0; o < 2; ++o) view.operand[o] = to.operand[o].data();
    view.board.flags = flags;
    view.board.await_local = next;
    view.board.await_local_count = static_cast<std::int32_t>(factors.partners[b].size());
    next += factors.partners[b].size();
    views.push_back(view);
  }
  to.shares = {device, views};
}

}  // namespace

template <class T>
WarpSlices<T> slices_of(const SlicesOnGpu<T>& pe, const ShareLayout& share, const FeedItem* feed,
                        const std::uint32_t* feed_first) {
  WarpSlices<T> matrix;
  matrix.size = share.shape.size();
  matrix.bytes = pe.bytes.data() + share.first_unit * kSliceUnit;
  matrix.slice = pe.slices.data() + share.first_slice;
  matrix.tail_ptr = pe.tail_ptr.data() + share.first_tail;
  matrix.tail_col = pe.tail_col.data() + share.first_tail_entry;
  matrix.tail_val = pe.tail_val.data() + share.first_tail_entry;
  if (matrix.size.values > 0) matrix.dictionary = pe.dictionary.data() + share.first_value;
  matrix.ring.bytes = matrix.bytes;
  matrix.ring.heads = reinterpret_cast<const std::byte*>(matrix.slice);
  matrix.ring.items = feed;
  matrix.ring.first = feed_first;
  return matrix;
}

template <class T>
void link_pes(const GpuPlace& place, const SystemLayout<T>& layout, bool rings, const Heap<T>& heap,
              const GpuHeaps& heaps, PeMemories<T>& pes) {
  in_parallel(static_cast<int>(pes.size()), [&](int number) {
    const std::size_t k = at(number);
    const int device = place.devices[k];
    const LocalSystem<T>& local = layout.plan.local[k];
    PeMemory<T>& pe = pes[k];
    pe.rows = local.rows();
    pe.interior = local.interior;
    pe.private_rows = layout.pes[k].private_rows;
    pe.send_ptr = {device, local.send_ptr};
    pe.destinations = {device, local.destinations};
    pe.source = {device, layout.sources[k]};
    upload_shares(pe, device, layout.pes[k], layout.facts, rings,
                  heap.flags.at(heaps.base(place.own.first + number)));
    if (place.several_nodes()) pe.remote = RemoteTables(device, place.nodes, layout.far[k]);
  });
}

// One factor of a PE, block after block.
FactorOnGpu::FactorOnGpu(int device, const std::vector<SlicedFactor>& blocks) {
  std::array<std::size_t, 5> all{};
  for (const SlicedFactor& block : blocks) {
    first.push_back(all);
    counts.push_back(static_cast<std::int32_t>(block.slice.size()));
    all = {all[0] + block.slice.size(), all[1] + block.row.size(), all[2] + block.value.size(),
           all[3] + block.narrow.size(), all[4] + block.wide.size()};
  }
  const auto send = [&](auto& to, std::size_t which, auto part) {
    using U = std::decay_t<decltype(*to.data())>;
    PageVector<U> values(all[which]);
    in_parallel(static_cast<int>(blocks.size()), [&](int b) {
      const std::vector<U>& of_block = blocks[at(b)].*part;
      std::ranges::copy(of_block,
                        values.begin() + static_cast<std::ptrdiff_t>(first[at(b)][which]));
    });
    to = gpu::DeviceArray<U>::uninitialised(device, values.size());
    send_staged({{device, to.data(), values.data(), values.size() * sizeof(U)}});
  };
  send(slice, 0, &SlicedFactor::slice);
  send(row, 1, &SlicedFactor::row);
  send(value, 2, &SlicedFactor::value);
  send(narrow, 3, &SlicedFactor::narrow);
  send(wide, 4, &SlicedFactor::wide);
}

FactorSlices FactorOnGpu::view(std::size_t block) const {
  const auto& from = first[block];
  return {slice.data() + from[0],  row.data() + from[1],  value.data() + from[2],
          narrow.data() + from[3], wide.data() + from[4], counts[block]};
}

template <class T>
void make_factors(const GpuPlace& place, SystemLayout<T>& layout, const Heap<T>& heap,
                  const GpuHeaps& heaps, std::vector<FactorsByGpu> by_gpus, PeMemories<T>& pes) {
  const FactorSpec& spec = place.spec.factors;
  if (!spec.any()) return;
  std::vector<PeFactors<T>> made;
  for (std::size_t k = 0; k < pes.size(); ++k) {  // each by all cores
    const LocalSystem<T>& local = layout.plan.local[k];
    const PeLayout& pe = layout.pes[k];
    if (by_gpus.empty()) {
      const OwnRows own = own_rows_of(local, layout.facts.first_row);
      made.push_back(lay_out_factors<T>(factors_of(own, spec), places_of(pe, local.rows()),
                                        pe.private_rows, gpu_p2p::kWarp));
    } else {
      const auto& [first, factors] = by_gpus[k];
      const auto places =
          places_of(pe, pes[k].global_row, place.devices[k], first, factors.scale.size());
      made.push_back(lay_out_factors<T>(factors, places, pe.private_rows, gpu_p2p::kWarp));
    }
  }
  std::vector<const PeFactors<T>*> all;
  for (const PeFactors<T>& pe : made) all.push_back(&pe);
  report_factors<T>(layout.report, spec, place.team(), all);
  in_parallel(static_cast<int>(made.size()), [&](int k) {
    Flag* const flags = heap.factor_flags.at(heaps.base(place.own.first + k));
    upload_factors(pes[at(k)].factors, place.devices[at(k)], made[at(k)], layout.pes[at(k)], flags);
  });
}

#define CPUFREE_PE_LINKS(T)                                                                      \
  template WarpSlices<T> slices_of(const SlicesOnGpu<T>&, const ShareLayout&, const FeedItem*,   \
                                   const std::uint32_t*);                                        \
  template void link_pes(const GpuPlace&, const SystemLayout<T>&, bool, const Heap<T>&,          \
                         const GpuHeaps&, PeMemories<T>&);                                       \
  template void make_factors(const GpuPlace&, SystemLayout<T>&, const Heap<T>&, const GpuHeaps&, \
                             std::vector<FactorsByGpu>, PeMemories<T>&);
CPUFREE_PE_LINKS(float)
CPUFREE_PE_LINKS(double)

}  // namespace cpufree
