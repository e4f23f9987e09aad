#include "cpufree/problem/row_graph.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/partition.hpp"

namespace cpufree {

namespace {

constexpr std::int64_t kNodesOfPart = 48;  // at least, that a graph made smaller has
constexpr std::int64_t kShareOfPart = 16;  // a node is no heavier than this part of a part
constexpr std::int32_t kNobody = -1;

// Rows that follow one another and read the same columns, together.
template <class T>
RowGraph graph_of_equal_rows(const LocalSystem<T>& local, std::int64_t heaviest) {
  RowGraph graph;
  graph.node.resize(at(local.rows()));
  std::vector<std::int32_t> first;  // row of each node
  for (std::int32_t row = 0; row < local.rows(); ++row) {
    const auto weight = row_weight(local.row_ptr[at(row) + 1] - local.row_ptr[at(row)]);
    if (row == 0 || graph.weight.back() + weight > heaviest ||
        !same_columns(local, first.back(), row)) {
      first.push_back(row);
      graph.weight.push_back(0);
    }
    graph.node[at(row)] = graph.nodes() - 1;
    graph.weight.back() += weight;
  }
  std::int64_t entries = 0;
  for (const std::int32_t row : first)
    entries += local.row_ptr[at(row) + 1] - local.row_ptr[at(row)];
  graph.to.reserve(at(entries));
  for (std::int32_t n = 0; n < graph.nodes(); ++n) {
    std::int32_t last = n;
    for (auto k = local.row_ptr[at(first[at(n)])]; k < local.row_ptr[at(first[at(n)]) + 1]; ++k) {
      if (local.col[at(k)] >= local.rows()) continue;
      const std::int32_t other = graph.node[at(local.col[at(k)])];
      if (other != n && other != last) graph.to.push_back(last = other);
    }
    graph.ptr.push_back(static_cast<std::int64_t>(graph.to.size()));
  }
  return graph;
}

// Groups of nodes: one whose neighbours all are free takes as many of them as are not too heavy;
// then those that are left over join the lightest group beside them, or stay alone.
class Groups {
 public:
  Groups(const RowGraph& graph, std::int64_t heaviest)
      : graph_(graph), heaviest_(heaviest), of_(at(graph.nodes()), kNobody) {
    for (std::int32_t n = 0; n < graph.nodes(); ++n)
      if (of_[at(n)] == kNobody && all_free(n)) found(n);
    for (std::int32_t n = 0; n < graph.nodes(); ++n)
      if (of_[at(n)] == kNobody) settle(n);
  }
  const std::vector<std::int32_t>& of() const { return of_; }
  std::vector<std::int64_t>& weight() { return weight_; }

 private:
  template <class F>
  void each_neighbour(std::int32_t n, F&& f) const {
    for (auto k = graph_.ptr[at(n)]; k < graph_.ptr[at(n) + 1]; ++k) f(graph_.to[at(k)]);
  }
  bool all_free(std::int32_t n) const {
    bool all = true;
    each_neighbour(n, [&](std::int32_t other) { all = all && of_[at(other)] == kNobody; });
    return all;
  }
  bool fits(std::int32_t n, std::int32_t group) const {
    return weight_[at(group)] + graph_.weight[at(n)] <= heaviest_;
  }
  void join(std::int32_t n, std::int32_t group) {
    of_[at(n)] = group;
    weight_[at(group)] += graph_.weight[at(n)];
  }
  std::int32_t new_group() {
    weight_.push_back(0);
    return static_cast<std::int32_t>(weight_.size()) - 1;
  }
  void found(std::int32_t n) {
    const std::int32_t group = new_group();
    join(n, group);
    each_neighbour(n, [&](std::int32_t other) {
      if (of_[at(other)] == kNobody && fits(other, group)) join(other, group);
    });
  }
  void settle(std::int32_t n) {
    std::int32_t best = kNobody;
    each_neighbour(n, [&](std::int32_t other) {
      const std::int32_t group = of_[at(other)];
      if (group != kNobody && fits(n, group) &&
          (best == kNobody || weight_[at(group)] < weight_[at(best)]))
        best = group;
    });
    join(n, best == kNobody ? new_group() : best);
  }

  const RowGraph& graph_;
  std::int64_t heaviest_;
  std::vector<std::int32_t> of_;
  std::vector<std::int64_t> weight_;
};

// The graph whose nodes are groups of `fine`'s.
RowGraph grouped(const RowGraph& fine, std::int64_t heaviest) {
  Groups groups(fine, heaviest);
  const auto& of = groups.of();
  RowGraph coarse;
  coarse.weight = std::move(groups.weight());
  std::vector<std::int32_t> begin(at(coarse.nodes()) + 2, 0), members(of.size());
  for (const std::int32_t group : of) ++begin[at(group) + 2];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  for (std::size_t n = 0; n < of.size(); ++n)
    members[at(begin[at(of[n]) + 1]++)] = static_cast<std::int32_t>(n);
  std::vector<std::int32_t> reader(at(coarse.nodes()), kNobody);  // the last one of each group
  for (std::int32_t group = 0; group < coarse.nodes(); ++group) {
    reader[at(group)] = group;
    for (auto m = begin[at(group)]; m < begin[at(group) + 1]; ++m)
      for (auto k = fine.ptr[at(members[at(m)])]; k < fine.ptr[at(members[at(m)]) + 1]; ++k) {
        const std::int32_t other = of[at(fine.to[at(k)])];
        if (std::exchange(reader[at(other)], group) != group) coarse.to.push_back(other);
      }
    coarse.ptr.push_back(static_cast<std::int64_t>(coarse.to.size()));
  }
  coarse.node.resize(fine.node.size());
  std::ranges::transform(fine.node, coarse.node.begin(),
                         [&](std::int32_t node) { return of[at(node)]; });
  return coarse;
}

}  // namespace

template <class T>
RowGraph graph_of_rows(const LocalSystem<T>& local, int parts) {
  const std::int64_t all = 12 * local.row_ptr.back() + row_weight(0) * local.rows();
  const std::int64_t heaviest = all / parts / kShareOfPart;
  RowGraph graph = graph_of_equal_rows(local, heaviest);
  // A group is a node, its neighbours, and half as many that are left over.
  const auto enough = [&] {
    const std::int64_t of_group = graph.nodes() + static_cast<std::int64_t>(graph.to.size());
    const std::int64_t nodes = graph.nodes();
    return of_group > 0 && 2 * nodes * nodes / (3 * of_group) >= kNodesOfPart * parts;
  };
  while (enough()) {
    const std::int32_t before = graph.nodes();
    graph = grouped(graph, heaviest);
    if (graph.nodes() > before / 2) break;  // no neighbours to speak of
  }
  return graph;
}

template RowGraph graph_of_rows(const LocalSystem<float>&, int);
template RowGraph graph_of_rows(const LocalSystem<double>&, int);

}  // namespace cpufree
