#include "cpufree/problem/row_graph.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition.hpp"

namespace cpufree {

namespace {

constexpr std::int64_t kNodesOfPart = 48;  // at least, that a graph made smaller has
constexpr std::int64_t kShareOfPart = 16;  // a node is no heavier than this part of a part
constexpr std::int32_t kNobody = -1;

// Lists the neighbours of all nodes of a graph, with so many entries to look at, by all cores:
// list(mine, node, add) calls add(neighbour), with what a thread works with, mine = make().
template <class Make, class F>
void list_neighbours(RowGraph& graph, std::int64_t entries, Make&& make, F&& list) {
  struct Piece {
    std::vector<std::int64_t> end;  // of each node, from 0
    std::vector<std::int32_t> to;
  };
  const int count = parts_for_threads(entries);
  const auto begin = [&](int k) {
    return static_cast<std::int32_t>(std::int64_t{graph.nodes()} * k / count);
  };
  std::vector<Piece> pieces(at(count));
  in_parallel(count, available_cores(), make, [&](auto& mine, int k) {
    Piece& piece = pieces[at(k)];
    piece.to.reserve(at(entries / count));
    for (std::int32_t n = begin(k); n < begin(k + 1); ++n) {
      list(mine, n, [&](std::int32_t other) { piece.to.push_back(other); });
      piece.end.push_back(static_cast<std::int64_t>(piece.to.size()));
    }
  });
  std::vector<std::int64_t> first{0};
  for (const Piece& piece : pieces)
    first.push_back(first.back() + static_cast<std::int64_t>(piece.to.size()));
  graph.to.resize(at(first.back()));
  graph.ptr.resize(at(graph.nodes()) + 1);
  in_parallel(count, [&](int k) {
    const Piece& piece = pieces[at(k)];
    std::ranges::copy(piece.to, graph.to.begin() + first[at(k)]);
    std::ranges::transform(piece.end, graph.ptr.begin() + begin(k) + 1,
                           [&](std::int64_t end) { return first[at(k)] + end; });
  });
}

// Which rows read the columns of the row before.
template <class T>
std::vector<char> find_alike(const LocalSystem<T>& local) {
  std::vector<char> alike(at(local.rows()), 0);
  for_chunks(local.row_ptr, [&](RowRange rows) {
    for (std::int32_t row = std::max(rows.begin, 1); row < rows.end; ++row)
      alike[at(row)] = same_columns(local, row - 1, row) ? 1 : 0;
  });
  return alike;
}

// Rows that follow one another and read the same columns, together.
template <class T>
RowGraph graph_of_equal_rows(const LocalSystem<T>& local, std::int64_t heaviest) {
  RowGraph graph;
  graph.node.resize(at(local.rows()));
  const auto alike = find_alike(local);
  std::vector<std::int32_t> first;  // row of each node
  for (std::int32_t row = 0; row < local.rows(); ++row) {
    const auto weight = row_weight(local.row_ptr[at(row) + 1] - local.row_ptr[at(row)]);
    if (alike[at(row)] == 0 || graph.weight.back() + weight > heaviest) {
      first.push_back(row);
      graph.weight.push_back(0);
    }
    graph.node[at(row)] = graph.nodes() - 1;
    graph.weight.back() += weight;
  }
  const auto nothing = [] { return 0; };
  list_neighbours(graph, local.row_ptr.back(), nothing, [&](int, std::int32_t n, auto&& add) {
    const std::size_t row = at(first[at(n)]);
    std::int32_t last = n;
    for (auto k = local.row_ptr[row]; k < local.row_ptr[row + 1]; ++k) {
      if (local.col[at(k)] >= local.rows()) continue;
      const std::int32_t other = graph.node[at(local.col[at(k)])];
      if (other != n && other != last) add(last = other);
    }
  });
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
  // The last reader of each group.
  const auto make = [&] { return std::vector<std::int32_t>(at(coarse.nodes()), kNobody); };
  const auto entries = static_cast<std::int64_t>(fine.to.size());
  list_neighbours(coarse, entries, make, [&](auto& reader, std::int32_t group, auto&& add) {
    reader[at(group)] = group;
    for (auto m = begin[at(group)]; m < begin[at(group) + 1]; ++m)
      for (auto k = fine.ptr[at(members[at(m)])]; k < fine.ptr[at(members[at(m)]) + 1]; ++k) {
        const std::int32_t other = of[at(fine.to[at(k)])];
        if (std::exchange(reader[at(other)], group) != group) add(other);
      }
  });
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
