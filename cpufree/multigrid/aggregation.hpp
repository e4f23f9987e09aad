// Aggregates of strongly coupled rows, each of rows of one PE.
#pragma once

#include <span>

#include "cpufree/multigrid/strength.hpp"

namespace cpufree::multigrid {

struct Aggregates {
  std::int32_t count = 0;
  std::vector<std::int32_t> of_row;  // -1: a row of none, which has no strong coupling

  // A row of each.
  std::vector<std::int32_t> roots;
};

// A maximal set of rows at distance 3 or more from one another, of those that are `candidate`, in
// the graph of these: MIS(2) of Bell, Dalton & Olson 2012, "Exposing fine-grained parallelism in
// algebraic multigrid methods". Rows with large keys (noise of their numbers) come first. The same
// on any number of cores.
std::vector<char> independent_set(const StrongGraph& graph, const std::vector<char>& candidate);

// Roots are an independent set, whose neighbours join them. So do, in a second pass, rows that are
// left over, where enough of them are neighbours; others join the aggregate to which their
// strongest coupling leads. `a`: the matrix of the graph. Aggregates are numbered by their roots,
// in the sequence of rows `order`, empty for the natural one. `least`: rows of an aggregate of the
// second pass.
inline constexpr std::int32_t kLeastLeftOver = 5;
Aggregates aggregate(const StrongGraph& graph, const SparseMatrix& a,
                     std::span<const std::int32_t> order = {}, std::int32_t least = kLeastLeftOver);

}  // namespace cpufree::multigrid
