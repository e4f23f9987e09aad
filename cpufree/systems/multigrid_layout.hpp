// The levels of multigrid as the PEs have them, on any engine.
#pragma once

#include <vector>

#include "cpufree/multigrid/hierarchy.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/systems/result.hpp"

namespace cpufree {

// Without the bytes.
std::vector<LevelReport> report_of(const multigrid::Hierarchy& hierarchy);

// Rows and exchanges of a share of A, without its entries.
template <class T>
LocalSystem<float> without_entries(const LocalSystem<T>& from);
// Level 0 of a hierarchy, whose rows are numbered and exchanged as in the plan of A.
template <class T>
HaloPlan<float> plan_of_first_level(const multigrid::Hierarchy& hierarchy, const HaloPlan<T>& plan);
// Another level; the last one has the inverse in place of the matrix, if there is one. Rows are
// sorted by their lengths within windows, so that slices of them need little padding.
HaloPlan<float> plan_of_level(const multigrid::Hierarchy& hierarchy, std::size_t level, int pes);

// The rows of a PE of a matrix between two levels. `rows`, `columns`: the PE's share of these; all
// columns count as its own. Throws EngineError where a column is neither a row nor a ghost there.
LocalSystem<float> own_rows_of(const multigrid::SparseMatrix& matrix,
                               const LocalSystem<float>& rows, const LocalSystem<float>& columns);

}  // namespace cpufree
