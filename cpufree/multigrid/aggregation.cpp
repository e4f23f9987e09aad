#include "cpufree/multigrid/aggregation.hpp"

#include <cmath>

#include "cpufree/multigrid/rules.hpp"

namespace cpufree::multigrid {

namespace {

template <class F>
void each_neighbour(const StrongGraph& graph, std::int32_t row, F&& f) {
  for (std::int64_t k = graph.row_ptr[at(row)]; k < graph.row_ptr[at(row) + 1]; ++k)
    f(graph.col[at(k)]);
}

}  // namespace

std::vector<char> independent_set(const StrongGraph& graph, const std::vector<char>& candidate) {
  const std::int32_t rows = graph.rows();
  std::vector<Key> own(at(rows), kOut), near(at(rows), kOut), next(at(rows), kOut);
  for_rows(rows, [&](std::int32_t i) {
    if (candidate[at(i)] != 0) near[at(i)] = own[at(i)] = priority_of(i);
  });
  // The largest key of a row and its neighbours; rows that are no candidates have the lowest one.
  const auto largest = [&](std::int32_t row, const std::vector<Key>& keys) {
    Key most = keys[at(row)];
    each_neighbour(graph, row, [&](std::int32_t j) { most = std::max(most, keys[at(j)]); });
    return most;
  };
  for (double left = 1.0; left > 0.0;) {
    for_rows(rows, [&](std::int32_t i) {
      // What is beside a row of the set is settled, as is what has no candidate beside it.
      if (const Key before = near[at(i)]; before < kIn && before > kOut)
        near[at(i)] = largest(i, own);
    });
    left = sum_over_rows(rows, [&](std::int32_t i) {
      next[at(i)] = own[at(i)];
      if (own[at(i)] < kUndecided || own[at(i)] >= kIn) return 0.0;
      next[at(i)] = decided(own[at(i)], largest(i, near));
      return next[at(i)] == own[at(i)] ? 1.0 : 0.0;
    });
    own.swap(next);
  }
  std::vector<char> in(at(rows), 0);
  for_rows(rows, [&](std::int32_t i) { in[at(i)] = own[at(i)] >= kIn ? 1 : 0; });
  return in;
}

namespace {

// Rows that are candidates join the root beside them, of which there is one at most.
void join_roots(const StrongGraph& graph, const std::vector<char>& root,
                const std::vector<char>& candidate, std::vector<std::int32_t>& root_of) {
  for_rows(graph.rows(), [&](std::int32_t i) {
    if (candidate[at(i)] == 0) return;
    if (root[at(i)] != 0) root_of[at(i)] = i;
    each_neighbour(graph, i, [&](std::int32_t j) {
      if (root[at(j)] != 0) root_of[at(i)] = j;
    });
  });
}

std::vector<char> left_over(const StrongGraph& graph, const std::vector<std::int32_t>& root_of) {
  std::vector<char> left(at(graph.rows()), 0);
  for_rows(graph.rows(), [&](std::int32_t i) {
    left[at(i)] = graph.isolated[at(i)] == 0 && root_of[at(i)] < 0 ? 1 : 0;
  });
  return left;
}

// Roots among rows that are left over, with enough neighbours that are.
void second_pass(const StrongGraph& graph, std::int32_t least, std::vector<std::int32_t>& root_of) {
  const auto left = left_over(graph, root_of);
  auto root = independent_set(graph, left);
  for_rows(graph.rows(), [&](std::int32_t i) {
    if (root[at(i)] == 0) return;
    std::int32_t count = 1;
    each_neighbour(graph, i, [&](std::int32_t j) { count += left[at(j)]; });
    if (count < least) root[at(i)] = 0;
  });
  join_roots(graph, root, left, root_of);
}

// What is still left joins the aggregate to which its strongest coupling leads.
void join_strongest(const StrongGraph& graph, const SparseMatrix& a,
                    std::vector<std::int32_t>& root_of) {
  const auto before = root_of;
  for_rows(graph.rows(), [&](std::int32_t i) {
    if (graph.isolated[at(i)] != 0 || before[at(i)] >= 0) return;
    double most = 0.0;
    std::int64_t k = a.begin(i);
    each_neighbour(graph, i, [&](std::int32_t j) {
      while (a.col[at(k)] < j) ++k;
      if (before[at(j)] < 0 || !is_stronger(std::abs(a.val[at(k)]), most)) return;
      most = std::abs(a.val[at(k)]);
      root_of[at(i)] = before[at(j)];
    });
  });
}

}  // namespace

Aggregates aggregate(const StrongGraph& graph, const SparseMatrix& a,
                     std::span<const std::int32_t> order, std::int32_t least) {
  std::vector<std::int32_t> root_of(at(graph.rows()), -1);
  const auto all = left_over(graph, root_of);
  join_roots(graph, independent_set(graph, all), all, root_of);
  second_pass(graph, least, root_of);
  join_strongest(graph, a, root_of);
  Aggregates made;
  std::vector<std::int32_t> number(at(graph.rows()), -1);
  for (std::int32_t k = 0; k < graph.rows(); ++k) {
    const std::int32_t i = order.empty() ? k : order[at(k)];
    if (root_of[at(i)] != i) continue;
    number[at(i)] = made.count++;
    made.roots.push_back(i);
  }
  made.of_row.resize(root_of.size());
  for_rows(graph.rows(), [&](std::int32_t i) {
    made.of_row[at(i)] = root_of[at(i)] < 0 ? -1 : number[at(root_of[at(i)])];
  });
  return made;
}

}  // namespace cpufree::multigrid
