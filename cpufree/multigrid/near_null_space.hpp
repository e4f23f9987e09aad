// What coarse levels have to represent: vectors that A nearly maps to zero, such as the rigid body
// modes of an elastic body; and which rows are the unknowns of one node.
#pragma once

#include <span>
#include <vector>

#include "cpufree/multigrid/aggregation.hpp"

namespace cpufree::multigrid {

inline constexpr std::int32_t kMostModes = 6;

struct NearNullSpace {
  std::int32_t modes = 1;
  PageVector<double> vectors;      // rows x modes, row by row
  std::vector<std::int32_t> node;  // of each row; empty: each row is a node
  std::int32_t nodes = 0;          // where `node` is given

  static NearNullSpace constant(std::int32_t rows);
  // Of vectors of the caller's, and the node of each row or none. Throws InvalidInput.
  static NearNullSpace of(std::span<const double> vectors, std::int32_t modes,
                          std::span<const std::int32_t> node);
};

// The same partition but that all rows of a node are on the PE of its first one.
std::vector<std::int32_t> with_whole_nodes(std::span<const std::int32_t> part,
                                           std::span<const std::int32_t> node);

// Rows by their group: those of group g are row[first[g]] to row[first[g + 1] - 1].
struct Groups {
  std::vector<std::int32_t> first, row;

  static Groups of_single_rows(std::int32_t rows);
  std::int32_t count() const { return static_cast<std::int32_t>(first.size()) - 1; }
  std::span<const std::int32_t> of(std::int32_t group) const {
    return std::span(row).subspan(at(first[at(group)]),
                                  at(first[at(group) + 1] - first[at(group)]));
  }
};
// group[i], -1: none, is that of row i.
Groups rows_by_group(std::span<const std::int32_t> group, std::int32_t count);

// The tentative prolongator T (Vanek, Mandel & Brezina 1996): an orthonormal basis of the vectors
// in each aggregate, so that T coarse.vectors = vectors there; where there is one vector, it is
// taken as it is. Vectors that are dependent in an aggregate make fewer columns.
struct Tentative {
  std::vector<std::int32_t> of_row;  // aggregate of each row; -1: none
  std::vector<std::int32_t> first;   // column of each aggregate; aggregates + 1
  PageVector<double> values;  // rows x modes: a row's entries in the columns of its aggregate
  NearNullSpace coarse;       // of the columns, each aggregate a node

  std::int32_t columns() const { return first.back(); }
};
Tentative tentative_prolongator(const NearNullSpace& near, std::vector<std::int32_t> of_row,
                                std::int32_t aggregates);

}  // namespace cpufree::multigrid
