// The graph of a PE's rows, made smaller before it is cut (block_cut.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// Whether two rows read the same columns, as the unknowns of a node of a mesh do.
template <class T>
bool same_columns(const LocalSystem<T>& local, std::int32_t a, std::int32_t b) {
  const auto columns = local.col.begin();
  return std::equal(columns + local.row_ptr[at(a)], columns + local.row_ptr[at(a) + 1],
                    columns + local.row_ptr[at(b)], columns + local.row_ptr[at(b) + 1]);
}

// A node is some rows that stay together. Neighbours are those that its rows read, itself and
// ghosts excepted.
struct RowGraph {
  std::vector<std::int32_t> node;    // of each row
  std::vector<std::int64_t> ptr{0};  // nodes + 1: where the neighbours of each begin in `to`
  std::vector<std::int32_t> to;
  std::vector<std::int64_t> weight;  // of nodes: the sum of row_weight

  std::int32_t nodes() const { return static_cast<std::int32_t>(weight.size()); }
};

// The graph for a cut into N parts. Rows that follow one another and read the same columns,
// as those of a node of a mesh do, are one node; where rows are short and parts large, so are rows
// with their neighbours, as often as that leaves enough nodes for a good cut.
template <class T>
RowGraph graph_of_rows(const LocalSystem<T>& local, int parts);

}  // namespace cpufree
