// New values for a GpuSystem: the plan, the memory and all that kernels are told of it stay.
#include <algorithm>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/systems/gpu/devices.hpp"
#include "cpufree/systems/gpu/system.hpp"

namespace cpufree {

namespace {

// What an update makes anew.
template <class T>
void drop_values(HaloPlan<T>& plan, std::vector<PeLayout>& layouts) {
  for (LocalSystem<T>& local : plan.local) local.val = {};
  for (PeLayout& layout : layouts) layout.names.reset();
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

// Columns stay in host memory, four bytes an entry; values do not.
template <class T>
void GpuSystem<T>::keep_for_update(HaloPlan<T>& plan, std::vector<PeLayout> layouts,
                                   const SystemSpec& spec) {
  std::int64_t all_rows = 0;
  for (const PlanReport::Pe& pe : report_.pes) all_rows += pe.rows;
  if (all_rows != rows_) return;  // a slab: nobody has the values of all rows
  kept_.emplace(Kept{std::move(plan), std::move(layouts), spec});
  drop_values(kept_->plan, kept_->layouts);
}

// How the values of the kept plan would be laid out in a new system; none: not as the old ones are.
// Codes and lanes of a row are chosen by values, and all PEs are to choose the same.
template <class T>
std::optional<std::vector<PeLayout>> GpuSystem<T>::lay_out_again() {
  std::vector<std::vector<BlockPlan>> plans;
  for (const PeLayout& layout : kept_->layouts) {
    auto& of_pe = plans.emplace_back();
    for (const ShareLayout& share : layout.shares) of_pe.push_back(share.plan);
  }
  const bool lanes_log2 = std::exchange(lanes_share_rows_, false);
  const bool on_chip = std::exchange(on_chip_, false);
  auto layouts = lay_out(kept_->plan, plans, kept_->spec);
  bool fits = lanes_share_rows_ == lanes_log2 && on_chip_ == on_chip &&
              same_places(layouts, kept_->layouts);
  if (team_) fits = least(*team_, "values that fit", fits ? 1 : 0) == 1;
  lanes_share_rows_ = lanes_log2;
  on_chip_ = on_chip;
  if (!fits) return {};
  return layouts;
}

// Writes the values of the kept plan where the old ones are.
template <class T>
void GpuSystem<T>::write_values(const std::vector<PeLayout>& layouts,
                                const std::vector<std::vector<T>>& inverse) {
  const HaloPlan<T>& plan = kept_->plan;
  std::vector<std::byte*> slices;
  for (const Pe& pe : device_->pes) slices.push_back(pe.bytes.data());
  upload_slices(plan, layouts, devices_, slices);
  in_parallel(static_cast<int>(devices_.size()), [&](int k) {
    Pe& pe = device_->pes[at(k)];
    const BesideSlices beside = beside_slices(plan.local[at(k)], layouts[at(k)]);
    pe.tail_val.rewrite(devices_[at(k)], beside.tail_val);
    pe.dictionary.rewrite(devices_[at(k)], beside.dictionary);
    pe.vectors[index_.inverse_diagonal].rewrite(devices_[at(k)], inverse[at(k)]);
  });
}

template <class T>
bool GpuSystem<T>::update_kept(const CsrView<T>& matrix) {
  LapTimer timer;
  take_values(matrix, kept_->plan);
  timer.lap("plan");
  auto layouts = lay_out_again();
  timer.lap("layout");
  if (!layouts) return false;
  const auto inverse = invert_diagonals(kept_->plan, *layouts);
  usable_ = false;
  write_values(*layouts, inverse);
  kept_->layouts = *std::move(layouts);
  make_factors(kept_->plan, kept_->layouts);
  usable_ = true;
  timer.lap("upload");
  report_.seconds = timer.laps();
  return true;
}

template <class T>
bool GpuSystem<T>::update(const CsrView<T>& matrix) {
  const std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone) throw SystemBusy();
  require_usable(usable_);
  require_update(matrix, rows_, report_);
  if (team_) gpu::stay_on(devices_[0]);
  const gpu_p2p::DeviceLocks locks(devices_);
  try {
    const bool done = cuts_.empty() ? update_kept(matrix) : update_made(matrix);
    made_.reset();
    drop_values(kept_->plan, kept_->layouts);
    return done;
  } catch (...) {
    made_.reset();
    names_.clear();
    drop_values(kept_->plan, kept_->layouts);
    throw;
  }
}

template class GpuSystem<float>;
template class GpuSystem<double>;

}  // namespace cpufree
