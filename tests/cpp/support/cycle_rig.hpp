// Multigrid for a rig (kernel_rig.hpp): the levels of all PEs, in plain rows.
#pragma once

#include <array>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/device/symmetric.hpp"
#include "cpufree/formats/csr_rows.hpp"
#include "cpufree/multigrid/cycle_args.hpp"
#include "cpufree/multigrid/hierarchy.hpp"
#include "cpufree/multigrid/host/multigrid_layout.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "matrices.hpp"

namespace testing_rig {

using namespace cpufree;

// What a rig reserves for levels in its heaps.
struct LevelsHeap {
  static constexpr std::size_t kMost = 4;
  std::array<Symmetric<Flag>, kMost> flags;
  std::array<std::array<Symmetric<float>, 2>, kMost> scratch;
  Symmetric<Flag> gather_flags;
  Symmetric<float> gathered;

  LevelsHeap() = default;
  // `length`: rows and ghosts of a PE, at most.
  LevelsHeap(SymmetricLayout& layout, int pes, int blocks, std::size_t length) {
    for (auto& f : flags)
      f = layout.reserve<Flag>(static_cast<std::size_t>(arrival_flag_count(pes, blocks, 1)));
    for (auto& level : scratch)
      for (auto& s : level) s = layout.reserve<float>(length);
    gather_flags =
        layout.reserve<Flag>(static_cast<std::size_t>(arrival_flag_count(pes, blocks, 1)));
    gathered = layout.reserve<float>(length);
  }
};

class RigCycle {
  using Matrix = CsrRows<double>;
  using Single = CsrRows<float>;
  using Plans = std::vector<std::vector<BlockPlan>>;

 public:
  RigCycle(const testing_matrices::Matrix<double>& a, const HaloPlan<double>& plan, int blocks,
           const multigrid::Options& options)
      : args_(plan.local.size()), levels_(plan.local.size()), scale_(plan.local.size()) {
    std::vector<std::int32_t> owner(at(a.n()));
    for (std::size_t pe = 0; pe < plan.local.size(); ++pe)
      for (const std::int32_t row : plan.local[pe].global_row)
        owner[at(row)] = static_cast<std::int32_t>(pe);
    const auto h = multigrid::make_hierarchy(a.view(), owner, {}, options);
    const int pes = static_cast<int>(plan.local.size());
    const OwnPes own{0, pes, pes};
    gathered_ = h.gathered;
    LevelPlan fine =
        plan_of_first_level(h, plan, make_block_plans(plan, blocks, Awaited::everybody), 0);
    for (std::size_t l = 0; l < h.levels.size(); ++l) {
      if (l > 0) {
        LevelPlan coarse = plan_of_level(h, l, own, blocks);
        made_.back().add(plan_of_transfers(h, l - 1, fine, coarse, own));
        fine = std::move(coarse);
      }
      Level& level = made_.emplace_back();
      level.plan = fine.plan;
      level.blocks = fine.blocks;
      level.lambda = h.levels[l].lambda;
      level.solves = l + 1 == h.levels.size() && !h.inverse.empty();
      level.parts.resize(at(pes));
      for (std::size_t pe = 0; pe < at(pes); ++pe)
        level.parts[pe].matrix = rows_of(level.plan.local[pe]);
    }
    for (std::size_t pe = 0; pe < at(pes); ++pe)
      for (const std::int32_t row : plan.local[pe].global_row)
        scale_[pe].push_back(h.scale[at(row)]);
  }
  RigCycle(const RigCycle&) = delete;
  RigCycle& operator=(const RigCycle&) = delete;

  std::size_t levels() const { return made_.size(); }
  // The first level that all PEs have whole; 0: none.
  std::size_t gathered() const { return gathered_; }

  // What the kernel of a PE is given.
  const CycleArgs<Matrix>* place(std::size_t pe, const LevelsHeap& heap, std::byte* base) {
    for (std::size_t b = 0; b < made_.front().blocks[pe].size(); ++b)
      for (std::size_t l = 0; l < made_.size(); ++l)
        levels_[pe].push_back(level_of(l, pe, b, heap, base));
    args_[pe] = {levels_[pe].data(), static_cast<std::int32_t>(made_.size()), scale_[pe].data()};
    return &args_[pe];
  }
  // For tests of what becomes of blocks that wait for too few.
  void forget_partners() {
    for (auto& of_pe : levels_)
      for (CycleLevel<Single>& level : of_pe)
        level.share.board.await_local_count = level.share.board.await_count = 0;
  }
  // Of the exchange by which a level is gathered.
  void forget_gathering() {
    for (auto& of_pe : levels_)
      for (CycleLevel<Single>& level : of_pe) level.gathering.board.await_count = 0;
  }

 private:
  struct Rows {
    LocalSystem<float> local;
    std::vector<std::uint32_t> row_ptr;
    Single format() const { return {row_ptr.data(), local.col.data(), local.val.data()}; }
    Single::Rows range(RowRange r) const { return {r.begin, r.end, local.row_ptr[at(r.begin)]}; }
  };
  struct Part {
    Rows matrix, up, down;
    std::array<std::vector<float>, 3> vectors;
    std::vector<float> gathered;
  };
  struct Level {
    HaloPlan<float> plan;
    Plans blocks, restriction_blocks;
    std::vector<Part> parts;
    double lambda = 1.0;
    bool solves = false;

    void add(TransferPlan transfers) {
      for (std::size_t pe = 0; pe < parts.size(); ++pe) {
        parts[pe].up = rows_of(std::move(transfers.prolongation.local[pe]));
        parts[pe].down = rows_of(std::move(transfers.restriction.local[pe]));
      }
      restriction_blocks = std::move(transfers.restriction_blocks);
    }
  };

  static ArrivalBoard board_of(const BlockPlan& plan, Flag* flags) {
    return {flags,
            plan.notify.data(),
            plan.await.data(),
            plan.await_local.data(),
            static_cast<std::int32_t>(plan.notify.size()),
            static_cast<std::int32_t>(plan.await.size()),
            static_cast<std::int32_t>(plan.await_local.size())};
  }
  static Rows rows_of(LocalSystem<float> local) {
    Rows rows;
    rows.row_ptr.assign(local.row_ptr.begin(), local.row_ptr.end());
    rows.local = std::move(local);
    return rows;
  }

  CycleLevel<Single> level_of(std::size_t l, std::size_t pe, std::size_t block,
                              const LevelsHeap& heap, std::byte* base) {
    Level& level = made_[l];
    Part& part = level.parts[pe];
    const auto& local = level.plan.local[pe];
    const BlockPlan& plan = level.blocks[pe][block];
    CycleLevel<Single> made;
    made.share = {part.matrix.format(), part.matrix.range(plan.interior),
                  part.matrix.range(plan.boundary), board_of(plan, heap.flags[l].at(base))};
    made.share.remote_end = plan.boundary.end;
    made.share.send_shift = local.interior;
    if (block == 0) {  // those of the PE
      for (auto& vector : part.vectors) vector.assign(at(local.rows()) + 1, 0.0F);
      part.gathered.assign(part.down.local.global_row.size() + 1, 0.0F);
    }
    made.args.vectors.r = part.vectors[0].data();
    made.args.vectors.x = part.vectors[1].data();
    made.args.vectors.s = part.vectors[2].data();
    for (std::size_t k = 0; k < 2; ++k) made.args.vectors.scratch[k] = heap.scratch[l][k].at(base);
    made.args.rows = local.rows();
    made.args.send_ptr = local.send_ptr.data();
    made.args.destinations = local.destinations.data();
    made.solves = level.solves;
    set_steps(made, level.lambda);
    if (l + 1 == made_.size()) return made;
    const BlockPlan& below = level.restriction_blocks[pe][block];
    made.prolongation = {part.up.format(), part.up.range(plan.interior),
                         part.up.range(plan.boundary)};
    made.restriction = {part.down.format(), part.down.range(below.interior),
                        part.down.range(below.boundary)};
    if (l + 1 == gathered_)
      made.gathering = {heap.gathered.at(base), part.down.local.global_row.data(),
                        part.gathered.data(), board_of(below, heap.gather_flags.at(base))};
    return made;
  }

  std::vector<Level> made_;
  std::size_t gathered_ = 0;
  std::vector<CycleArgs<Matrix>> args_;
  std::vector<std::vector<CycleLevel<Single>>> levels_;
  std::vector<std::vector<double>> scale_;
};

}  // namespace testing_rig
