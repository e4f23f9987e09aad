#include "cpufree/solvers/gpu/layout/system_layout.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/peers.hpp"

namespace cpufree {

namespace {

double free_on(int device) {
  const gpu::OnDevice here(device);
  return static_cast<double>(gpu::memory_info().free);
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
bool have_room(const GpuPlace& place, const GivenCsr<T>& matrix,
               std::span<const std::int64_t> cuts) {
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const int device = place.devices[k];
    const LaidOutShare share = {std::ranges::count(place.devices, device),
                                cuts[k + 1] - cuts[k],
                                begin_of(matrix, cuts[k + 1]) - begin_of(matrix, cuts[k]),
                                begin_of(matrix, cuts.back()),
                                matrix.device != device,
                                device == place.devices.front()};
    const double need = room_for_layout(place.spec, share, sizeof(T));
    if (need >= free_on(device)) return false;
  }
  return true;
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
SystemLayout<T> lay_out_by_gpus(const GpuPlace& place, ArrivedRows<T>& rows) {
  const Shares shares = rows.layouts.shares(rows.plan);
  SystemLayout<T> to;
  begin_layout(place, std::move(rows.plan), shares, to);
  const AllHere peers(shares.size());
  auto plans = use_block_halos<T>(
      place, shares, peers, to, [&](std::int64_t reads) -> std::optional<BlockHalos> {
        auto made = rows.layouts.make_halos(to.plan, to.facts.blocks, reads);
        if (!made) return {};
        to.order = std::move(made->order);
        return std::move(made->halos);
      });
  if (!plans) {
    rows.layouts.sort();
    plans = rows.layouts.block_plans(to.plan, to.facts.blocks);
    find_sources<T>(*plans, peers, to);
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
  std::vector<std::vector<BlockPlan>> plans;
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
  template bool have_room(const GpuPlace&, const GivenCsr<T>&, std::span<const std::int64_t>); \
  template SentRows<T> send_to_gpus(const GpuPlace&, const GivenCsr<T>&,                       \
                                    std::span<const std::int64_t>, bool, LapTimer&);           \
  template ArrivedRows<T> number_on_gpus(SentRows<T>, LapTimer&);                              \
  template SystemLayout<T> lay_out_by_gpus(const GpuPlace&, ArrivedRows<T>&);                  \
  template std::optional<std::vector<PeLayout>> lay_out_again(                                 \
      const GpuPlace&, const SystemLayout<T>&, GpuLayouts<T>*);
CPUFREE_SYSTEM_LAYOUT(float)
CPUFREE_SYSTEM_LAYOUT(double)

}  // namespace cpufree
