// The levels of multigrid as the PEs have them, on any engine.
#pragma once

#include <vector>

#include "cpufree/distributed/team.hpp"
#include "cpufree/multigrid/hierarchy.hpp"
#include "cpufree/problem/blocks/block_plan.hpp"
#include "cpufree/solvers/host/result.hpp"
#include "cpufree/solvers/host/spec.hpp"

namespace cpufree {

// Throws Unsupported where multigrid is asked for: no process has the matrix.
void refuse_multigrid_of_slabs(const FactorSpec& factors);

// PEs share levels of up to `gathered` rows, where `factors` do not say otherwise.
multigrid::Options multigrid_options(const FactorSpec& factors, std::int32_t gathered);

// The PE of each row of a matrix whose plan has all PEs, and the rows PE by PE, as these have them.
template <class T>
void list_rows(const HaloPlan<T>& plan, std::vector<std::int32_t>& owner,
               std::vector<std::int32_t>& order);

// The hierarchy of such a matrix; every process makes the same. `owner` becomes the PE of each row.
// Throws Unsupported where `factors` have prolongators and there are several PEs.
template <class T>
multigrid::Hierarchy hierarchy_of(const CsrView<T>& matrix, const HaloPlan<T>& plan,
                                  const multigrid::Options& options, const FactorSpec& factors,
                                  std::vector<std::int32_t>& owner);

// Without the bytes.
std::vector<LevelReport> report_of(const multigrid::Hierarchy& hierarchy);

// The inverse of the last level, which has one, as a matrix.
multigrid::SparseMatrix inverse_of(const multigrid::Hierarchy& hierarchy);

using BlockPlans = std::vector<std::vector<BlockPlan>>;  // [PE here][block]

// Rows of coarser levels are sorted by length within windows of this size.
inline constexpr std::int32_t kLevelWindow = 256;

// A level as the PEs of this process have it.
struct LevelPlan {
  HaloPlan<float> plan;
  BlockPlans blocks;
  std::size_t rows_and_ghosts = 0;  // most of a PE, of all PEs
};

// The share of a PE, without its entries.
template <class T>
LocalSystem<float> without_entries(const LocalSystem<T>& of);

// Level 0, whose rows are numbered and exchanged as in the plan of A. `rows_and_ghosts`: most of a
// PE. Engines that have its entries in the layout of A leave them out.
enum class LevelEntries { here, left_out };
template <class T>
LevelPlan plan_of_first_level(const multigrid::Hierarchy& hierarchy, const HaloPlan<T>& plan,
                              BlockPlans blocks, std::size_t rows_and_ghosts,
                              LevelEntries entries = LevelEntries::here);
// Another level, of N blocks a PE, which await everybody. The last one has the inverse in
// place of the matrix, if there is one. Rows are sorted by their lengths within windows, so that
// slices of them need little padding.
LevelPlan plan_of_level(const multigrid::Hierarchy& hierarchy, std::size_t level, const OwnPes& own,
                        int blocks);

// From a level to the next one and back: the rows of the restriction and of the prolongator, in the
// PEs' numbers of the columns, without halos. The prolongator's blocks are those of the level; the
// restriction's are those of the next level, or of what each PE puts to all if that is gathered.
struct TransferPlan {
  HaloPlan<float> restriction, prolongation;
  BlockPlans restriction_blocks;
};
// Throws EngineError where a column is neither a row nor a ghost of the PE.
TransferPlan plan_of_transfers(const multigrid::Hierarchy& hierarchy, std::size_t level,
                               const LevelPlan& fine, const LevelPlan& coarse, const OwnPes& own);

}  // namespace cpufree
