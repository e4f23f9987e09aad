// The factors of a preconditioner on the CPU engine, where private numbers are those of the PE.
#include <algorithm>
#include <numeric>

#include "cpufree/base/index.hpp"
#include "cpufree/solvers/cpu/system.hpp"

namespace cpufree {

// Made again from the rows of each PE of this process: own(k).
template <class T>
void CpuSystem<T>::make_factors(const std::function<OwnRows(std::size_t)>& own) {
  if (!factor_spec_.any()) return;
  std::vector<const PeFactors<T>*> all;
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    Pe& pe = pes_[k];
    const OwnRows rows = own(k);
    PrivatePlaces places;
    places.place.resize(at(rows.rows()));
    std::iota(places.place.begin(), places.place.end(), 0);
    for (const Share& share : pe.shares) {
      auto& of_block = places.rows.emplace_back();
      for (const RowRange range : {share.plan.interior, share.plan.boundary})
        for (std::int32_t row = range.begin; row < range.end; ++row) of_block.push_back(row);
      places.first.push_back(0);
    }
    pe.factors = lay_out_factors<T>(factors_of(rows, factor_spec_), places, rows.rows(), kWidth);
    for (Array<T>& operand : pe.operand)
      if (operand.data() == nullptr) operand = Array<T>(at(rows.rows()));
    all.push_back(&pe.factors);
  }
  report_factors<T>(report_, factor_spec_, team_.get(), all);
}

// The blocks' views of their factors; once there is a heap.
template <class T>
void CpuSystem<T>::show_factors() {
  if (!factor_spec_.any()) return;
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    Pe& pe = pes_[k];
    pe.factor_views.clear();
    for (std::size_t b = 0; b < at(blocks_); ++b) {
      FactorShare<T> view;
      view.count = static_cast<std::int32_t>(pe.factors.factors.size());
      for (std::size_t f = 0; f < pe.factors.factors.size(); ++f)
        view.factor[f] = pe.factors.factors[f][b].view();
      view.scale = pe.factors.scale.data();
      for (std::size_t o = 0; o < 2; ++o) view.operand[o] = pe.operand[o].data();
      const auto& partners = pe.factors.partners[b];
      view.board.flags = heap_.factor_flags.at(heaps_->base(own_.first + static_cast<int>(k)));
      view.board.await_local = partners.data();
      view.board.await_local_count = static_cast<std::int32_t>(partners.size());
      pe.factor_views.push_back(view);
    }
  }
}

// New numbers for multigrid, once those of the matrix have been written. False: they have other
// patterns.
template <class T>
bool CpuSystem<T>::update_multigrid(const CsrView<T>& matrix) {
  const FactorSpec& spec = factor_spec_;
  auto hierarchy =
      spec.prolongators
          ? multigrid::hierarchy_of_prolongators(matrix, *spec.prolongators, multigrid_options_)
          : multigrid::remake_hierarchy(matrix, row_owner_, multigrid_->take_coarsenings(),
                                        multigrid_options_, spec.near.get());
  if (!multigrid_->rewrite(std::move(hierarchy), shares_of_pes())) return false;
  multigrid_->show(heap_, *heaps_, own_);
  return true;
}

template <class T>
auto CpuSystem<T>::shares_of_pes() const -> std::vector<std::span<const Share>> {
  std::vector<std::span<const Share>> shares;
  for (const Pe& pe : pes_) shares.emplace_back(pe.shares);
  return shares;
}

// Once the PEs have their shares of the matrix.
template <class T>
void CpuSystem<T>::lay_out_multigrid(multigrid::Hierarchy hierarchy, const HaloPlan<T>& plan,
                                     std::size_t rows_and_ghosts) {
  BlockPlans blocks(pes_.size());
  for (std::size_t k = 0; k < pes_.size(); ++k)
    for (const Share& share : pes_[k].shares) blocks[k].push_back(share.plan);
  LevelPlan first = plan_of_first_level(hierarchy, plan, std::move(blocks), rows_and_ghosts,
                                        LevelEntries::left_out);
  multigrid_ = std::make_unique<CpuMultigrid<T>>(std::move(hierarchy), own_, std::move(first),
                                                 shares_of_pes());
  report_.levels = multigrid_->reports();
  if (team_)
    for (LevelReport& level : report_.levels)
      level.bytes = sum(*team_, "bytes of a level", level.bytes);
  report_.coarsest_why = multigrid_->why();
}

#define CPUFREE_MULTIGRID(T)                                                              \
  template bool CpuSystem<T>::update_multigrid(const CsrView<T>&);                        \
  template std::vector<std::span<const CpuShare<T>>> CpuSystem<T>::shares_of_pes() const; \
  template void CpuSystem<T>::lay_out_multigrid(multigrid::Hierarchy, const HaloPlan<T>&, \
                                                std::size_t);
CPUFREE_MULTIGRID(float)
CPUFREE_MULTIGRID(double)
template void CpuSystem<float>::make_factors(const std::function<OwnRows(std::size_t)>&);
template void CpuSystem<double>::make_factors(const std::function<OwnRows(std::size_t)>&);
template void CpuSystem<float>::show_factors();
template void CpuSystem<double>::show_factors();

}  // namespace cpufree
