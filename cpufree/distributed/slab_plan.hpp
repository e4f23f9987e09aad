// The plan of a matrix that no process holds: each rank has some consecutive rows, and finds its
// share of the plan by asking the others. What travels are the entries between ranks, and the
// numbers of ghosts.
#pragma once

#include <cstdint>

#include "cpufree/distributed/slab_check.hpp"
#include "cpufree/distributed/team.hpp"
#include "cpufree/problem/csr.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// The share of one rank.
template <class T>
struct SlabPlan {
  std::int64_t first = 0;     // number of its first row in the matrix
  std::int64_t all_rows = 0;  // of the matrix
  HaloPlan<T> plan;           // one share, whose `global_row` counts from `first`
  // The largest |a_ij - a_ji| / sqrt(s_i s_j) of the matrix (EntryRule), where that was asked for.
  double asymmetry = 0.0;
};

// What make_halo_plan finds for the PE of this rank where each owns the rows of its slab. All
// members of the team call it together; the slabs, by rank, are all rows of the matrix.
//
// The pattern must be symmetric: between ranks that is always checked, in a rank if
// the tolerance is not negative, as then are entries, by the rule.
//
// Throws InvalidInput where the slabs are not the rows of one matrix, BadEntry for an entry. What
// several ranks find is thrown in one of them; the calls of the others throw then, as Team says.
template <class T>
SlabPlan<T> plan_slab(const RowSlab<T>& slab, Team& team, const EntryRule& rule);

}  // namespace cpufree
