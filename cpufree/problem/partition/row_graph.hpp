// The graph of a PE's rows, made smaller before it is cut (block_cut.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/pages.hpp"
#include "cpufree/problem/halo_plan.hpp"

namespace cpufree {

// Where the entries of a PE's rows are: columns from `rows` on are ghosts.
struct RowPattern {
  std::int32_t rows = 0;
  const std::int64_t* ptr = nullptr;  // rows + 1
  const std::int32_t* col = nullptr;

  template <class T>
  static RowPattern of(const LocalSystem<T>& local) {
    return {local.rows(), local.row_ptr.data(), local.columns()};
  }
  std::int64_t entries() const { return ptr[rows]; }
  std::int64_t length(std::int32_t row) const { return ptr[row + 1] - ptr[row]; }
  // Whether two rows read the same columns, as the unknowns of a node of a mesh do.
  bool same_columns(std::int32_t a, std::int32_t b) const {
    return std::equal(col + ptr[a], col + ptr[a + 1], col + ptr[b], col + ptr[b + 1]);
  }
};

template <class T>
bool same_columns(const LocalSystem<T>& local, std::int32_t a, std::int32_t b) {
  return RowPattern::of(local).same_columns(a, b);
}

// A node is some rows that stay together. Neighbours are those that its rows read, itself and
// ghosts excepted.
struct RowGraph {
  PageVector<std::int32_t> node;    // of each row
  PageVector<std::int64_t> ptr{0};  // nodes + 1: where the neighbours of each begin in `to`
  PageVector<std::int32_t> to;
  PageVector<std::int64_t> weight;  // of nodes: the sum of row_weight

  std::int32_t nodes() const { return static_cast<std::int32_t>(weight.size()); }
  std::int64_t entries() const { return static_cast<std::int64_t>(to.size()); }
  std::int64_t weight_of(std::int32_t n) const { return weight[at(n)]; }
  template <class F>
  void each_neighbour(std::int32_t n, F&& f) const {
    for (auto k = ptr[at(n)]; k < ptr[at(n) + 1]; ++k) f(to[at(k)]);
  }
};

// The graph for a cut into N parts. Rows that follow one another and read the same columns,
// as those of a node of a mesh do, are one node; where rows are short and parts large, so are rows
// with their neighbours, as often as that leaves enough nodes for a good cut. The same on however
// many cores.
RowGraph graph_of_rows(const RowPattern& rows, int parts);

}  // namespace cpufree
