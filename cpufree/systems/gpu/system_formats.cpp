// Which format a matrix has on the GPUs, and how lanes share its rows.
#include <algorithm>
#include <limits>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/systems/gpu/devices.hpp"
#include "cpufree/systems/gpu/system.hpp"
#include "cpufree/systems/machine.hpp"

namespace cpufree {

namespace {
// What kernels for simple shares on chip read.
constexpr Codes kSimple = {true, false, true, false};
// What kernels for shares of all kinds take beyond those, and products of shared rows beyond
// others, in entries that a warp could sum meanwhile (busiest_warp): 0.2 and 0.6 us an iteration of
// prcg (one H200, an eighth each of hood, consph, G3_circuit, ecology2).
constexpr std::int32_t kLongKernel = 20;
constexpr std::int32_t kToShare = 50;
// Bytes of a PE's matrix from which on it is worth rings, if lanes share rows. A quarter of
// bmwcra_1 (26 MB) takes 20.7 us an iteration of prcg without, and 22.3 with both, one of
// crankseg_1 (25 MB) 14.0 and 15.4; half of bmwcra_1 53 and 45.
constexpr std::int64_t kWorthRings = 30'000'000;
}  // namespace

// By the GPUs, where they have the rows.
template <class T>
std::vector<PeLayout> GpuSystem<T>::shares_laid_out(
    const HaloPlan<T>& plan, const std::vector<std::vector<BlockPlan>>& plans,
    const LayoutOptions& options) {
  if (made_) return made_->lay_out(plans, options);
  LayoutOptions named = options;
  named.names = names_;
  return lay_out_shares(plan, plans, named);
}

// Whether lanes are to share rows: only where these are long, values are as they are, and the
// matrix does not stay on chip. What is coded takes more instructions than bytes, and lanes that
// share add some: Flan_1565 takes 238 us an iteration by itself, 270 with two lanes a row and 328
// with four; crankseg_1 44, 42 and 43, bmwcra_1 on two GPUs 53, 49 and 45 (H200, prcg). `sizes`:
// without.
template <class T>
bool GpuSystem<T>::should_share_rows(const std::vector<ShareSize>& sizes,
                                     const SystemSpec& spec) const {
  if (spec.residency == 0 || spec.ring == 0 || spec.ring == 1) return false;
  const auto [rows, entries] = matrix_size();
  if (entries < kLongRow * rows) return false;
  for (const ShareSize& share : sizes)
    if (share.matrix.values > 0) return false;
  SolveSpec most;
  most.method = Method::pipecg;
  Wanted with_rings = wanted_by(most, sizeof(T));
  with_rings.warps = threads_ / gpu_p2p::kWarp;
  with_rings.slots = ring_slots_;
  std::size_t room = room_on_chip(devices_, blocks_);
  if (team_) room = least(*team_, "room on chip", room);  // all are to find the same
  const auto fast = choose_residency(sizes, with_rings, room, residency_mode_);
  return !fast.residency.matrix && fast.residency.ring.slots > 0;
}

// The layouts with rows shared by four or eight lanes, where that pays; else `layouts`. A matrix
// that comes from far memory must not grow for it: with four lanes bmwcra_1 has 181 MB instead of
// 158 and takes 75 us on one GPU, with eight 157 and 62.
template <class T>
std::vector<PeLayout> GpuSystem<T>::lanes_log2(std::vector<PeLayout> layouts,
                                               const HaloPlan<T>& plan,
                                               const std::vector<std::vector<BlockPlan>>& plans,
                                               LayoutOptions options, const SystemSpec& spec) {
  if (spec.lanes_log2 == 0) return layouts;
  const auto bytes = [](const std::vector<ShareSize>& sizes) {
    std::int64_t all = 0;
    for (const ShareSize& share : sizes)
      all += share.matrix.units * kSliceUnit +
             share.matrix.tail_entries * static_cast<std::int64_t>(sizeof(T) + 4);
    return all;
  };
  const auto alone = sizes_in_all(layouts);
  if (spec.lanes_log2 < 0 && !should_share_rows(alone, spec)) return layouts;
  const std::int64_t bytes_of_pe = bytes(alone) / own_.all;
  if (spec.lanes_log2 < 0 && bytes_of_pe < kWorthRings) return layouts;
  const bool any =
      spec.lanes_log2 > 0 || static_cast<double>(bytes_of_pe) <= machine::kSolverCachedBytes;
  for (const std::int32_t lanes : {2, 3}) {
    options.lanes_log2 = spec.lanes_log2 > 0 ? spec.lanes_log2 : lanes;
    auto shared = shares_laid_out(plan, plans, options);
    if (!any && 20 * bytes(sizes_in_all(shared)) > 21 * bytes(alone)) continue;
    lanes_share_rows_ = true;
    return shared;
  }
  return layouts;
}

// Whether blocks keep these shares on chip in all methods without preconditioner; and the operands
// of all products.
template <class T>
bool GpuSystem<T>::stays_on_chip(const std::vector<ShareSize>& sizes, bool operands) const {
  SolveSpec most;
  most.method = Method::pipecg;
  const Wanted wanted = wanted_by(most, sizeof(T));
  const Residency kept = choose_residency(sizes, wanted, kRoomOnChip, residency_mode_).residency;
  return operands ? keeps_operands(kept, wanted) : kept.matrix;
}

// Whether shares may fit on chip, values as they are and columns in runs, the shortest code.
template <class T>
bool GpuSystem<T>::may_stay_on_chip() const {
  const double bytes = static_cast<double>(matrix_size().entries) * (sizeof(T) + 2.0 / kRun);
  return bytes <= static_cast<double>(kRoomOnChip) * blocks_ * own_.all;
}

// Whether there are kernels for simple shares on chip alone.
template <class T>
bool GpuSystem<T>::has_on_chip_kernels() const {
  return block_halos_ && nodes_.count() == 1;
}

// Layouts for kernels of simple shares on chip alone, if there are any: with rows shared by as many
// lanes as leave the busiest warp of all blocks the least to do, or as are asked for.
template <class T>
auto GpuSystem<T>::lay_out_on_chip(const HaloPlan<T>& plan,
                                   const std::vector<std::vector<BlockPlan>>& plans,
                                   const SystemSpec& spec) -> std::optional<OnChip> {
  if (!has_on_chip_kernels()) return {};
  // Of short rows products are short, too, beside what it takes to find a warp's slices: of eighths
  // of G3_circuit, ecology2 and tmt_sym an iteration of cg took 2 % longer, of prcg as long.
  const auto [rows, entries] = matrix_size();
  if (spec.lanes_log2 <= 0 && entries < 2 * kChunkWidth * rows) return {};
  // Preconditioners may take the room: then shared rows come through rings.
  const bool may_share = spec.ring != 0 && spec.ring != 1;
  const std::int32_t last = !may_share             ? 0
                            : spec.lanes_log2 >= 0 ? spec.lanes_log2
                                                   : kMostLanesLog2;
  std::optional<OnChip> best;
  std::int32_t before = std::numeric_limits<std::int32_t>::max();
  for (std::int32_t lanes = std::max(spec.lanes_log2, 0); lanes <= last; ++lanes) {
    const LayoutOptions options{block_halos_, kSimple, lanes, threads_};
    OnChip found{shares_laid_out(plan, plans, options), 0, lanes};
    const auto sizes = sizes_in_all(found.layouts);
    if (!all_simple(sizes) || !stays_on_chip(sizes, lanes > 0)) continue;
    found.busiest = busiest_of(found.layouts) + (lanes > 0 ? kToShare : 0);
    if (lanes > 1 && found.busiest >= before) break;
    before = found.busiest;
    if (!best || found.busiest < best->busiest) best = std::move(found);
  }
  return best;
}

template <class T>
std::int32_t GpuSystem<T>::busiest_of(const std::vector<PeLayout>& layouts) const {
  const auto here = static_cast<std::int32_t>(busiest_warp(layouts, threads_));
  return team_ ? most(*team_, "entries of a warp", here) : here;
}

template <class T>
std::vector<PeLayout> GpuSystem<T>::take(OnChip simple) {
  on_chip_ = true;
  lanes_share_rows_ = simple.lanes_log2 > 0;
  return std::move(simple.layouts);
}

template <class T>
std::vector<PeLayout> GpuSystem<T>::lay_out(const HaloPlan<T>& plan,
                                            const std::vector<std::vector<BlockPlan>>& plans,
                                            const SystemSpec& spec) {
  if (block_halos_) names_ = name_entries(plan, plans);
  auto layouts = choose_layouts(plan, plans, spec);
  names_.clear();  // the chosen layouts have them until their slices are filled
  return layouts;
}

// Columns and values coded or not. Where blocks keep their shares on chip anyway, values are as
// they are if there is room for them in all methods: codes save bytes, and cost instructions.
template <class T>
std::vector<PeLayout> GpuSystem<T>::choose_layouts(const HaloPlan<T>& plan,
                                                   const std::vector<std::vector<BlockPlan>>& plans,
                                                   const SystemSpec& spec) {
  const bool coded = spec.compress != 0;
  if (coded && block_halos_ && spec.compress < 0 && may_stay_on_chip()) {
    auto simple = lay_out_on_chip(plan, plans, spec);
    auto layouts = shares_laid_out(plan, plans, {block_halos_, {true, false}});
    const bool stays = stays_on_chip(sizes_in_all(layouts)) && spec.lanes_log2 <= 0;
    if (simple && (!stays || busiest_of(layouts) + kLongKernel >= simple->busiest))
      return take(*std::move(simple));
    if (stays) return layouts;
  }
  const LayoutOptions options{block_halos_, {coded, coded}, 0, threads_};
  return lanes_log2(shares_laid_out(plan, plans, options), plan, plans, options, spec);
}

template class GpuSystem<float>;
template class GpuSystem<double>;

}  // namespace cpufree
