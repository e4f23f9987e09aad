#include "cpufree/systems/multigrid_layout.hpp"

#include <numeric>
#include <utility>

#include "cpufree/base/error.hpp"

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
        if (column < 0) throw EngineError("a level of multigrid reads a row that nobody sends");
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

SparseMatrix full_matrix(const std::vector<double>& values, std::int32_t n) {
  SparseMatrix full;
  full.columns = n;
  full.row_ptr.resize(at(n) + 1);
  for (std::int32_t i = 0; i <= n; ++i) full.row_ptr[at(i)] = std::int64_t{i} * n;
  full.col.resize(values.size());
  for (std::size_t k = 0; k < values.size(); ++k)
    full.col[k] = static_cast<std::int32_t>(k % at(n));
  full.val.assign(values.begin(), values.end());
  return full;
}

// Rows of a level, the long ones of each window first; a row of the restriction to the level counts
// as well as one of its matrix.
std::vector<std::int32_t> by_length(const SparseMatrix& matrix, const SparseMatrix& prolongator) {
  constexpr std::int32_t kWindow = 256;
  std::vector<std::int64_t> length(at(matrix.rows()));
  for (std::int32_t row = 0; row < matrix.rows(); ++row)
    length[at(row)] = matrix.end(row) - matrix.begin(row);
  for (const std::int32_t column : prolongator.col) ++length[at(column)];
  std::vector<std::int32_t> order(length.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::int32_t first = 0; first < matrix.rows(); first += kWindow)
    std::stable_sort(order.begin() + first,
                     order.begin() + std::min(first + kWindow, matrix.rows()),
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

}  // namespace

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
LocalSystem<float> without_entries(const LocalSystem<T>& from) {
  LocalSystem<float> local;
  local.interior = from.interior;
  local.ghosts = from.ghosts;
  local.global_row = from.global_row;
  local.neighbours = from.neighbours;
  local.ghost_owner = from.ghost_owner;
  local.ghost_row = from.ghost_row;
  local.ghost_name = from.ghost_name;
  local.send_ptr = from.send_ptr;
  local.destinations = from.destinations;
  return local;
}

template <class T>
HaloPlan<float> plan_of_first_level(const Hierarchy& hierarchy, const HaloPlan<T>& plan) {
  HaloPlan<float> made;
  const SparseMatrix& matrix = hierarchy.levels.front().matrix;
  for (const LocalSystem<T>& from : plan.local) {
    LocalSystem<float>& local = made.local.emplace_back(without_entries(from));
    fill(matrix, numbers_in(local, matrix.columns), local);
  }
  return made;
}

HaloPlan<float> plan_of_level(const Hierarchy& hierarchy, std::size_t level, int pes) {
  const multigrid::Level& of = hierarchy.levels[level];
  const bool inverted = level + 1 == hierarchy.levels.size() && !hierarchy.inverse.empty();
  const auto order = by_length(of.matrix, hierarchy.levels[level - 1].prolongator);
  if (!inverted) return plan_in_single(of.matrix, of.owner, order, pes);
  return plan_in_single(full_matrix(hierarchy.inverse, of.matrix.rows()), of.owner, order, pes);
}

LocalSystem<float> own_rows_of(const SparseMatrix& matrix, const LocalSystem<float>& rows,
                               const LocalSystem<float>& columns) {
  LocalSystem<float> local;
  local.global_row = rows.global_row;
  fill(matrix, numbers_in(columns, matrix.columns), local);
  local.rows_elsewhere = columns.rows() + columns.ghosts;  // what padding may read
  return local;
}

template LocalSystem<float> without_entries(const LocalSystem<float>&);
template LocalSystem<float> without_entries(const LocalSystem<double>&);
template HaloPlan<float> plan_of_first_level(const Hierarchy&, const HaloPlan<float>&);
template HaloPlan<float> plan_of_first_level(const Hierarchy&, const HaloPlan<double>&);

}  // namespace cpufree
