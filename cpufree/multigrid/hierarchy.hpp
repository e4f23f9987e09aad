// A hierarchy of smoothed aggregation: the levels of a multigrid cycle, as plain data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cpufree/multigrid/near_null_space.hpp"

namespace cpufree::multigrid {

struct Options {
  double theta = 0.08;          // an entry is strong where |a_ij| >= theta sqrt(a_ii a_jj); level 0
  std::int32_t coarsest = 500;  // rows that are few enough for a dense inverse
  double least_ratio = 1.3;     // rows with strong couplings over aggregates, or there are none
  double most_complexity = 2.5;  // nonzeros of all levels over those of A
  // Of several PEs each has all of a level with at most this many rows. Aggregates there cross PEs.
  std::int32_t gathered = 0;
};

// Of a Galerkin product, for each nonzero of A, at most: 7-point grids take 6.
inline constexpr double kMostMultiplications = 100.0;

struct Level {
  // D^-1/2 A D^-1/2 of this level's operator A, whose diagonal is D: its own is 1.
  SparseMatrix matrix;
  // From the next level's unknowns to these, both scaled. The last level has none.
  SparseMatrix prolongator;
  // The PE of each row. Of the first level that all PEs have whole: which one restricts to it.
  std::vector<std::int32_t> owner;
  double lambda = 1.0;  // largest eigenvalue of the matrix
};

// What has been decided on the way from a level to the next one. With other values the levels have
// the same patterns.
struct Coarsening {
  Strength strong;        // empty where rows are not nodes: all entries count
  Aggregates aggregates;  // of nodes
  // Of nodes: the prolongator, and the next level's matrix from the diagonal on.
  SparsePattern prolongator, upper;
};

struct Hierarchy {
  std::vector<Level> levels;
  std::vector<Coarsening> coarsenings;  // of all levels but the last one
  std::vector<double> scale;            // D^-1/2 of A
  std::size_t gathered = 0;             // the first level that all PEs have whole; 0: none
  // Of the last level's matrix, row by row. Empty: it has too many rows, or is level 0.
  std::vector<double> inverse;
  std::string why;  // what has kept it from coarser levels; "": nothing

  bool is_whole(std::size_t level) const { return gathered > 0 && level >= gathered; }
  // Nonzeros of all levels over those of A.
  double complexity() const;
};

// The hierarchy of a symmetric matrix whose row i is of PE owner[i]; aggregates stay inside a PE,
// down to the level that all PEs have. `order`: the sequence of rows by which level 1 is numbered,
// empty for the natural one. `near`: what the levels have to represent, null for the constant; the
// rows of a node are of one PE. By all cores, with the same bits on any number of them.
template <class T>
Hierarchy make_hierarchy(const CsrView<T>& a, std::span<const std::int32_t> owner,
                         std::span<const std::int32_t> order, const Options& options = {},
                         const NearNullSpace* near = nullptr);

// The same of a matrix with the pattern of another one, the hierarchy of which had these
// `coarsenings`: numbers alone are computed again.
template <class T>
Hierarchy remake_hierarchy(const CsrView<T>& a, std::span<const std::int32_t> owner,
                           std::vector<Coarsening> coarsenings, const Options& options = {},
                           const NearNullSpace* near = nullptr);

// The hierarchy with these prolongators, the finest first, in the rows of A of one PE; all their
// columns have entries. Matrices of coarse levels are P^T A P.
template <class T>
Hierarchy hierarchy_of_prolongators(const CsrView<T>& a, std::span<const SparseMatrix> prolongators,
                                    const Options& options = {});

}  // namespace cpufree::multigrid
