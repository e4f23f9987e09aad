#include "cpufree/systems/cpu/multigrid.hpp"

#include <utility>

#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

// f(share, pe, block) for all blocks of all PEs, by all cores.
template <class Parts, class Of, class F>
void for_shares(Parts& parts, Of&& of, F&& f) {
  const std::size_t blocks = of(parts.front()).size();
  in_parallel(static_cast<int>(parts.size() * blocks), [&](int k) {
    const std::size_t pe = at(k) / blocks;
    f(of(parts[pe])[at(k) % blocks], pe);
  });
}

}  // namespace

template <class T>
CpuMultigrid<T>::CpuMultigrid(multigrid::Hierarchy hierarchy, const HaloPlan<T>& plan,
                              const Plans& blocks)
    : reports_(report_of(hierarchy)), why_(hierarchy.why), args_(plan.local.size()) {
  for (const LocalSystem<T>& local : plan.local) {
    auto& scale = scale_.emplace_back();
    for (const std::int32_t row : local.global_row)
      scale.push_back(static_cast<T>(hierarchy.scale[at(row)]));
  }
  const int pes = static_cast<int>(plan.local.size());
  const int count = static_cast<int>(blocks.front().size());
  add_level(plan_of_first_level(hierarchy, plan), blocks);
  for (std::size_t l = 1; l < hierarchy.levels.size(); ++l) {
    HaloPlan<float> next = plan_of_level(hierarchy, l, pes);
    hierarchy.levels[l].matrix = {};
    Plans shared = make_block_plans(next, count, Awaited::everybody);
    add_level(std::move(next), std::move(shared));
    add_transfers(hierarchy.levels[l - 1].prolongator, l - 1);
    hierarchy.levels[l - 1].prolongator = {};
  }
  for (std::size_t l = 0; l < levels_.size(); ++l) levels_[l].lambda = hierarchy.levels[l].lambda;
  levels_.back().solves = !hierarchy.inverse.empty();
}

template <class T>
void CpuMultigrid<T>::add_level(HaloPlan<float> plan, Plans blocks) {
  Level& level = levels_.emplace_back();
  level.parts.resize(plan.local.size());
  std::size_t most = 0;
  for (std::size_t pe = 0; pe < plan.local.size(); ++pe) {
    Part& part = level.parts[pe];
    for (BlockPlan& block : blocks[pe]) part.shares.emplace_back().plan = std::move(block);
    part.local = std::move(plan.local[pe]);
    for (auto& vector : part.vectors) vector = Array<float>(at(part.local.rows()));
    most = std::max(most, at(part.local.rows() + part.local.ghosts));
  }
  rows_and_ghosts_.push_back(most);
  for_shares(
      level.parts, [](Part& part) -> auto& { return part.shares; },
      [&](CpuShare<float>& share, std::size_t pe) { share.make(level.parts[pe].local); });
  for (Part& part : level.parts) {
    part.local.col = {}, part.local.val = {};
    for (const auto& share : part.shares) reports_[levels_.size() - 1].bytes += share.bytes();
  }
}

template <class T>
void CpuMultigrid<T>::add_transfers(const multigrid::SparseMatrix& prolongator, std::size_t l) {
  const multigrid::SparseMatrix restriction = transpose(prolongator);
  auto& fine = levels_[l].parts;
  const auto& coarse = levels_[l + 1].parts;
  std::vector<LocalSystem<float>> up(fine.size()), down(fine.size());
  for (std::size_t pe = 0; pe < fine.size(); ++pe) {
    up[pe] = own_rows_of(prolongator, fine[pe].local, coarse[pe].local);
    down[pe] = own_rows_of(restriction, coarse[pe].local, fine[pe].local);
    for (std::size_t b = 0; b < fine[pe].shares.size(); ++b) {
      fine[pe].prolongation.emplace_back().plan = fine[pe].shares[b].plan;
      fine[pe].restriction.emplace_back().plan = coarse[pe].shares[b].plan;
    }
  }
  for_shares(
      fine, [](Part& part) -> auto& { return part.prolongation; },
      [&](CpuShare<float>& share, std::size_t pe) { share.make(up[pe]); });
  for_shares(
      fine, [](Part& part) -> auto& { return part.restriction; },
      [&](CpuShare<float>& share, std::size_t pe) { share.make(down[pe]); });
  for (Part& part : fine)
    for (const auto* shares : {&part.restriction, &part.prolongation})
      for (const auto& share : *shares) reports_[l].bytes += share.bytes();
}

template <class T>
CycleLevel<typename CpuMultigrid<T>::Single> CpuMultigrid<T>::arguments(Level& level, Part& part,
                                                                        const LevelHeap& heap,
                                                                        std::byte* base) {
  part.views.clear(), part.restrict_views.clear(), part.prolongate_views.clear();
  for (const auto& share : part.shares)
    part.views.push_back(share.view(heap.flags.at(base), part.local.interior));
  for (const auto& share : part.restriction)
    part.restrict_views.push_back({share.matrix(), share.interior(), share.boundary()});
  for (const auto& share : part.prolongation)
    part.prolongate_views.push_back({share.matrix(), share.interior(), share.boundary()});
  CycleLevel<Single> made;
  made.args.vectors.r = part.vectors[0].data();
  made.args.vectors.x = part.vectors[1].data();
  made.args.vectors.s = part.vectors[2].data();
  for (int k = 0; k < 2; ++k) made.args.vectors.scratch[k] = heap.scratch[k].at(base);
  made.args.shares = part.views.data();
  made.args.rows = part.local.rows();
  made.args.send_ptr = part.local.send_ptr.data();
  made.args.destinations = part.local.destinations.data();
  made.restriction = part.restrict_views.data();
  made.prolongation = part.prolongate_views.data();
  made.solves = level.solves;
  set_steps(made, level.lambda);
  return made;
}

template <class T>
void CpuMultigrid<T>::show(const Heap<T>& heap, const CpuHeaps& heaps) {
  of_pe_.assign(args_.size(), {});
  for (std::size_t pe = 0; pe < args_.size(); ++pe) {
    for (std::size_t l = 0; l < levels_.size(); ++l)
      of_pe_[pe].push_back(arguments(levels_[l], levels_[l].parts[pe], heap.levels[l],
                                     heaps.base(static_cast<int>(pe))));
    args_[pe] = {of_pe_[pe].data(), static_cast<std::int32_t>(levels_.size()), scale_[pe].data()};
  }
}

template class CpuMultigrid<float>;
template class CpuMultigrid<double>;

}  // namespace cpufree
