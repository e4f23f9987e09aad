#include "cpufree/multigrid/host/multigrid_layout.hpp"

#include <numeric>
#include <utility>

#include "cpufree/base/error.hpp"
#include "cpufree/solvers/host/setup.hpp"

namespace cpufree {

namespace {

using multigrid::Hierarchy;
using multigrid::SparseMatrix;

// Fills the entries of a share from the rows of a matrix, by the PE's numbers of the columns.
void fill(const SparseMatrix& matrix, const std::vector<std::int32_t>& number,
          LocalSystem<float>& local) {
  const auto rows = static_cast<std::int32_t>(local.global_row.size());
  local.row_ptr.assign(at(rows) + 1, 0);
  for (std::int32_t i = 0; i < rows; ++i) {
    const std::int32_t row = local.global_row[at(i)];
    local.row_ptr[at(i) + 1] = local.row_ptr[at(i)] + matrix.end(row) - matrix.begin(row);
  }
  local.col.resize(at(local.row_ptr.back()));
  local.val.resize(at(local.row_ptr.back()));
  multigrid::for_pieces(rows, [&](int, RowRange range) {
    std::vector<std::pair<std::int32_t, float>> entries;
    for (std::int32_t i = range.begin; i < range.end; ++i) {
      const std::int32_t row = local.global_row[at(i)];
      entries.clear();
      for (std::int64_t k = matrix.begin(row); k < matrix.end(row); ++k) {
        const std::int32_t column = number[at(matrix.col[at(k)])];
        if (column < 0) throw EngineError("a level of multigrid reads a row that no PE sends");
        entries.emplace_back(column, static_cast<float>(matrix.val[at(k)]));
      }
      std::ranges::sort(entries, {}, [](const auto& entry) { return entry.first; });
      auto to = at(local.row_ptr[at(i)]);
      for (const auto& [column, value] : entries) local.col[to] = column, local.val[to++] = value;
    }
  });
}

// The PE's numbers of all columns, -1 for those that it has neither as rows nor as ghosts.
std::vector<std::int32_t> numbers_in(const LocalSystem<float>& local, std::int32_t columns) {
  std::vector<std::int32_t> number(at(columns), -1);
  for (std::int32_t i = 0; i < local.rows() + local.ghosts; ++i) number[at(local.name_of(i))] = i;
  return number;
}

// Rows of a level, the long ones of each window first; a row of the restriction to the level counts
// as well as one of its matrix.
std::vector<std::int32_t> by_length(const SparseMatrix& matrix, const SparseMatrix& prolongator) {
  std::vector<std::int64_t> length(at(matrix.rows()));
  for (std::int32_t row = 0; row < matrix.rows(); ++row)
    length[at(row)] = matrix.end(row) - matrix.begin(row);
  for (const std::int32_t column : prolongator.col) ++length[at(column)];
  std::vector<std::int32_t> order(length.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::int32_t first = 0; first < matrix.rows(); first += kLevelWindow)
    std::stable_sort(order.begin() + first,
                     order.begin() + std::min(first + kLevelWindow, matrix.rows()),
                     [&](std::int32_t a, std::int32_t b) { return length[at(a)] > length[at(b)]; });
  return order;
}

HaloPlan<float> plan_in_single(const SparseMatrix& matrix, const std::vector<std::int32_t>& owner,
                               const std::vector<std::int32_t>& order, int pes) {
  PageVector<float> values(matrix.val.size());
  multigrid::for_rows(matrix.rows(), [&](std::int32_t row) {
    for (std::int64_t k = matrix.begin(row); k < matrix.end(row); ++k)
      values[at(k)] = static_cast<float>(matrix.val[at(k)]);
  });
  return make_halo_plan<float>({matrix.rows(), matrix.row_ptr, matrix.col, values}, owner, order,
                               pes);
}

// Rows of a matrix between two levels. `columns`: the PE's share of these; all of them count as its
// own.
LocalSystem<float> own_rows_of(const SparseMatrix& matrix, const std::vector<std::int32_t>& rows,
                               const LocalSystem<float>& columns) {
  LocalSystem<float> local;
  local.global_row = rows;
  fill(matrix, numbers_in(columns, matrix.columns), local);
  local.interior = static_cast<std::int32_t>(rows.size());
  local.rows_elsewhere = columns.rows() + columns.ghosts;  // what padding may read
  return local;
}

}  // namespace

void refuse_multigrid_of_slabs(const FactorSpec& factors) {
  if (factors.multigrid())
    throw Unsupported(
        "the preconditioner amg wants all of the matrix in every process; where each has its own "
        "rows, choose another");
}

multigrid::Options multigrid_options(const FactorSpec& factors, std::int32_t gathered) {
  multigrid::Options options;
  options.gathered = factors.gathered >= 0 ? factors.gathered : gathered;
  return options;
}

template <class T>
void list_rows(const HaloPlan<T>& plan, std::vector<std::int32_t>& owner,
               std::vector<std::int32_t>& order) {
  std::size_t rows = 0;
  for (const LocalSystem<T>& local : plan.local) rows += local.global_row.size();
  owner.resize(rows);
  for (std::size_t pe = 0; pe < plan.local.size(); ++pe)
    for (const std::int32_t row : plan.local[pe].global_row) {
      owner[at(row)] = static_cast<std::int32_t>(pe);
      order.push_back(row);
    }
}

template <class T>
Hierarchy hierarchy_of(const CsrView<T>& matrix, const HaloPlan<T>& plan,
                       const multigrid::Options& options, const FactorSpec& factors,
                       std::vector<std::int32_t>& owner) {
  if (factors.prolongators && plan.local.size() > 1)
    throw Unsupported(
        "levels from outside are for one PE, for their prolongators may reach further than A: pass "
        "pes=1, or let pc='amg' make levels of its own");
  std::vector<std::int32_t> order;
  list_rows(plan, owner, order);
  if (factors.prolongators)
    return multigrid::hierarchy_of_prolongators(matrix, *factors.prolongators, options);
  return multigrid::make_hierarchy(matrix, owner, order, options, factors.near.get());
}

SparseMatrix inverse_of(const Hierarchy& hierarchy) {
  const std::int32_t n = hierarchy.levels.back().matrix.rows();
  SparseMatrix full;
  full.columns = n;
  full.row_ptr.resize(at(n) + 1);
  for (std::int32_t i = 0; i <= n; ++i) full.row_ptr[at(i)] = std::int64_t{i} * n;
  full.col.resize(hierarchy.inverse.size());
  for (std::size_t k = 0; k < full.col.size(); ++k)
    full.col[k] = static_cast<std::int32_t>(k % at(n));
  full.val.assign(hierarchy.inverse.begin(), hierarchy.inverse.end());
  return full;
}

std::vector<LevelReport> report_of(const Hierarchy& hierarchy) {
  std::vector<LevelReport> reports;
  for (const multigrid::Level& level : hierarchy.levels) {
    LevelReport report{level.matrix.rows(), level.matrix.nonzeros()};
    if (&level != &hierarchy.levels.back())
      report.transfer_nonzeros = level.prolongator.nonzeros();
    else
      report.inverted = !hierarchy.inverse.empty();
    reports.push_back(report);
  }
  return reports;
}

template <class T>
LocalSystem<float> without_entries(const LocalSystem<T>& of) {
  LocalSystem<float> local;
  local.interior = of.interior;
  local.ghosts = of.ghosts;
  local.rows_elsewhere = of.rows_elsewhere;
  local.global_row = of.global_row;
  local.neighbours = of.neighbours;
  local.ghost_owner = of.ghost_owner;
  local.ghost_row = of.ghost_row;
  local.ghost_name = of.ghost_name;
  local.send_ptr = of.send_ptr;
  local.destinations = of.destinations;
  return local;
}

template <class T>
LevelPlan plan_of_first_level(const Hierarchy& hierarchy, const HaloPlan<T>& plan,
                              BlockPlans blocks, std::size_t rows_and_ghosts,
                              LevelEntries entries) {
  LevelPlan made{{}, std::move(blocks), rows_and_ghosts};
  for (const LocalSystem<T>& from : plan.local) {
    LocalSystem<float> local = without_entries(from);
    const SparseMatrix& matrix = hierarchy.levels.front().matrix;
    if (entries == LevelEntries::here) fill(matrix, numbers_in(local, matrix.columns), local);
    made.plan.local.push_back(std::move(local));
  }
  return made;
}

LevelPlan plan_of_level(const Hierarchy& hierarchy, std::size_t level, const OwnPes& own,
                        int blocks) {
  const multigrid::Level& of = hierarchy.levels[level];
  const bool inverted = level + 1 == hierarchy.levels.size() && !hierarchy.inverse.empty();
  const SparseMatrix full = inverted ? inverse_of(hierarchy) : SparseMatrix();
  const SparseMatrix& matrix = inverted ? full : of.matrix;
  LevelPlan made;
  if (hierarchy.is_whole(level)) {  // of one PE, for each of them; what is gathered has its order
    const std::vector<std::int32_t> one(of.owner.size(), 0);
    made.plan.local.assign(at(own.here), plan_in_single(matrix, one, {}, 1).local.front());
  } else {
    const auto order = by_length(of.matrix, hierarchy.levels[level - 1].prolongator);
    made.plan = plan_in_single(matrix, of.owner, order, own.all);
  }
  for (const auto& local : made.plan.local)
    made.rows_and_ghosts = std::max(made.rows_and_ghosts, at(local.rows() + local.ghosts));
  if (!hierarchy.is_whole(level)) keep_own(made.plan, own);
  made.blocks = make_block_plans(made.plan, blocks, Awaited::everybody);
  return made;
}

namespace {

// Of what each PE restricts to and puts to all PEs, of which all blocks await one another.
BlockPlans blocks_of_gathering(const HaloPlan<float>& restriction, const OwnPes& own, int blocks) {
  HaloPlan<float> rows;  // of which each PE has neighbours only
  for (int k = 0; k < own.here; ++k) {
    LocalSystem<float> local;
    local.global_row = restriction.local[at(k)].global_row;
    local.row_ptr = restriction.local[at(k)].row_ptr;
    local.interior = local.rows();
    for (int pe = 0; pe < own.all; ++pe)
      if (pe != own.first + k) local.neighbours.push_back({pe});
    rows.local.push_back(std::move(local));
  }
  return make_block_plans(rows, blocks, Awaited::everybody);
}

}  // namespace

TransferPlan plan_of_transfers(const Hierarchy& hierarchy, std::size_t level, const LevelPlan& fine,
                               const LevelPlan& coarse, const OwnPes& own) {
  const SparseMatrix& up = hierarchy.levels[level].prolongator;
  const SparseMatrix down = transpose(up);
  const bool gathers = level + 1 == hierarchy.gathered;
  TransferPlan made;
  for (std::size_t k = 0; k < at(own.here); ++k) {
    const LocalSystem<float>&above = fine.plan.local[k], &below = coarse.plan.local[k];
    made.prolongation.local.push_back(own_rows_of(up, above.global_row, below));
    std::vector<std::int32_t> mine;
    if (gathers)
      for (std::int32_t row = 0; row < down.rows(); ++row)
        if (hierarchy.levels[level + 1].owner[at(row)] == own.first + static_cast<int>(k))
          mine.push_back(row);
    made.restriction.local.push_back(own_rows_of(down, gathers ? mine : below.global_row, above));
  }
  made.restriction_blocks =
      gathers ? blocks_of_gathering(made.restriction, own, static_cast<int>(fine.blocks[0].size()))
              : coarse.blocks;
  return made;
}

#define CPUFREE_MULTIGRID_LAYOUT(T)                                                        \
  template void list_rows(const HaloPlan<T>&, std::vector<std::int32_t>&,                  \
                          std::vector<std::int32_t>&);                                     \
  template Hierarchy hierarchy_of(const CsrView<T>&, const HaloPlan<T>&,                   \
                                  const multigrid::Options&, const FactorSpec&,            \
                                  std::vector<std::int32_t>&);                             \
  template LocalSystem<float> without_entries(const LocalSystem<T>&);                      \
  template LevelPlan plan_of_first_level(const Hierarchy&, const HaloPlan<T>&, BlockPlans, \
                                         std::size_t, LevelEntries);
CPUFREE_MULTIGRID_LAYOUT(float)
CPUFREE_MULTIGRID_LAYOUT(double)

}  // namespace cpufree
