#include "cpufree/multigrid/gpu/level_sharer.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

namespace setup = multigrid::setup;
using gpu::DeviceArray;
using gpu::OnDevice;

// What kernels are told of an array that may be empty.
const std::int32_t* known(const std::vector<DeviceArray<std::int32_t>>& of, std::size_t k) {
  return of.empty() ? nullptr : of[k].data();
}

// PEs that put rows of theirs to all others.
HaloPlan<float> everybody(const std::vector<std::int64_t>& cuts) {
  HaloPlan<float> plan;
  const int pes = static_cast<int>(cuts.size()) - 1;
  for (int k = 0; k < pes; ++k) {
    LocalSystem<float>& local = plan.local.emplace_back();
    local.rows_elsewhere = local.interior =
        static_cast<std::int32_t>(cuts[at(k) + 1] - cuts[at(k)]);
    for (int pe = 0; pe < pes; ++pe)
      if (pe != k) local.neighbours.push_back({pe});
  }
  return plan;
}

}  // namespace

std::size_t SharedLevel::rows_and_ghosts() const {
  std::size_t most = 0;
  for (const auto& local : plan.local) most = std::max(most, at(local.rows() + local.ghosts));
  return most;
}

LevelSharer::LevelSharer(const GpuPlace& place, const HierarchyOnGpu& h, int blocks, int threads)
    : place_(place), h_(h), blocks_(blocks), threads_(threads) {
  for (const int device : place.devices) {
    kept_.push_back(std::make_unique<Scratch>(device));
    packers_.push_back(std::make_unique<LevelPacker>(device, blocks, threads, *kept_.back()));
  }
}

template <class V>
std::vector<GpuRows<V>> LevelSharer::send(const MatrixOnGpu& matrix, const V* values,
                                          const SharedLevel& by, bool all) const {
  GivenCsr<V> given;
  given.n = static_cast<std::int32_t>(matrix.rows);
  given.row_ptr = matrix.ptr.data();
  given.col = matrix.col.data();
  given.val = values;
  given.device = first_device();
  if (!all) return send_rows(given, by.cuts, place_.devices);
  std::vector<GpuRows<V>> rows;
  const std::vector<std::int64_t> whole{0, matrix.rows};
  for (const int device : place_.devices)
    rows.push_back(std::move(send_rows(given, whole, {device}).front()));
  for (GpuRows<V>& mine : rows) mine.interior = mine.rows;
  return rows;
}

void LevelSharer::lay_out(std::vector<GpuRows<float>> rows, const HaloPlan<float>& halos,
                          Plans plans, LevelMatrix& to, SharedLevel* numbered) {
  GpuLayouts<float> layouts(std::move(rows));
  if (plans.empty()) plans = layouts.block_plans(halos, blocks_, Awaited::everybody);
  to.layouts = layouts.lay_out(std::move(plans), options_of_levels(threads_));
  to.slices.resize(at(pes()));
  in_parallel(pes(), [&](int k) {
    const OnDevice here(place_.devices[at(k)]);
    fill_slices(layouts, at(k), to.layouts[at(k)], to.slices[at(k)]);
  });
  if (numbered == nullptr) return;
  for (std::size_t k = 0; k < to.slices.size(); ++k) {
    const GpuRows<float>& mine = layouts.rows(k);
    const OnDevice here(mine.device());
    auto& row = numbered->row.emplace_back(Int32s::uninitialised(mine.device(), at(mine.rows)));
    gpu::copy(row.data(), mine.names(), at(mine.rows) * sizeof(std::int32_t), mine.stream);
    mine.stream.wait("the rows of a level of multigrid");
  }
}

// The numbers that PEs have for rows of theirs and for ghosts.
void LevelSharer::number(SharedLevel& level, std::int64_t rows) {
  for (std::size_t k = 0; k < at(pes()); ++k) {
    const OnDevice here(place_.devices[k]);
    const SetupSteps& steps = packers_[k]->steps();
    const LocalSystem<float>& local = level.plan.local[k];
    auto& of = level.number.emplace_back(Int32s::uninitialised(place_.devices[k], at(rows)));
    const Int32s ghosts{steps.stream(), local.ghost_name};
    steps.launch(setup::ClearNumbers{rows, of.data()}, rows);
    steps.launch(setup::InvertList{level.row[k].data(), local.rows(), of.data()}, local.rows());
    steps.launch(setup::InvertList{ghosts.data(), local.ghosts, of.data(), local.rows()},
                 local.ghosts);
    steps.stream().wait("the numbers of a level's rows");
  }
}

template <class T>
SharedLevel LevelSharer::share_first(const GpuLayouts<T>& rows, const HaloPlan<T>& plan,
                                     const std::vector<PeLayout>& of_a, LevelMatrix& to,
                                     std::vector<DeviceArray<T>>& scale) {
  SharedLevel level;
  Plans blocks;
  std::vector<GpuRows<float>> placed;
  std::vector<Scratch::Mark> marks;
  const std::size_t n = h_.scale().size();
  for (std::size_t k = 0; k < at(pes()); ++k) {
    const GpuRows<T>& mine = rows.rows(k);
    const OnDevice here(mine.device());
    marks.push_back(packers_[k]->steps().scratch().mark());
    level.plan.local.push_back(without_entries(plan.local[k]));
    level.cuts.push_back(mine.first);
    auto names = fetch(mine.stream, mine.names(), at(mine.rows));
    level.row.emplace_back(mine.stream, names);
    names.insert(names.end(), plan.local[k].ghost_name.begin(), plan.local[k].ghost_name.end());
    const Int32s named{mine.stream, names};
    const auto here_too = DeviceArray<double>::uninitialised(mine.device(), n);
    gpu::copy_across(here_too.data(), mine.device(), h_.scale().data(), first_device(),
                     n * sizeof(double), packers_[k]->steps().stream());
    placed.push_back(packers_[k]->placed_first(mine, named.data(), here_too.data()));
    scale.push_back(packers_[k]->private_scale(mine, of_a[k], here_too.data()));
    blocks.push_back(plans_of(of_a[k]));
    for (BlockPlan& block : blocks.back())
      block.notify.clear(), block.await.clear(), block.await_local.clear();
  }
  level.cuts.push_back(static_cast<std::int64_t>(n));
  await_everybody(level.plan, blocks, blocks_);
  lay_out(std::move(placed), level.plan, std::move(blocks), to);
  for (std::size_t k = 0; k < marks.size(); ++k) packers_[k]->steps().scratch().release(marks[k]);
  number(level, static_cast<std::int64_t>(n));
  return level;
}

SharedLevel LevelSharer::share(std::size_t l, LevelMatrix& to) {
  const bool last = l + 1 == h_.levels.size();
  const MatrixOnGpu& matrix = last && h_.inverse.rows > 0 ? h_.inverse : h_.levels[l].matrix;
  SharedLevel level;
  level.whole = h_.gathered > 0 && l >= h_.gathered;
  if (const auto owner = h_.levels[l].owner.download(); !owner.empty())
    for (int k = 0; k <= pes(); ++k)
      level.cuts.push_back(std::ranges::lower_bound(owner, k) - owner.begin());
  const SetupSteps& steps = packers_.front()->steps();
  DeviceArray<float> values;
  {
    const OnDevice here(first_device());
    values = DeviceArray<float>::uninitialised(first_device(), at(matrix.nonzeros));
    steps.launch(setup::RoundValues{matrix.nonzeros, matrix.val.data(), values.data()},
                 matrix.nonzeros);
    steps.stream().wait("the values of a level of multigrid");
  }
  auto rows = send(matrix, values.data(), level, level.whole);
  if (!level.whole) {
    level.plan = number_rows(rows);
    sort_rows(rows);
    lay_out(std::move(rows), level.plan, {}, to, &level);
    number(level, matrix.rows);
    return level;
  }
  for (int k = 0; k < pes(); ++k) {
    LocalSystem<float>& local = level.plan.local.emplace_back();
    local.rows_elsewhere = local.interior = static_cast<std::int32_t>(matrix.rows);
    local.send_ptr.assign(1, 0);
  }
  lay_out(std::move(rows), level.plan, {}, to);
  return level;
}

void LevelSharer::lay_out_transfer(const MatrixOnGpu& matrix, const SharedLevel& rows,
                                   const SharedLevel& columns, const HaloPlan<float>& halos,
                                   Plans plans, LevelMatrix& to) {
  // What is restricted to a level that all PEs are to have is each PE's own part.
  const bool parts = !rows.whole || !columns.whole;
  const auto sent = send<double>(matrix, matrix.val.data(), rows, !parts);
  std::vector<Scratch::Mark> marks;
  std::vector<GpuRows<float>> placed;
  for (std::size_t k = 0; k < sent.size(); ++k) {
    const GpuRows<double>& mine = sent[k];
    const OnDevice here(mine.device());
    const LocalSystem<float>& of = columns.plan.local[k];
    marks.push_back(packers_[k]->steps().scratch().mark());
    placed.push_back(
        packers_[k]->placed({{mine.rows, mine.ptr.data(), mine.col.data(), mine.val.data()},
                             mine.nnz,
                             of.rows() + of.ghosts,
                             known(rows.row, k),
                             known(columns.number, k),
                             mine.first}));
  }
  lay_out(std::move(placed), halos, std::move(plans), to);
  for (std::size_t k = 0; k < marks.size(); ++k) packers_[k]->steps().scratch().release(marks[k]);
}

void LevelSharer::share_transfers(std::size_t l, const SharedLevel& fine,
                                  const LevelMatrix& of_fine, const SharedLevel& coarse,
                                  const LevelMatrix& of_coarse, LevelMatrix& prolongation,
                                  LevelMatrix& restriction) {
  const auto in_blocks_of = [](const LevelMatrix& of) {
    Plans plans;
    for (const PeLayout& layout : of.layouts) plans.push_back(plans_of(layout));
    return plans;
  };
  const LevelOnGpu& level = h_.levels[l];
  lay_out_transfer(level.prolongator, fine, coarse, fine.plan, in_blocks_of(of_fine), prolongation);
  const bool gathers = coarse.whole && !fine.whole;
  const HaloPlan<float> all = gathers ? everybody(coarse.cuts) : HaloPlan<float>();
  lay_out_transfer(level.restriction, coarse, fine, all,
                   gathers ? Plans() : in_blocks_of(of_coarse), restriction);
}

#define CPUFREE_LEVEL_SHARER(T)                                                             \
  template SharedLevel LevelSharer::share_first(const GpuLayouts<T>&, const HaloPlan<T>&,   \
                                                const std::vector<PeLayout>&, LevelMatrix&, \
                                                std::vector<DeviceArray<T>>&);
CPUFREE_LEVEL_SHARER(float)
CPUFREE_LEVEL_SHARER(double)

}  // namespace cpufree
