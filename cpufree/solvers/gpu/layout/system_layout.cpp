#include "cpufree/solvers/gpu/layout/system_layout.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/distributed/team_peers.hpp"
#include "cpufree/launch/gpu/devices.hpp"
#include "cpufree/multigrid/gpu/hierarchy.hpp"
#include "cpufree/problem/blocks/length_windows.hpp"
#include "cpufree/problem/partition.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"
#include "cpufree/solvers/gpu/layout/inverse.hpp"
#include "cpufree/solvers/host/gather.hpp"

namespace cpufree {

namespace {

// Rows and ghosts of a PE: 32-bit numbers, and loops look a block's threads ahead.
constexpr std::int64_t kMostEntries = (std::int64_t{1} << 31) - 1 - 1024;
// Most ghosts of a PE that travel as packets: 16 bytes each and no fence, against 8 and one.
constexpr std::size_t kMostPackets = 16384;

using BlockPlans = std::vector<std::vector<BlockPlan>>;

// Where each PE's rows begin, and the last one's end; none where they are not consecutive.
std::vector<std::int64_t> cuts_of(std::span<const std::int64_t> row_ptr,
                                  std::span<const std::int32_t> part, int pes) {
  std::vector<std::int64_t> cuts{0};
  const auto rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
  if (part.empty()) {
    for (const RowRange& range : split_rows(row_ptr, {0, static_cast<std::int32_t>(rows)}, pes))
      cuts.push_back(range.end);
    return cuts;
  }
  const bool valid = static_cast<std::int64_t>(part.size()) == rows && part.front() >= 0 &&
                     part.back() < pes && std::ranges::is_sorted(part);
  if (!valid) return {};
  for (int pe = 1; pe <= pes; ++pe)
    cuts.push_back(std::ranges::lower_bound(part, pe) - part.begin());
  return cuts;
}

// How often a device is to hold entries besides those that lie there already.
template <class T>
double copies_of_entries(const SystemSpec& spec, const GivenCsr<T>& matrix, int device) {
  const bool sent = matrix.device != device;
  constexpr double kSlicesAndMoved = 2.5;  // rows are sorted by length
  constexpr double kLevels = 1.5;          // of several PEs, as each has them
  constexpr double kFactors = 2.0;         // G as it is made, and packed, and its transpose
  const bool levels = spec.factors.multigrid() && spec.pes > 1;
  return kSlicesAndMoved + (sent ? 1.0 : 0.0) + (spec.single_values ? 1.0 : 0.0) +
         (levels ? kLevels : 0.0) + (spec.factors.any() ? kFactors : 0.0);
}
// The same of all entries, for the device that makes the levels.
double copies_for_levels(const SystemSpec& spec) {
  constexpr double kLevels = 5.0;  // products on the way to them included
  constexpr double kGathered = 1.0;
  return !spec.factors.multigrid() ? 0.0 : spec.pes > 1 ? kLevels + kGathered : kLevels;
}

// What a device needs for `copies` of N nonzeros, and for vectors; and what it has, in bytes.
double room_for(std::int64_t rows, std::int64_t nonzeros, std::size_t value_bytes, double copies) {
  return copies * static_cast<double>(nonzeros) * static_cast<double>(4 + value_bytes) +
         128.0 * static_cast<double>(rows);
}
double free_on(int device) {
  const gpu::OnDevice here(device);
  return static_cast<double>(gpu::memory_info().free);
}

// What there is to know before rows are shared among blocks.
template <class T>
SystemLayout<T> begin_layout(const GpuPlace& place, HaloPlan<T> plan, const Shares& shares) {
  const SystemSpec& spec = place.spec;
  SystemLayout<T> to;
  to.plan = std::move(plan);
  LayoutFacts& facts = to.facts;
  facts.extent = extent_of(shares);
  require(static_cast<std::int64_t>(facts.extent.rows_and_ghosts) <= kMostEntries,
          "a GPU can hold vectors of at most " + std::to_string(kMostEntries) +
              " entries; use more GPUs");
  facts.blocks = spec.blocks != 0 ? spec.blocks : default_blocks(place, facts.extent.rows);
  facts.threads = spec.threads > 0 ? spec.threads : kGpuThreads;
  for (const PlanReport::Pe& pe : shares) facts.rows += pe.rows, facts.entries += pe.nnz;
  const bool packets = !place.several_nodes() && use_packets(spec, shares, kMostPackets);
  if (packets) facts.packets = facts.extent.ghosts;
  to.sources.resize(at(place.own.here));
  to.report = report_of(shares, spec, facts.blocks, packets);
  to.report.nodes = place.nodes.count();
  to.report.threads = facts.threads;
  return to;
}

// Halos of blocks, where they pay and can be had: the rows of the blocks, else none. make(reads):
// those of blocks that together read at most N packets.
template <class T, class F>
std::optional<BlockPlans> use_block_halos(const GpuPlace& place, const Shares& shares,
                                          const Peers& peers, SystemLayout<T>& to, F&& make) {
  LayoutFacts& facts = to.facts;
  const std::int64_t reads = most_block_reads(place.spec, shares, facts.blocks, sizeof(T));
  if (reads == 0 || place.several_nodes()) return {};
  std::optional<BlockHalos> halos = make(reads);
  if (!halos) return {};
  facts.block_halos = true;
  to.report.block_halo = "packets";
  if (facts.extent.ghosts > 0) to.report.halo = "packets";
  facts.packets = place.most("packets of a PE", at(*std::ranges::max_element(halos->packets)));
  require(static_cast<std::int64_t>(facts.extent.rows + facts.packets) <= kMostEntries,
          "with packets among blocks, a GPU can hold at most " + std::to_string(kMostEntries) +
              " rows and packets; use more GPUs, or halo 1");
  const BoundaryRanges boundaries = gather_boundaries(halos->plans, peers);
  for (std::size_t k = 0; k < to.sources.size(); ++k)
    to.sources[k] = packet_sources(to.plan.local[k], boundaries, halos->plans[k],
                                   place.own.first + static_cast<int>(k));
  return std::move(halos->plans);
}

// Who sends each ghost of these blocks, where ghosts travel as packets.
template <class T>
void find_sources(const BlockPlans& plans, const Peers& peers, SystemLayout<T>& to) {
  if (to.facts.packets == 0) return;
  const BoundaryRanges boundaries = gather_boundaries(plans, peers);
  for (std::size_t k = 0; k < to.sources.size(); ++k)
    to.sources[k] = ghost_sources(to.plan.local[k], boundaries);
}

// What this process sends to other nodes, and the room that it takes in vectors.
template <class T>
void plan_nodes(const GpuPlace& place, BlockPlans& plans, SystemLayout<T>& to) {
  std::size_t& length = to.facts.extent.rows_and_ghosts;
  for (std::size_t k = 0; k < to.plan.local.size(); ++k) {
    LocalSystem<T>& local = to.plan.local[k];
    to.far.push_back(make_remote_plan(local, plans[k], place.own.first + static_cast<int>(k),
                                      place.nodes.of_pe()));
    length = std::max(length, at(local.rows()) + at(local.ghosts) + at(to.far.back().staged));
  }
  length = place.most("length of vectors", length);
}

// By the host. What the plan and `plans` refer to outlives it.
template <class T>
LayOut host_lay_out(const HaloPlan<T>& plan, const BlockPlans& plans, bool block_halos) {
  std::vector<SharedNames> names;
  if (block_halos) names = name_entries(plan, plans);
  return [&plan, &plans, names = std::move(names)](LayoutOptions options) {
    options.names = names;  // the chosen layouts have them until their slices are filled
    return lay_out_shares(plan, plans, options);
  };
}

// Bytes of rows that accurate products alone read.
template <class T>
double bytes_in_full(const LayoutFacts& facts) {
  std::int64_t entries = 0;
  for (const ShareSize& share : facts.sizes)
    if (has_kind(share.matrix.kinds, kSingleValues)) entries += share.matrix.tail_entries;
  return static_cast<double>(entries) * (sizeof(T) + 4.0);
}

// The shares of all blocks, and what there is to know of them.
template <class T>
void lay_out_pes(const GpuPlace& place, const LayOut& lay_out, SystemLayout<T>& to) {
  LayoutFacts& facts = to.facts;
  to.pes = choose_format<T>(place, facts, lay_out);
  if (facts.block_halos) {
    std::size_t& length = facts.extent.rows_and_ghosts;
    for (const PeLayout& layout : to.pes) length = std::max(length, at(layout.operand_rows));
    length = place.most("length of vectors", length);
  }
  facts.sizes = place.join("sizes of shares", sizes_of<T>(to.pes));
  PlanReport& report = to.report;
  for (const PeLayout& layout : to.pes)
    for (const ShareLayout& share : layout.shares)
      report.lanes_per_row = std::max(
          {report.lanes_per_row, 1 << share.interior.lanes_log2, 1 << share.boundary.lanes_log2});
  report.matrix_bytes = bytes_of<T>(to.pes);
  if (place.team() != nullptr)
    report.matrix_bytes = sum(*place.team(), "bytes of the matrix", report.matrix_bytes);
  report.single_values = has_kind(kinds_of(facts), kSingleValues);
  facts.bytes_of_pe = (report.matrix_bytes - bytes_in_full<T>(facts)) / place.own.all;
}

// Whether slices of one shape lie where those of the other do, in the same code.
bool same_places(const WarpSliceShape& a, const WarpSliceShape& b) {
  const auto same_slice = [](const WarpSlice& s, const WarpSlice& t) {
    return s.first == t.first && s.width == t.width && s.tails == t.tails && s.code == t.code &&
           std::ranges::equal(s.base, t.base);
  };
  const auto same_rows = [](const LaneRows& r, const LaneRows& s) {
    return r.begin == s.begin && r.end == s.end && r.lanes_log2 == s.lanes_log2 &&
           r.thin == s.thin && r.run == s.run;
  };
  return a.units == b.units && a.tail_entries == b.tail_entries && a.tail_ptr == b.tail_ptr &&
         a.dictionary.size() == b.dictionary.size() &&
         std::ranges::equal(a.slice, b.slice, same_slice) &&
         std::ranges::equal(a.rows, b.rows, same_rows);
}

bool same_places(const std::vector<PeLayout>& a, const std::vector<PeLayout>& b) {
  return std::ranges::equal(a, b, [](const PeLayout& p, const PeLayout& q) {
    return std::ranges::equal(p.shares, q.shares, [](const ShareLayout& s, const ShareLayout& t) {
      return same_places(s.shape, t.shape);
    });
  });
}

}  // namespace

template <class T>
std::vector<std::int64_t> cuts_for_gpus(const GpuPlace& place, const CsrView<T>& matrix,
                                        std::span<const std::int32_t> part,
                                        std::span<const std::int32_t> order) {
  const SystemSpec& spec = place.spec;
  const bool can = place.team() == nullptr && order.empty() &&
                   (!spec.factors.any() || spec.factors.by_gpus()) && !place.several_nodes() &&
                   matrix.n > 0 && spec.pes <= layout::kMostParts;
  const bool wanted =
      spec.layout > 0 || (spec.layout < 0 && matrix.nnz() >= kLeastGpuLayoutNonzeros);
  const bool with_levels = gpu_makes_hierarchy(place, matrix.nnz());
  if (!can || !(spec.factors.multigrid() ? with_levels : wanted)) return {};
  return cuts_of(matrix.row_ptr, part, spec.pes);
}

template <class T>
bool have_room(const GpuPlace& place, const GivenCsr<T>& matrix,
               std::span<const std::int64_t> cuts) {
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const int device = place.devices[k];
    const std::int64_t nonzeros = begin_of(matrix, cuts[k + 1]) - begin_of(matrix, cuts[k]);
    const auto sharing = std::ranges::count(place.devices, device);
    double need = room_for(sharing * (cuts[k + 1] - cuts[k]), sharing * nonzeros, sizeof(T),
                           copies_of_entries(place.spec, matrix, device));
    if (place.spec.factors.any())
      need += static_cast<double>(sharing * inverse_teams(cuts[k + 1] - cuts[k]) * kFarInverse * 8);
    if (device == place.devices.front())
      need += room_for(0, begin_of(matrix, cuts.back()), sizeof(T), copies_for_levels(place.spec));
    if (need >= free_on(device)) return false;
  }
  return true;
}

template <class T>
void require_room_for_levels(const GpuPlace& place, const CsrView<T>& matrix) {
  if (!place.spec.factors.multigrid()) return;
  constexpr double kSlicesAndLevels = 2.5;  // both of them, for 7 nonzeros a row
  for (const int device : place.devices) {
    const auto pes = std::ranges::count(place.devices, device);
    const double need = room_for(pes * matrix.n / place.own.all, pes * matrix.nnz() / place.own.all,
                                 sizeof(T), kSlicesAndLevels);
    const double free = free_on(device);
    if (need < free) continue;
    const auto gigabytes = [](double bytes) { return std::to_string(bytes / 1e9) + " GB"; };
    throw OutOfMemory("GPU " + std::to_string(device) +
                      " has no room for the matrix and its levels of multigrid, which take some " +
                      gigabytes(need) + ": " + gigabytes(free) +
                      " are free; use more GPUs, or another preconditioner, such as pc='jacobi'");
  }
}

template <class T>
SentRows<T> send_to_gpus(const GpuPlace& place, const GivenCsr<T>& matrix,
                         std::span<const std::int64_t> cuts, bool inspect, LapTimer& timer) {
  SentRows<T> sent{send_rows(matrix, cuts, place.devices), {}};
  timer.lap("send");
  sent.found = check_rows(sent.rows, inspect);
  timer.lap("inspect");
  return sent;
}

template <class T>
ArrivedRows<T> number_on_gpus(SentRows<T> sent, LapTimer& timer) {
  HaloPlan<T> plan = number_rows(sent.rows);
  ArrivedRows<T> arrived{std::move(sent.found), std::move(plan),
                         GpuLayouts<T>(std::move(sent.rows))};
  timer.lap("plan");
  return arrived;
}

template <class T>
SystemLayout<T> lay_out_by_host(const GpuPlace& place, HaloPlan<T> plan,
                                std::span<const std::int32_t> order) {
  const auto peers = peers_of(place.team(), place.spec.pes);
  const Shares shares = shares_of(plan, *peers);
  SystemLayout<T> to = begin_layout(place, std::move(plan), shares);
  auto plans = use_block_halos(place, shares, *peers, to, [&](std::int64_t reads) {
    return make_block_halos(to.plan, *peers, order, to.facts.blocks, reads);
  });
  if (!plans) {
    sort_by_length(to.plan, *peers);
    plans = make_block_plans(to.plan, *peers, to.facts.blocks);
    find_sources(*plans, *peers, to);
  }
  if (to.facts.packets > 0) count_destinations_from_ghosts(to.plan, shares);
  if (place.several_nodes()) plan_nodes(place, *plans, to);
  lay_out_pes(place, host_lay_out(to.plan, *plans, to.facts.block_halos), to);
  return to;
}

template <class T>
SystemLayout<T> lay_out_by_gpus(const GpuPlace& place, ArrivedRows<T>& rows) {
  const Shares shares = rows.layouts.shares(rows.plan);
  SystemLayout<T> to = begin_layout(place, std::move(rows.plan), shares);
  const AllHere peers(shares.size());
  auto plans = use_block_halos(
      place, shares, peers, to, [&](std::int64_t reads) -> std::optional<BlockHalos> {
        auto made = rows.layouts.make_halos(to.plan, to.facts.blocks, reads);
        if (!made) return {};
        to.order = std::move(made->order);
        return std::move(made->halos);
      });
  if (!plans) {
    rows.layouts.sort();
    plans = rows.layouts.block_plans(to.plan, to.facts.blocks);
    find_sources(*plans, peers, to);
  }
  if (to.facts.packets > 0) count_destinations_from_ghosts(to.plan, shares);
  lay_out_pes<T>(
      place, [&](const LayoutOptions& options) { return rows.layouts.lay_out(*plans, options); },
      to);
  if (place.spec.inspect) to.report.entries = rows.found.entries;
  to.report.mean_distance = rows.found.distance;
  return to;
}

// Codes and lanes of a row are chosen by values, and all PEs are to choose the same.
template <class T>
std::optional<std::vector<PeLayout>> lay_out_again(const GpuPlace& place,
                                                   const SystemLayout<T>& old,
                                                   GpuLayouts<T>* rows) {
  BlockPlans plans;
  for (const PeLayout& layout : old.pes) {
    auto& of_pe = plans.emplace_back();
    for (const ShareLayout& share : layout.shares) of_pe.push_back(share.plan);
  }
  LayoutFacts facts = old.facts;
  if (rows != nullptr) old.order.empty() ? rows->sort() : rows->take_halos(old.order, plans);
  const LayOut lay_out =
      rows == nullptr ? host_lay_out(old.plan, plans, facts.block_halos)
                      : [&](const LayoutOptions& options) { return rows->lay_out(plans, options); };
  auto layouts = choose_format<T>(place, facts, lay_out);
  const bool fits = facts.lanes_share_rows == old.facts.lanes_share_rows &&
                    facts.on_chip == old.facts.on_chip && same_places(layouts, old.pes);
  if (place.least("values that fit", fits ? 1 : 0) == 0) return {};
  return layouts;
}

#define CPUFREE_SYSTEM_LAYOUT(T)                                                               \
  template std::vector<std::int64_t> cuts_for_gpus(const GpuPlace&, const CsrView<T>&,         \
                                                   std::span<const std::int32_t>,              \
                                                   std::span<const std::int32_t>);             \
  template bool have_room(const GpuPlace&, const GivenCsr<T>&, std::span<const std::int64_t>); \
  template void require_room_for_levels(const GpuPlace&, const CsrView<T>&);                   \
  template SentRows<T> send_to_gpus(const GpuPlace&, const GivenCsr<T>&,                       \
                                    std::span<const std::int64_t>, bool, LapTimer&);           \
  template ArrivedRows<T> number_on_gpus(SentRows<T>, LapTimer&);                              \
  template SystemLayout<T> lay_out_by_host(const GpuPlace&, HaloPlan<T>,                       \
                                           std::span<const std::int32_t>);                     \
  template SystemLayout<T> lay_out_by_gpus(const GpuPlace&, ArrivedRows<T>&);                  \
  template std::optional<std::vector<PeLayout>> lay_out_again(                                 \
      const GpuPlace&, const SystemLayout<T>&, GpuLayouts<T>*);
CPUFREE_SYSTEM_LAYOUT(float)
CPUFREE_SYSTEM_LAYOUT(double)

}  // namespace cpufree
