// Kernels that make a hierarchy on a GPU: aggregates, as aggregation.cpp makes them on the host.
#pragma once

#include "cpufree/multigrid/setup/strength.hpp"

namespace cpufree::multigrid::setup {

// Strong couplings, without diagonals.
struct Graph {
  std::int64_t rows = 0;
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;

  template <class F>
  CPUFREE_KERNEL_FN void each_neighbour(std::int64_t row, F&& f) const {
    for (std::int64_t k = ptr[row]; k < ptr[row + 1]; ++k) f(col[k]);
  }
};

// Rows that are to be shared among aggregates: those with strong couplings that have no root yet,
// of which there is none at `first`. They get keys.
struct BeginSet {
  std::int64_t rows = 0;
  bool first = true;
  const std::int32_t* isolated = nullptr;
  std::int32_t* root_of = nullptr;  // -1: none
  Key* own = nullptr;               // kOut: not a candidate
  Key* near = nullptr;
  std::int32_t* candidate = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t i) {
      if (first) root_of[i] = -1;
      const bool left = isolated[i] == 0 && root_of[i] < 0;
      candidate[i] = left ? 1 : 0;
      own[i] = left ? priority_of(static_cast<std::int32_t>(i)) : kOut;
      near[i] = kOut;
    });
  }
};

// The largest key within one step. Those of rows that are not candidates are the least.
struct SpreadKeys {
  Graph graph;
  const std::int32_t* candidate = nullptr;
  const Key* own = nullptr;
  Key* near = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, graph.rows, [&](std::int64_t i) {
      if (candidate[i] == 0 || near[i] >= kIn) return;
      Key most = own[i];
      graph.each_neighbour(i, [&](std::int32_t j) { most = own[j] > most ? own[j] : most; });
      near[i] = most;
    });
  }
};

// Decides rows by the largest key within two steps, and counts those that are left. `near` is read
// of neighbours, `own` alone is written.
struct DecideKeys {
  Graph graph;
  const Key* near = nullptr;
  Key* own = nullptr;
  std::uint32_t* left = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    std::uint32_t count = 0;
    each_item(port, graph.rows, [&](std::int64_t i) {
      const Key mine = own[i];
      if (mine < kUndecided || mine >= kIn) return;
      Key most = near[i];
      graph.each_neighbour(i, [&](std::int32_t j) { most = near[j] > most ? near[j] : most; });
      own[i] = decided(mine, most);
      if (own[i] == mine) ++count;
    });
    port.add_together(left, count);
  }
};

// Candidates join the root beside them. Roots with fewer than `least` candidates around them, one
// more than neighbours, are none.
struct JoinRoots {
  Graph graph;
  const std::int32_t* candidate = nullptr;
  const Key* own = nullptr;
  std::int32_t least = 0;
  std::int32_t* root_of = nullptr;

  CPUFREE_KERNEL_FN bool is_root(std::int64_t i) const {
    if (own[i] < kIn) return false;
    if (least == 0) return true;
    std::int32_t count = 1;
    graph.each_neighbour(i, [&](std::int32_t j) { count += candidate[j]; });
    return count >= least;
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, graph.rows, [&](std::int64_t i) {
      if (candidate[i] == 0) return;
      if (is_root(i)) root_of[i] = static_cast<std::int32_t>(i);
      graph.each_neighbour(i, [&](std::int32_t j) {
        if (own[j] >= kIn && is_root(j)) root_of[i] = j;
      });
    });
  }
};

// What is still left joins the aggregate to which its strongest coupling leads.
struct JoinStrongest {
  Rows a;
  const std::int32_t* owner = nullptr;
  Bits strong;
  const std::int32_t* isolated = nullptr;
  const std::int32_t* before = nullptr;
  std::int32_t* root_of = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, a.count, [&](std::int64_t i) {
      root_of[i] = before[i];
      if (isolated[i] != 0 || before[i] >= 0) return;
      const std::int64_t begin = a.ptr[i];
      double most = 0.0;
      for (std::int64_t k = begin; k < a.ptr[i + 1]; ++k) {
        const std::int32_t j = a.col[k];
        if (!strong(i, begin, k) || before[j] < 0) continue;
        if (owner != nullptr && owner[j] != owner[i]) continue;
        if (!is_stronger(std::fabs(a.val[k]), most)) continue;
        most = std::fabs(a.val[k]);
        root_of[i] = before[j];
      }
    });
  }
};

// Which rows are roots, in the sequence `order`, null for the natural one.
struct MarkRoots {
  std::int64_t rows = 0;
  const std::int32_t* order = nullptr;
  const std::int32_t* root_of = nullptr;
  std::int32_t* mark = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t k) {
      const std::int64_t i = order == nullptr ? k : order[k];
      mark[k] = root_of[i] == i ? 1 : 0;
    });
  }
};

// Their numbers, where N roots come before each place; and whose the aggregates are.
struct NumberRoots {
  std::int64_t rows = 0;
  const std::int32_t* order = nullptr;
  const std::int32_t* mark = nullptr;
  const std::int64_t* before = nullptr;
  const std::int32_t* owner = nullptr;
  std::int32_t* number = nullptr;     // of each row that is a root
  std::int32_t* of_coarse = nullptr;  // the owner of each aggregate, if there is any

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t k) {
      if (mark[k] == 0) return;
      const std::int64_t i = order == nullptr ? k : order[k];
      number[i] = static_cast<std::int32_t>(before[k]);
      if (owner != nullptr) of_coarse[before[k]] = owner[i];
    });
  }
};

// The aggregate of each row, -1: none; how many rows have one.
struct NumberAggregates {
  std::int64_t rows = 0;
  const std::int32_t* root_of = nullptr;
  const std::int32_t* number = nullptr;
  std::int32_t* aggregate = nullptr;
  std::uint32_t* covered = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    std::uint32_t count = 0;
    each_item(port, rows, [&](std::int64_t i) {
      aggregate[i] = root_of[i] < 0 ? -1 : number[root_of[i]];
      count += root_of[i] < 0 ? 0U : 1U;
    });
    port.add_together(covered, count);
  }
};

}  // namespace cpufree::multigrid::setup
