// Which format a matrix has on the GPUs, and how lanes share its rows.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "cpufree/base/machine.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/solvers/gpu/plan/host_layout.hpp"
#include "cpufree/solvers/host/scaling.hpp"

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

struct ChosenFormat {
  std::vector<PeLayout> layouts;
  bool lanes_share_rows = false, on_chip = false;  // as in LayoutFacts
  std::int32_t busiest = 0;                        // what the busiest warp sums, if that counts
};

// Bytes of all shares.
template <class T>
std::int64_t bytes_of(const std::vector<ShareSize>& sizes) {
  std::int64_t all = 0;
  for (const ShareSize& share : sizes)
    all += share.matrix.units * kSliceUnit +
           share.matrix.tail_entries * static_cast<std::int64_t>(sizeof(T) + 4);
  return all;
}

template <class T>
class FormatChoice {
 public:
  FormatChoice(const GpuPlace& place, const LayoutFacts& facts, const LayOut& lay_out)
      : place_(place),
        spec_(place.spec),
        facts_(facts),
        lay_out_(lay_out),
        most_room_(place.least("most room on chip", most_room_on_chip(place))) {}

  // Columns and values coded or not. Where blocks keep their shares on chip anyway, values are as
  // they are if there is room for them in all methods: codes save bytes, and cost instructions.
  ChosenFormat choose() const {
    const bool coded = spec_.compress != 0;
    const bool single = spec_.single_values;  // on chip there are none
    if (coded && !single && facts_.block_halos && spec_.compress < 0 && may_stay_on_chip()) {
      auto simple = lay_out_on_chip();
      auto layouts = lay_out_({facts_.block_halos, {true, false}});
      const bool stays = stays_on_chip(sizes_of_all(layouts)) && spec_.lanes_log2 <= 0;
      if (simple && (!stays || busiest_of(layouts) + kLongKernel >= simple->busiest))
        return *std::move(simple);
      if (stays) return {std::move(layouts)};
    }
    LayoutOptions options{facts_.block_halos, {coded, coded}, 0, facts_.threads};
    options.codes.single = single;
    return with_shared_rows(lay_out_(options), options);
  }

 private:
  std::vector<ShareSize> sizes_of_all(const std::vector<PeLayout>& layouts) const {
    return place_.join("sizes of shares", sizes_of<T>(layouts));
  }
  bool may_have_rings() const { return spec_.ring != 0 && spec_.ring != 1; }

  // Whether lanes are to share rows: only where these are long, values are as they are, and the
  // matrix does not stay on chip. What is coded takes more instructions than bytes, and lanes that
  // share add some: Flan_1565 takes 238 us an iteration by itself, 270 with two lanes a row and 328
  // with four; crankseg_1 44, 42 and 43, bmwcra_1 on two GPUs 53, 49 and 45 (H200, prcg). `sizes`:
  // without.
  bool should_share_rows(const std::vector<ShareSize>& sizes) const {
    if (spec_.residency == 0 || !may_have_rings()) return false;
    if (facts_.entries < kLongRow * facts_.rows) return false;
    for (const ShareSize& share : sizes)
      if (share.matrix.values > 0) return false;
    SolveSpec most;
    most.method = Method::pipecg;
    OnChipRequest with_rings = wanted_by(most, sizeof(T));
    with_rings.warps = facts_.threads / kSliceRows;
    with_rings.slots = spec_.ring;
    const std::size_t room = place_.least("room on chip", room_on_chip(place_, facts_.blocks));
    const auto fast = choose_residency(sizes, with_rings, room, spec_.residency);
    return !fast.residency.matrix && fast.residency.ring.slots > 0;
  }

  // The layouts with rows shared by four or eight lanes, where that pays; else `layouts`. A matrix
  // that comes from far memory must not grow for it: with four lanes bmwcra_1 has 181 MB instead of
  // 158 and takes 75 us on one GPU, with eight 157 and 62.
  ChosenFormat with_shared_rows(std::vector<PeLayout> layouts, LayoutOptions options) const {
    if (spec_.lanes_log2 == 0) return {std::move(layouts)};
    const auto alone = sizes_of_all(layouts);
    if (spec_.lanes_log2 < 0 && !should_share_rows(alone)) return {std::move(layouts)};
    const std::int64_t bytes_of_pe = bytes_of<T>(alone) / place_.own.all;
    if (spec_.lanes_log2 < 0 && bytes_of_pe < kWorthRings) return {std::move(layouts)};
    const bool any = spec_.lanes_log2 > 0 ||
                     static_cast<double>(bytes_of_pe) <= spec_.machine.solver_cached_bytes;
    for (const std::int32_t lanes : {2, 3}) {
      options.lanes_log2 = spec_.lanes_log2 > 0 ? spec_.lanes_log2 : lanes;
      auto shared = lay_out_(options);
      if (!any && 20 * bytes_of<T>(sizes_of_all(shared)) > 21 * bytes_of<T>(alone)) continue;
      return {std::move(shared), true};
    }
    return {std::move(layouts)};
  }

  // Whether blocks keep these shares on chip in all methods without preconditioner; and the
  // operands of all products.
  bool stays_on_chip(const std::vector<ShareSize>& sizes, bool operands = false) const {
    SolveSpec most;
    most.method = Method::pipecg;
    const OnChipRequest wanted = wanted_by(most, sizeof(T));
    const Residency kept = choose_residency(sizes, wanted, most_room_, spec_.residency).residency;
    return operands ? keeps_operands(kept, wanted) : kept.matrix;
  }

  // Whether shares may fit on chip, values as they are and columns in runs, the shortest code.
  bool may_stay_on_chip() const {
    const double bytes = static_cast<double>(facts_.entries) * (sizeof(T) + 2.0 / kRun);
    return bytes <= static_cast<double>(most_room_) * facts_.blocks * place_.own.all;
  }

  // Layouts for kernels of simple shares on chip alone, if there are any: with rows shared by as
  // many lanes as leave the busiest warp of all blocks the least to do, or as are asked for.
  std::optional<ChosenFormat> lay_out_on_chip() const {
    if (!facts_.block_halos || place_.several_nodes()) return {};  // there are no such kernels
    // Of short rows products are short, too, beside what it takes to find a warp's slices: of
    // eighths of G3_circuit, ecology2 and tmt_sym an iteration of cg took 2 % longer, of prcg as
    // long.
    if (spec_.lanes_log2 <= 0 && facts_.entries < 2 * kChunkWidth * facts_.rows) return {};
    // Preconditioners may take the room: then shared rows come through rings.
    const std::int32_t last = !may_have_rings()       ? 0
                              : spec_.lanes_log2 >= 0 ? spec_.lanes_log2
                                                      : kMostLanesLog2;
    std::optional<ChosenFormat> best;
    std::int32_t before = std::numeric_limits<std::int32_t>::max();
    for (std::int32_t lanes = std::max(spec_.lanes_log2, 0); lanes <= last; ++lanes) {
      const LayoutOptions options{facts_.block_halos, kSimple, lanes, facts_.threads};
      ChosenFormat found{lay_out_(options), lanes > 0, true};
      const auto sizes = sizes_of_all(found.layouts);
      if (!all_simple(sizes) || !stays_on_chip(sizes, lanes > 0)) continue;
      found.busiest = busiest_of(found.layouts) + (lanes > 0 ? kToShare : 0);
      if (lanes > 1 && found.busiest >= before) break;
      before = found.busiest;
      if (!best || found.busiest < best->busiest) best = std::move(found);
    }
    return best;
  }

  std::int32_t busiest_of(const std::vector<PeLayout>& layouts) const {
    return place_.most("entries of a warp",
                       static_cast<std::int32_t>(busiest_warp(layouts, facts_.threads)));
  }

  const GpuPlace& place_;
  const SystemSpec& spec_;
  const LayoutFacts& facts_;
  const LayOut& lay_out_;
  std::size_t most_room_;
};

}  // namespace

template <class T>
std::vector<PeLayout> choose_format(const GpuPlace& place, LayoutFacts& facts,
                                    const LayOut& lay_out) {
  ChosenFormat chosen = FormatChoice<T>(place, facts, lay_out).choose();
  facts.lanes_share_rows = chosen.lanes_share_rows;
  facts.on_chip = chosen.on_chip;
  return std::move(chosen.layouts);
}

template std::vector<PeLayout> choose_format<float>(const GpuPlace&, LayoutFacts&, const LayOut&);
template std::vector<PeLayout> choose_format<double>(const GpuPlace&, LayoutFacts&, const LayOut&);

}  // namespace cpufree
