// The factors of a preconditioner on the GPUs.
#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/systems/gpu/system.hpp"

namespace cpufree {

namespace {

// The places of a PE's rows: blocks have their boundary rows first.
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

}  // namespace

// One factor of a PE, block after block.
template <class T>
GpuSystem<T>::DeviceFactor::DeviceFactor(int device, const std::vector<SlicedFactor>& blocks) {
  SlicedFactor all;
  for (const SlicedFactor& block : blocks) {
    first.push_back(
        {all.slice.size(), all.row.size(), all.value.size(), all.narrow.size(), all.wide.size()});
    counts.push_back(static_cast<std::int32_t>(block.slice.size()));
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(all.slice, block.slice), append(all.row, block.row), append(all.value, block.value);
    append(all.narrow, block.narrow), append(all.wide, block.wide);
  }
  slice = {device, all.slice};
  row = {device, all.row};
  value = {device, all.value};
  narrow = {device, all.narrow};
  wide = {device, all.wide};
}

template <class T>
FactorSlices GpuSystem<T>::DeviceFactor::view(std::size_t block) const {
  const auto& from = first[block];
  return {slice.data() + from[0],  row.data() + from[1],  value.data() + from[2],
          narrow.data() + from[3], wide.data() + from[4], counts[block]};
}

// Made anew from the values of the plan. Once there are heaps.
template <class T>
void GpuSystem<T>::make_factors(const HaloPlan<T>& plan, const std::vector<PeLayout>& layouts) {
  if (!factor_spec_.any()) return;
  std::vector<PeFactors<T>> made;
  for (std::size_t k = 0; k < plan.local.size(); ++k)  // each by all cores
    made.push_back(lay_out_factors<T>(factor_spec_, own_rows_of(plan.local[k], first_row_),
                                      places_of(layouts[k], plan.local[k].rows()),
                                      layouts[k].private_rows, gpu_p2p::kWarp));
  std::vector<const PeFactors<T>*> all;
  for (const PeFactors<T>& pe : made) all.push_back(&pe);
  report_factors<T>(report_, factor_spec_, team_.get(), all);
  in_parallel(static_cast<int>(made.size()),
              [&](int k) { upload_factors(at(k), made[at(k)], layouts[at(k)]); });
}

template <class T>
void GpuSystem<T>::upload_factors(std::size_t k, const PeFactors<T>& factors,
                                  const PeLayout& layout) {
  const int device = devices_[k];
  PeFactorsOnGpu& to = device_->pes[k].factors;
  to.factor.clear();
  for (const auto& blocks : factors.factors) to.factor.emplace_back(device, blocks);
  std::vector<std::int32_t> partners;
  for (const auto& list : factors.partners)
    partners.insert(partners.end(), list.begin(), list.end());
  to.partners = {device, partners};
  to.scale = {device, factors.scale};
  for (Array<T>& operand : to.operand)
    if (operand.data() == nullptr) operand = Array<T>(device, at(layout.private_rows));
  std::vector<FactorShare<T>> views;
  const std::int32_t* next = to.partners.data();
  for (std::size_t b = 0; b < at(blocks_); ++b) {
    FactorShare<T> view;
    view.count = static_cast<std::int32_t>(to.factor.size());
    for (std::size_t f = 0; f < to.factor.size(); ++f) view.factor[f] = to.factor[f].view(b);
    view.scale = to.scale.data() + layout.shares[b].first_private;
    for (std::size_t o = 0; o < 2; ++o) view.operand[o] = to.operand[o].data();
    view.board.flags = heap_.factor_flags.at(heap_of(k));
    view.board.await_local = next;
    view.board.await_local_count = static_cast<std::int32_t>(factors.partners[b].size());
    next += factors.partners[b].size();
    views.push_back(view);
  }
  to.shares = {device, views};
}

template class GpuSystem<float>;
template class GpuSystem<double>;

}  // namespace cpufree
