#include "cpufree/multigrid/gpu/multigrid.hpp"

#include <numeric>
#include <utility>

namespace cpufree {

namespace {

using Single = WarpSlices<float>;

// Lists of partners of the blocks of a PE, on its GPU; boards point into them.
std::vector<ArrivalBoard> boards_of(const std::vector<BlockPlan>& blocks, int device, Flag* flags,
                                    gpu::DeviceArray<std::int32_t>& partners) {
  std::vector<std::int32_t> all;
  for (const BlockPlan& plan : blocks)
    for (const auto* list : {&plan.notify, &plan.await, &plan.await_local})
      all.insert(all.end(), list->begin(), list->end());
  partners = {device, all};
  const std::int32_t* next = partners.data();
  const auto take = [&](const std::vector<std::int32_t>& list, const std::int32_t*& where,
                        std::int32_t& count) {
    where = next;
    count = static_cast<std::int32_t>(list.size());
    next += list.size();
  };
  std::vector<ArrivalBoard> boards;
  for (const BlockPlan& plan : blocks) {
    ArrivalBoard board;
    board.flags = flags;
    take(plan.notify, board.notify, board.notify_count);
    take(plan.await, board.await, board.await_count);
    take(plan.await_local, board.await_local, board.await_local_count);
    boards.push_back(board);
  }
  return boards;
}

// The rows of a block, as kernels see them.
template <class Share>
void place_rows(Share& view, const ShareLayout& share) {
  const auto rows_of = [](const LaneRows& rows, std::int32_t start) {
    return Single::Rows{rows.begin, rows.end, start, rows.lanes_log2, rows.thin};
  };
  view.interior = rows_of(share.interior, 0);
  view.boundary = rows_of(share.boundary, share.interior.slices());
}

TransferShare<Single> transfer_of(const SlicesOnGpu<float>& slices, const ShareLayout& share) {
  TransferShare<Single> view;
  view.matrix = slices_of(slices, share);
  place_rows(view, share);
  return view;
}

}  // namespace

template <class T>
GpuMultigrid<T>::GpuMultigrid(const GpuPlace& place, multigrid::Hierarchy hierarchy,
                              LevelPlan first, int threads)
    : threads_(threads),
      pes_(at(place.own.here)),
      gathered_(hierarchy.gathered),
      reports_(report_of(hierarchy)),
      why_(hierarchy.why) {
  if (gathered_ > 0) extent_.gathered = hierarchy.levels[gathered_].owner.size();
  plan_levels(
      hierarchy, std::move(first), place.own,
      [&](std::size_t l, const LevelPlan& plan) {
        if (l > 0) hierarchy.levels[l].matrix = {};
        add_level(place, plan);
        if (l == 0) add_scale(place, plan.plan, hierarchy.scale);
      },
      [&](std::size_t l, const TransferPlan& plan) {
        add_transfers(place, plan, l);
        hierarchy.levels[l].prolongator = {};
      });
  for (std::size_t l = 0; l < levels_.size(); ++l) levels_[l].lambda = hierarchy.levels[l].lambda;
  levels_.back().solves = !hierarchy.inverse.empty();
  choose_packets(place, reports_, gathered_, extent_);
}

// What scales the private vectors of A.
template <class T>
void GpuMultigrid<T>::add_scale(const GpuPlace& place, const HaloPlan<float>& plan,
                                const std::vector<double>& of_rows) {
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    std::vector<T> scale;
    for (const std::int32_t row : private_rows(plan.local[k], levels_.front().matrix.layouts[k]))
      scale.push_back(row < 0 ? T{0} : static_cast<T>(of_rows[at(row)]));
    pes_[k].scale = {place.devices[k], scale};
  }
}

template <class T>
GpuMultigrid<T>::GpuMultigrid(const GpuPlace& place, HierarchyOnGpu hierarchy,
                              const GpuRows<T>& rows, const PeLayout& of_a, int threads)
    : threads_(threads),
      made_(std::make_unique<HierarchyOnGpu>(std::move(hierarchy))),
      levels_(made_->levels.size()),
      pes_(1),
      reports_(report_of(*made_)),
      why_(made_->why) {
  const int device = place.devices.front();
  const gpu::OnDevice here(device);
  LevelPacker packer(device, static_cast<int>(of_a.shares.size()), threads, *made_->kept);
  orders_.push_back(packer.order_of(rows));
  for (std::size_t l = 1; l < levels_.size(); ++l)
    orders_.push_back(packer.order_of(made_->levels[l].matrix, made_->levels[l - 1].restriction));
  pack_levels(packer, rows, of_a);
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    Level& level = levels_[l];
    const auto count = static_cast<std::int32_t>(made_->levels[l].matrix.rows);
    extent_.rows_and_ghosts.push_back(at(count));
    HaloPlan<float> alone;
    LocalSystem<float>& local = alone.local.emplace_back();
    local.rows_elsewhere = local.interior = count;
    local.send_ptr.assign(1, 0);
    add_parts(place, level, alone);
  }
  count_bytes();
  choose_packets(place, reports_, gathered_, extent_);
  // Solves are to have room for vectors, and for right-hand sides together.
  if (kShareOfKept * made_->kept->bytes() > gpu::memory_info().free) {
    made_.reset();
    orders_.clear();
  }
}

template <class T>
GpuMultigrid<T>::GpuMultigrid(const GpuPlace& place, const HierarchyOnGpu& hierarchy,
                              const GpuLayouts<T>& rows, const HaloPlan<T>& plan,
                              const std::vector<PeLayout>& of_a, int threads)
    : threads_(threads),
      levels_(hierarchy.levels.size()),
      pes_(at(place.own.here)),
      gathered_(hierarchy.gathered),
      reports_(report_of(hierarchy)),
      why_(hierarchy.why) {
  if (gathered_ > 0) extent_.gathered = at(hierarchy.levels[gathered_].matrix.rows);
  LevelSharer sharer(place, hierarchy, static_cast<int>(of_a.front().shares.size()), threads);
  std::vector<Array<T>> scale;
  SharedLevel fine = sharer.share_first(rows, plan, of_a, levels_.front().matrix, scale);
  for (std::size_t k = 0; k < pes_.size(); ++k) pes_[k].scale = std::move(scale[k]);
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    Level& level = levels_[l];
    level.lambda = hierarchy.levels[l].lambda;
    extent_.rows_and_ghosts.push_back(fine.rows_and_ghosts());
    add_parts(place, level, fine.plan);
    if (l + 1 == levels_.size()) break;
    Level& next = levels_[l + 1];
    SharedLevel coarse = sharer.share(l + 1, next.matrix);
    sharer.share_transfers(l, fine, level.matrix, coarse, next.matrix, level.prolongation,
                           level.restriction);
    if (l + 1 == gathered_) add_gathered(place, level, coarse.cuts);
    fine = std::move(coarse);
  }
  levels_.back().solves = hierarchy.inverse.rows > 0;
  count_bytes();
  choose_packets(place, reports_, gathered_, extent_);
}

// The rows of the next level that each PE restricts to.
template <class T>
void GpuMultigrid<T>::add_gathered(const GpuPlace& place, Level& level,
                                   const std::vector<std::int64_t>& cuts) {
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    std::vector<std::int32_t> mine(at(cuts[k + 1] - cuts[k]));
    std::iota(mine.begin(), mine.end(), static_cast<std::int32_t>(cuts[k]));
    level.parts[k].gathers = {place.devices[k], mine};
    level.parts[k].gathered = Array<float>(place.devices[k], mine.size());
  }
}

template <class T>
void GpuMultigrid<T>::count_bytes() {
  for (std::size_t l = 0; l < levels_.size(); ++l)
    for (const Matrix* matrix :
         {&levels_[l].matrix, &levels_[l].restriction, &levels_[l].prolongation})
      reports_[l].bytes += bytes_of<float>(matrix->layouts);
}

template <class T>
void GpuMultigrid<T>::remake(const GpuPlace& place, const GpuRows<T>& sent,
                             const multigrid::Options& options, LapTimer& timer) {
  remake_hierarchy_on_gpu<T>(
      place.devices.front(),
      {sent.rows, sent.nnz, sent.ptr.data(), sent.col.data(), sent.val.data()}, options, *made_,
      &timer);
}

template <class T>
void GpuMultigrid<T>::rewrite(const GpuRows<T>& rows, const PeLayout& of_a) {
  const gpu::OnDevice here(rows.device());
  LevelPacker packer(rows.device(), static_cast<int>(of_a.shares.size()), threads_, *made_->kept);
  pack_levels(packer, rows, of_a);
}

// All matrices of the levels, the first time and again.
template <class T>
void GpuMultigrid<T>::pack_levels(LevelPacker& packer, const GpuRows<T>& rows,
                                  const PeLayout& of_a) {
  const HierarchyOnGpu& h = *made_;
  const auto in_blocks_of = [](const Level& of) { return plans_of(of.matrix.layouts.front()); };
  packer.pack_first(rows, h.scale().data(), of_a, packed(levels_.front().matrix));
  pes_.front().scale = packer.private_scale(rows, of_a, h.scale().data());
  levels_.back().solves = h.inverse.rows > 0;
  for (std::size_t l = 1; l < levels_.size(); ++l) {
    const LevelOnGpu& above = h.levels[l - 1];
    const LevelOrder &fine = orders_[l - 1], &coarse = orders_[l];
    Level &from = levels_[l - 1], &level = levels_[l];
    packer.pack(level.solves ? h.inverse : h.levels[l].matrix, coarse, coarse, {},
                packed(level.matrix));
    packer.pack(above.prolongator, fine, coarse, in_blocks_of(from), packed(from.prolongation));
    packer.pack(above.restriction, coarse, fine, in_blocks_of(level), packed(from.restriction));
  }
  for (std::size_t l = 0; l < levels_.size(); ++l) levels_[l].lambda = h.levels[l].lambda;
}

// Of the one PE, which may not have anything yet.
template <class T>
PackedOnGpu GpuMultigrid<T>::packed(Matrix& matrix) {
  matrix.layouts.resize(1);
  matrix.slices.resize(1);
  return {matrix.layouts.front(), matrix.slices.front()};
}

template <class T>
auto GpuMultigrid<T>::send(const GpuPlace& place, const HaloPlan<float>& plan,
                           const BlockPlans& blocks, LevelReport& report) const -> Matrix {
  Matrix made{lay_out_shares(plan, blocks, options_of_levels(threads_)),
              std::vector<SlicesOnGpu<float>>(pes_.size())};
  std::vector<SlicesOnGpu<float>*> slices;
  for (auto& of_pe : made.slices) slices.push_back(&of_pe);
  for (std::size_t k = 0; k < slices.size(); ++k)
    slices[k]->bytes =
        Array<std::byte>::uninitialised(place.devices[k], at(made.layouts[k].units * kSliceUnit));
  fill_slices<float>(place.devices, plan, made.layouts, slices);
  report.bytes += bytes_of<float>(made.layouts);
  return made;
}

template <class T>
void GpuMultigrid<T>::add_level(const GpuPlace& place, const LevelPlan& plan) {
  LevelReport& report = reports_[levels_.size()];
  Level& level = levels_.emplace_back();
  extent_.rows_and_ghosts.push_back(plan.rows_and_ghosts);
  level.matrix = send(place, plan.plan, plan.blocks, report);
  add_parts(place, level, plan.plan);
}

template <class T>
void GpuMultigrid<T>::add_parts(const GpuPlace& place, Level& level, const HaloPlan<float>& plan) {
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    const LocalSystem<float>& local = plan.local[k];
    const int device = place.devices[k];
    Part& part = level.parts.emplace_back();
    part.rows = local.rows();
    part.interior = local.interior;
    part.send_ptr = {device, local.send_ptr};
    part.destinations = {device, local.destinations};
    for (auto& vector : part.vectors)
      vector = Array<float>(device, at(level.matrix.layouts[k].private_rows));
  }
}

template <class T>
void GpuMultigrid<T>::add_transfers(const GpuPlace& place, const TransferPlan& plan,
                                    std::size_t l) {
  Level& level = levels_[l];
  BlockPlans blocks;
  for (const PeLayout& layout : level.matrix.layouts) blocks.push_back(plans_of(layout));
  level.prolongation = send(place, plan.prolongation, blocks, reports_[l]);
  level.restriction = send(place, plan.restriction, plan.restriction_blocks, reports_[l]);
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    Part& part = level.parts[k];
    const int device = place.devices[k];
    if (l + 1 != gathered_) continue;
    part.gathers = {device, plan.restriction.local[k].global_row};
    part.gathered = Array<float>(device, part.gathers.size());
  }
}

template <class T>
auto GpuMultigrid<T>::arguments(std::size_t l, std::size_t k, int device, const LevelHeap& heap,
                                std::byte* base) -> std::vector<CycleLevel<Single>> {
  Level& level = levels_[l];
  Part& part = level.parts[k];
  const PeLayout& layout = level.matrix.layouts[k];
  const auto boards = boards_of(plans_of(layout), device, heap.flags.at(base), part.partners);
  CycleLevel<Single> all;
  all.args.vectors.r = part.vectors[0].data();
  all.args.vectors.x = part.vectors[1].data();
  for (int i = 0; i < 2; ++i) all.args.vectors.scratch[i] = heap.scratch[i].at(base);
  all.args.rows = part.rows;
  all.args.send_ptr = part.send_ptr.data();
  all.args.destinations = part.destinations.data();
  all.solves = level.solves;
  const bool last = l + 1 == levels_.size();
  all.told = !last ? 5 : level.solves ? 1 : 3;
  set_steps(all, level.lambda);
  if (extent_.packets[l] > 0) {
    std::vector<std::int32_t> first;
    for (const ShareLayout& share : layout.shares) first.push_back(share.plan.interior.begin);
    part.first_rows = {device, first};
    all.packets = {heap.packets.at(base), part.first_rows.data()};
  }
  std::vector<CycleLevel<Single>> blocks(layout.shares.size(), all);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const ShareLayout& share = layout.shares[b];
    BlockShare<Single>& view = blocks[b].share;
    view.matrix = slices_of(level.matrix.slices[k], share);
    place_rows(view, share);
    view.board = boards[b];
    view.first_private = share.first_private;
    view.boundary_shift = share.plan.boundary.begin;
    view.interior_shift = share.plan.interior.begin - share.plan.boundary.size();
    view.remote_end = share.plan.boundary.end;
    view.send_shift = part.interior;
    if (last) continue;
    const auto view_of = [&](const Matrix& matrix) {
      return transfer_of(matrix.slices[k], matrix.layouts[k].shares[b]);
    };
    blocks[b].restriction = view_of(level.restriction);
    blocks[b].prolongation = view_of(level.prolongation);
  }
  return blocks;
}

template <class T>
void GpuMultigrid<T>::add_gathering(std::vector<CycleLevel<Single>>& blocks, std::size_t l,
                                    std::size_t k, int device, const Heap<T>& heap,
                                    std::byte* base) {
  Part& part = levels_[l].parts[k];
  const auto boards = boards_of(plans_of(levels_[l].restriction.layouts[k]), device,
                                heap.gather_flags.at(base), part.gather_partners);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    blocks[b].gathering = {heap.gathered.at(base), part.gathers.data(), part.gathered.data(),
                           boards[b]};
}

template <class T>
void GpuMultigrid<T>::show(const GpuPlace& place, const Heap<T>& heap, const GpuHeaps& heaps) {
  const std::size_t count = levels_.size();
  for (std::size_t k = 0; k < pes_.size(); ++k) {
    std::byte* const base = heaps.base(place.own.first + static_cast<int>(k));
    const int device = place.devices[k];
    std::vector<CycleLevel<Single>> all(levels_.front().matrix.layouts[k].shares.size() * count);
    for (std::size_t l = 0; l < count; ++l) {
      auto blocks = arguments(l, k, device, heap.levels[l], base);
      if (l + 1 == gathered_) add_gathering(blocks, l, k, device, heap, base);
      for (std::size_t b = 0; b < blocks.size(); ++b) all[b * count + l] = blocks[b];
    }
    pes_[k].levels = {device, all};
    CycleArgs<WarpSlices<T>> args;
    args.levels = pes_[k].levels.data();
    args.count = static_cast<std::int32_t>(count);
    args.scale = pes_[k].scale.data();
    pes_[k].args = {device, std::vector{args}};
  }
}

template class GpuMultigrid<float>;
template class GpuMultigrid<double>;

}  // namespace cpufree
