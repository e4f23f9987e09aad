#include "cpufree/solvers/gpu/plan/host_layout.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/distributed/team_peers.hpp"
#include "cpufree/problem/blocks/length_windows.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "cpufree/solvers/gpu/kernels/kernel.hpp"
#include "cpufree/solvers/host/gather.hpp"
#include "cpufree/solvers/host/scaling.hpp"

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
  if (part.empty()) return contiguous_cuts(row_ptr, pes);
  std::vector<std::int64_t> cuts{0};
  const auto rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
  const bool valid = static_cast<std::int64_t>(part.size()) == rows && part.front() >= 0 &&
                     part.back() < pes && std::ranges::is_sorted(part);
  if (!valid) return {};
  for (int pe = 1; pe <= pes; ++pe)
    cuts.push_back(std::ranges::lower_bound(part, pe) - part.begin());
  return cuts;
}

// What this process sends to other nodes, and the room that it takes in vectors.
template <class T>
void plan_nodes(const GpuPlace& place, BlockPlans& plans, HostLayout<T>& to) {
  std::size_t& length = to.facts.extent.rows_and_ghosts;
  for (std::size_t k = 0; k < to.plan.local.size(); ++k) {
    LocalSystem<T>& local = to.plan.local[k];
    to.far.push_back(make_remote_plan(local, plans[k], place.own.first + static_cast<int>(k),
                                      place.nodes.of_pe()));
    length = std::max(length, at(local.rows()) + at(local.ghosts) + at(to.far.back().staged));
  }
  length = place.most("length of vectors", length);
}

// What a device needs for `copies` of N nonzeros.
double bytes_of_copies(std::int64_t nonzeros, std::size_t value_bytes, double copies) {
  return copies * static_cast<double>(nonzeros) * static_cast<double>(4 + value_bytes);
}

}  // namespace

// Levels exchange by stores, and rows of A are to be in the threads that have them on level 0.
void prepare_for_multigrid(GpuPlace& place) {
  if (place.several_nodes())
    throw Unsupported("the preconditioner amg is for PEs of one node; choose another");
  const auto only = [](int& tuning, const char* name) {
    require(tuning <= 0, std::string("with the preconditioner amg, leave out ") + name);
    tuning = 0;
  };
  only(place.spec.halo, "halo"), only(place.spec.lanes_log2, "lanes_log2");
  only(place.spec.ring, "ring");
}

namespace {
constexpr std::size_t kOthers = 8192;  // what kernels have besides, and more
}

std::size_t most_room_on_chip(const GpuPlace& place) {
  std::size_t room = kRoomOnChip;
  for (const GpuFacts& gpu : place.gpus)
    room = std::min(room, gpu.shared_bytes - std::min(gpu.shared_bytes, kOthers));
  return room;
}

std::size_t room_on_chip(const GpuPlace& place, int blocks) {
  std::size_t room = kRoomOnChip;
  for (const GpuFacts& gpu : place.gpus) {
    const int each = (blocks * gpu.sharing + gpu.multiprocessors - 1) / gpu.multiprocessors;
    const std::size_t all = gpu.shared_bytes / at(each);
    room = std::min(room, all - std::min(all, kOthers));
  }
  return room;
}

// A matrix that stays in a GPU's L2 cache, most of it, needs no rings: hood (35 MB) takes 22 us
// without and 32 with them, tmt_sym (55 MB) 42 and 46, G3_circuit (88 MB) 80 and 79, crankseg_1
// (122 MB) 55 and 45 (one H200, cg). Neither does one of coded values with eight entries a row or
// fewer: poisson3d of 200^3 rows (199 MB) takes 404 us without and 434 with rings. What comes
// through rings should not evict the vectors.
template <class T>
OnChipRequest on_chip_request(const GpuPlace& place, const LayoutFacts& facts,
                              const SolveSpec& spec) {
  OnChipRequest wanted = wanted_by(spec, sizeof(T));
  const double bytes = facts.bytes_of_pe;
  const int ring = place.spec.ring;
  const Machine& machine = place.spec.machine;
  wanted.warps = facts.threads / kSliceRows;
  wanted.matrix_bytes = bytes;
  wanted.cached_bytes = machine.solver_cached_bytes;
  const bool far = bytes > machine.solver_cached_bytes;
  wanted.passing = far;
  if (far || (facts.lanes_share_rows && bytes > machine.solver_least_kept_of))
    wanted.kept = static_cast<std::int32_t>(256.0 * machine.solver_kept_bytes / bytes);
  wanted.vector_bytes = static_cast<double>(facts.rows) / place.own.all * sizeof(T);
  const bool coded = std::ranges::any_of(
      facts.sizes, [](const ShareSize& share) { return share.matrix.values > 0; });
  const bool light = coded && facts.entries <= kChunkWidth * facts.rows;
  const bool pays = facts.lanes_share_rows || (far && !light);
  wanted.slots = ring < 0 && !pays ? 0 : ring;
  return wanted;
}

int default_blocks(const GpuPlace& place, std::size_t rows) {
  constexpr std::int64_t kRowsPerBlock = 32;  // with fewer, most threads have nothing to do
  int mine = 1024;
  for (const GpuFacts& gpu : place.gpus) mine = std::min(mine, gpu.multiprocessors / gpu.sharing);
  const int multiprocessors = place.least("multiprocessors", mine);
  const auto wanted = (static_cast<std::int64_t>(rows) + kRowsPerBlock - 1) / kRowsPerBlock;
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, multiprocessors));
}

double room_for_layout(const SystemSpec& spec, const LaidOutShare& share, std::size_t value_bytes) {
  constexpr double kSlicesAndMoved = 2.5;  // rows are sorted by length
  constexpr double kLevelsOfPe = 1.5;      // of several PEs, as each has them
  constexpr double kFactors = 2.0;         // G as it is made, and packed, and its transpose
  constexpr double kLevels = 5.0;          // products on the way to them included
  constexpr double kGathered = 1.0;
  const bool levels = spec.factors.multigrid(), several = spec.pes > 1;
  const double copies = kSlicesAndMoved + (share.sent ? 1.0 : 0.0) +
                        (spec.single_values ? 1.0 : 0.0) + (levels && several ? kLevelsOfPe : 0.0) +
                        (spec.factors.any() ? kFactors : 0.0);
  double need = bytes_of_copies(share.pes * share.nonzeros, value_bytes, copies) +
                128.0 * static_cast<double>(share.pes * share.rows);
  if (levels && share.first)
    need +=
        bytes_of_copies(share.all_nonzeros, value_bytes, several ? kLevels + kGathered : kLevels);
  if (spec.factors.any())
    need += static_cast<double>(share.pes * inverse_teams(share.rows) * kFarInverse * 8);
  return need;
}

bool gpu_makes_hierarchy(const GpuPlace& place, std::int64_t nonzeros) {
  // Below, the host has made it before that many kernels have been started one after the other.
  constexpr std::int64_t kLeast = 100'000;
  const SystemSpec& spec = place.spec;
  return spec.factors.multigrid() && place.team() == nullptr && !spec.factors.near &&
         !spec.factors.prolongators && (spec.layout > 0 || (spec.layout < 0 && nonzeros >= kLeast));
}

template <class T>
std::vector<std::int64_t> cuts_for_gpus(const GpuPlace& place, const CsrView<T>& matrix,
                                        std::span<const std::int32_t> part,
                                        std::span<const std::int32_t> order) {
  const SystemSpec& spec = place.spec;
  const bool can = place.team() == nullptr && order.empty() &&
                   (!spec.factors.any() || spec.factors.by_gpus()) && !place.several_nodes() &&
                   matrix.n > 0 && spec.pes <= kMostPesOfLayout;
  const bool wanted =
      spec.layout > 0 || (spec.layout < 0 && matrix.nnz() >= kLeastGpuLayoutNonzeros);
  const bool with_levels = gpu_makes_hierarchy(place, matrix.nnz());
  if (!can || !(spec.factors.multigrid() ? with_levels : wanted)) return {};
  return cuts_of(matrix.row_ptr, part, spec.pes);
}

// What there is to know before rows are shared among blocks.
template <class T>
void begin_layout(const GpuPlace& place, HaloPlan<T> plan, const Shares& shares,
                  HostLayout<T>& to) {
  const SystemSpec& spec = place.spec;
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
}

// Halos of blocks, where they pay and can be had: the rows of the blocks, else none. make(reads):
// those of blocks that together read at most N packets.
template <class T>
std::optional<BlockPlans> use_block_halos(const GpuPlace& place, const Shares& shares,
                                          const Peers& peers, HostLayout<T>& to,
                                          const MakeHalos& make) {
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
void find_sources(const BlockPlans& plans, const Peers& peers, HostLayout<T>& to) {
  if (to.facts.packets == 0) return;
  const BoundaryRanges boundaries = gather_boundaries(plans, peers);
  for (std::size_t k = 0; k < to.sources.size(); ++k)
    to.sources[k] = ghost_sources(to.plan.local[k], boundaries);
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
static double bytes_in_full(const LayoutFacts& facts) {
  std::int64_t entries = 0;
  for (const ShareSize& share : facts.sizes)
    if (has_kind(share.matrix.kinds, kSingleValues)) entries += share.matrix.tail_entries;
  return static_cast<double>(entries) * (sizeof(T) + 4.0);
}

// The shares of all blocks, and what there is to know of them.
template <class T>
void lay_out_pes(const GpuPlace& place, const LayOut& lay_out, HostLayout<T>& to) {
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

template <class T>
HostLayout<T> lay_out_by_host(const GpuPlace& place, HaloPlan<T> plan,
                              std::span<const std::int32_t> order) {
  const auto peers = peers_of(place.team(), place.spec.pes);
  const Shares shares = shares_of(plan, *peers);
  HostLayout<T> to;
  begin_layout(place, std::move(plan), shares, to);
  auto plans = use_block_halos<T>(place, shares, *peers, to, [&](std::int64_t reads) {
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

PrivatePlaces places_of(const PeLayout& layout, std::int32_t rows) {
  PrivatePlaces places;
  places.place.resize(at(rows));
  for (const ShareLayout& share : layout.shares) {
    auto& of_block = places.rows.emplace_back();
    places.first.push_back(share.first_private);
    auto place = static_cast<std::int32_t>(share.first_private);
    for (const RowRange range : {share.plan.boundary, share.plan.interior})
      for (std::int32_t row = range.begin; row < range.end; ++row) {
        places.place[at(row)] = place++;
        of_block.push_back(row);
      }
  }
  return places;
}

#define CPUFREE_HOST_LAYOUT(T)                                                                     \
  template OnChipRequest on_chip_request<T>(const GpuPlace&, const LayoutFacts&,                   \
                                            const SolveSpec&);                                     \
  template std::vector<std::int64_t> cuts_for_gpus(const GpuPlace&, const CsrView<T>&,             \
                                                   std::span<const std::int32_t>,                  \
                                                   std::span<const std::int32_t>);                 \
  template void begin_layout(const GpuPlace&, HaloPlan<T>, const Shares&, HostLayout<T>&);         \
  template std::optional<BlockPlans> use_block_halos(const GpuPlace&, const Shares&, const Peers&, \
                                                     HostLayout<T>&, const MakeHalos&);            \
  template void find_sources(const BlockPlans&, const Peers&, HostLayout<T>&);                     \
  template LayOut host_lay_out(const HaloPlan<T>&, const BlockPlans&, bool);                       \
  template void lay_out_pes(const GpuPlace&, const LayOut&, HostLayout<T>&);                       \
  template HostLayout<T> lay_out_by_host(const GpuPlace&, HaloPlan<T>,                             \
                                         std::span<const std::int32_t>);
CPUFREE_HOST_LAYOUT(float)
CPUFREE_HOST_LAYOUT(double)

}  // namespace cpufree
