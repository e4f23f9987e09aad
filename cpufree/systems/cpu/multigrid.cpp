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
                              const std::vector<std::span<const CpuShare<T>>>& of_a)
    : reports_(report_of(hierarchy)), why_(hierarchy.why), args_(plan.local.size()) {
  const int pes = static_cast<int>(plan.local.size());
  const int count = static_cast<int>(of_a.front().size());
  add_first_level(hierarchy, plan, of_a);
  hierarchy.levels.front().matrix = {};
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

// A level of these rows, whose shares are still empty.
template <class T>
auto CpuMultigrid<T>::make_level(std::vector<LocalSystem<float>> local, std::size_t blocks)
    -> Level& {
  Level& level = levels_.emplace_back();
  level.parts.resize(local.size());
  std::size_t most = 0;
  for (std::size_t pe = 0; pe < local.size(); ++pe) {
    Part& part = level.parts[pe];
    part.shares.resize(blocks);
    part.local = std::move(local[pe]);
    for (auto& vector : part.vectors) vector = Array<float>(at(part.local.rows()));
    most = std::max(most, at(part.local.rows() + part.local.ghosts));
  }
  rows_and_ghosts_.push_back(most);
  return level;
}

template <class T>
void CpuMultigrid<T>::add_first_level(const multigrid::Hierarchy& hierarchy,
                                      const HaloPlan<T>& plan,
                                      const std::vector<std::span<const CpuShare<T>>>& of_a) {
  std::vector<LocalSystem<float>> local;
  std::vector<std::vector<double>> scale;  // of each PE's columns
  for (const LocalSystem<T>& of_pe : plan.local) {
    local.push_back(without_entries(of_pe));
    auto& all = scale.emplace_back();
    for (std::int32_t i = 0; i < of_pe.rows() + of_pe.ghosts; ++i)
      all.push_back(hierarchy.scale[at(of_pe.name_of(i))]);
    scale_.emplace_back(all.begin(), all.begin() + of_pe.rows());
  }
  Level& level = make_level(std::move(local), of_a.front().size());
  const auto& parts = level.parts;
  for_shares(
      level.parts, [](Part& part) -> auto& { return part.shares; },
      [&](CpuShare<float>& share, std::size_t pe) {
        const auto& from = of_a[pe][at(&share - parts[pe].shares.data())];
        const auto& s = scale[pe];
        share = from.template with_values<float>([&](std::int32_t i, std::int32_t j, T value) {
          return i == j ? 1.0 : static_cast<double>(value) * s[at(i)] * s[at(j)];
        });
      });
  for (const Part& part : parts)
    for (const auto& share : part.shares) reports_.front().bytes += share.value_bytes();
}

template <class T>
void CpuMultigrid<T>::add_level(HaloPlan<float> plan, Plans blocks) {
  Level& level = make_level(std::move(plan.local), blocks.front().size());
  for (std::size_t pe = 0; pe < blocks.size(); ++pe)
    for (std::size_t b = 0; b < blocks[pe].size(); ++b)
      level.parts[pe].shares[b].plan = std::move(blocks[pe][b]);
  for_shares(
      level.parts, [](Part& part) -> auto& { return part.shares; },
      [&](CpuShare<float>& share, std::size_t pe) {
        share.make(level.parts[pe].local, Indices::narrow);
      });
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
      [&](CpuShare<float>& share, std::size_t pe) { share.make(up[pe], Indices::narrow); });
  for_shares(
      fine, [](Part& part) -> auto& { return part.restriction; },
      [&](CpuShare<float>& share, std::size_t pe) { share.make(down[pe], Indices::narrow); });
  for (Part& part : fine)
    for (const auto* shares : {&part.restriction, &part.prolongation})
      for (const auto& share : *shares) reports_[l].bytes += share.bytes();
}

template <class T>
CycleLevel<typename CpuMultigrid<T>::Single> CpuMultigrid<T>::arguments(Level& level, Part& part,
                                                                        const LevelHeap& heap,
                                                                        std::byte* base) {
  const auto transfer_of = [](const CpuShare<float>& share) {
    return TransferShare<Single>{share.matrix<Single>(), share.interior<Single>(),
                                 share.boundary<Single>()};
  };
  part.views.clear(), part.restrict_views.clear(), part.prolongate_views.clear();
  for (const auto& share : part.shares)
    part.views.push_back(share.template view<Single>(heap.flags.at(base), part.local.interior));
  for (const auto& share : part.restriction) part.restrict_views.push_back(transfer_of(share));
  for (const auto& share : part.prolongation) part.prolongate_views.push_back(transfer_of(share));
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
