#include "cpufree/problem/partition/row_graph.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

namespace {

constexpr std::int64_t kNodesOfPart = 48;  // at least, that a graph made smaller has
constexpr std::int64_t kShareOfPart = 16;  // a node is no heavier than this part of a part
constexpr std::int32_t kNobody = -1;
// Nodes or rows of a run, and most runs: whatever the number of cores, so that graphs are the same.
constexpr std::int32_t kNodesOfRun = 2048;
constexpr std::int32_t kMostRuns = 64;

// Runs of nodes that are together all of them.
std::vector<RowRange> runs_of(std::int32_t nodes) {
  const std::int32_t count = std::clamp(nodes / kNodesOfRun, 1, kMostRuns);
  std::vector<RowRange> runs;
  for (std::int64_t k = 0; k < count; ++k)
    runs.push_back({static_cast<std::int32_t>(nodes * k / count),
                    static_cast<std::int32_t>(nodes * (k + 1) / count)});
  return runs;
}

// Calls f(k, run k) for all of them, by as many cores as entries are worth.
int threads_for(std::int64_t entries) {
  constexpr std::int64_t kGrain = 40'000;  // that are worth a thread
  return static_cast<int>(std::min<std::int64_t>(entries / kGrain + 1, available_cores()));
}
template <class F>
void for_runs(const std::vector<RowRange>& runs, std::int64_t entries, F&& f) {
  in_parallel(
      static_cast<int>(runs.size()), threads_for(entries), [] { return 0; },
      [&](int, int k) { f(at(k), runs[at(k)]); });
}

// Sums up what runs have: the numbers before each of them, and all.
std::vector<std::int32_t> before_runs(const std::vector<std::int32_t>& counts) {
  std::vector<std::int32_t> before{0};
  for (const std::int32_t count : counts) before.push_back(before.back() + count);
  return before;
}

// Rows that follow one another and read the same columns, together: a graph whose neighbours are
// found in the pattern each time.
class EqualRows {
 public:
  EqualRows(const RowPattern& rows, std::int64_t heaviest) : rows_(rows) {
    node_.resize(at(rows.rows));
    const auto runs = runs_between_nodes();
    std::vector<std::int32_t> counts(runs.size(), 0);
    for_runs(runs, rows.entries(), [&](std::size_t k, RowRange run) {
      std::int64_t sum = 0;
      for (std::int32_t row = run.begin; row < run.end; ++row) {
        const auto weight = row_weight(rows.length(row));
        const bool begins = row == run.begin || sum + weight > heaviest || !is_alike(row);
        sum = begins ? weight : sum + weight;
        node_[at(row)] = begins ? 1 : 0;
        counts[k] += node_[at(row)];
      }
    });
    const auto before = before_runs(counts);
    first_.resize(at(before.back()));
    weight_.resize(at(before.back()));
    for_runs(runs, rows.entries(), [&](std::size_t k, RowRange run) {
      std::int32_t n = before[k] - 1;
      for (std::int32_t row = run.begin; row < run.end; ++row) {
        if (node_[at(row)] == 1) first_[at(++n)] = row, weight_[at(n)] = 0;
        weight_[at(n)] += row_weight(rows.length(row));
        node_[at(row)] = n;
      }
    });
  }

  std::int32_t nodes() const { return static_cast<std::int32_t>(first_.size()); }
  std::int64_t weight_of(std::int32_t n) const { return weight_[at(n)]; }
  const PageVector<std::int32_t>& node() const { return node_; }
  // Neighbours, or some more.
  std::int64_t entries() const {
    return rows_.rows == 0 ? 0 : rows_.entries() * nodes() / rows_.rows;
  }
  template <class F>
  void each_neighbour(std::int32_t n, F&& f) const {
    const std::int32_t row = first_[at(n)];
    std::int32_t last = n;
    for (auto k = rows_.ptr[row]; k < rows_.ptr[row + 1]; ++k) {
      if (rows_.col[k] >= rows_.rows) continue;
      const std::int32_t other = node_[at(rows_.col[k])];
      if (other != n && other != last) f(last = other);
    }
  }

 private:
  bool is_alike(std::int32_t row) const { return rows_.same_columns(row - 1, row); }
  std::vector<RowRange> runs_between_nodes() const {
    auto runs = runs_of(rows_.rows);
    std::int32_t before = 0;
    for (RowRange& run : runs) {
      run = {before, std::max(before, run.end)};
      while (run.end > 0 && run.end < rows_.rows && is_alike(run.end)) ++run.end;
      before = run.end;
    }
    return runs;
  }

  RowPattern rows_;
  PageVector<std::int32_t> node_, first_;  // of each row; row of each node
  PageVector<std::int64_t> weight_;
};

// Groups of nodes: one whose neighbours all are free takes as many of them as are not too heavy;
// then those that are left over join the lightest group beside them, or stay alone.
template <class G>
class Groups {
 public:
  Groups(const G& graph, std::int64_t heaviest) : graph_(graph), heaviest_(heaviest) {
    of_.resize(at(graph.nodes()));
    before_.resize(at(graph.nodes()));
    std::ranges::fill(of_, kNobody);
    for (std::int32_t n = 0; n < graph.nodes(); ++n)
      if (of_[at(n)] == kNobody && all_free(n)) found(n);
    for (std::int32_t n = 0; n < graph.nodes(); ++n)
      if (of_[at(n)] == kNobody) settle(n);
  }

  std::int32_t of(std::int32_t n) const { return of_[at(n)]; }
  PageVector<std::int64_t> take_weights() { return std::move(weight_); }
  template <class F>
  void each_member(std::int32_t group, F&& f) const {
    for (std::int32_t n = last_[at(group)]; n != kNobody; n = before_[at(n)]) f(n);
  }

 private:
  bool all_free(std::int32_t n) const {
    bool all = true;
    graph_.each_neighbour(n, [&](std::int32_t other) { all = all && of_[at(other)] == kNobody; });
    return all;
  }
  bool fits(std::int32_t n, std::int32_t group) const {
    return weight_[at(group)] + graph_.weight_of(n) <= heaviest_;
  }
  void join(std::int32_t n, std::int32_t group) {
    of_[at(n)] = group;
    weight_[at(group)] += graph_.weight_of(n);
    before_[at(n)] = std::exchange(last_[at(group)], n);
  }
  std::int32_t new_group() {
    weight_.push_back(0);
    last_.push_back(kNobody);
    return static_cast<std::int32_t>(weight_.size()) - 1;
  }
  void found(std::int32_t n) {
    const std::int32_t group = new_group();
    join(n, group);
    graph_.each_neighbour(n, [&](std::int32_t other) {
      if (of_[at(other)] == kNobody && fits(other, group)) join(other, group);
    });
  }
  void settle(std::int32_t n) {
    std::int32_t best = kNobody;
    graph_.each_neighbour(n, [&](std::int32_t other) {
      const std::int32_t group = of_[at(other)];
      if (group != kNobody && fits(n, group) &&
          (best == kNobody || weight_[at(group)] < weight_[at(best)]))
        best = group;
    });
    join(n, best == kNobody ? new_group() : best);
  }

  const G& graph_;
  std::int64_t heaviest_;
  PageVector<std::int32_t> of_;  // the group of each node
  PageVector<std::int64_t> weight_;
  PageVector<std::int32_t> last_, before_;  // member of each group, and the one before each node
};

// Lists the neighbours of all nodes of a graph, with a given number of entries to look at:
// list(mine, node, add) calls add(neighbour), with what a thread works with, mine = make().
template <class Make, class F>
void list_neighbours(RowGraph& graph, std::int64_t entries, Make&& make, F&& list) {
  const auto runs = runs_of(graph.nodes());
  std::vector<std::vector<std::int32_t>> of_run(runs.size());
  graph.ptr.resize(at(graph.nodes()) + 1);
  in_parallel(static_cast<int>(runs.size()), threads_for(entries), make, [&](auto& mine, int k) {
    std::vector<std::int32_t>& to = of_run[at(k)];
    for (std::int32_t n = runs[at(k)].begin; n < runs[at(k)].end; ++n) {
      list(mine, n, [&](std::int32_t other) { to.push_back(other); });
      graph.ptr[at(n) + 1] = static_cast<std::int64_t>(to.size());
    }
  });
  std::vector<std::int64_t> first{0};
  for (const auto& to : of_run)
    first.push_back(first.back() + static_cast<std::int64_t>(to.size()));
  graph.to.resize(at(first.back()));
  for_runs(runs, entries, [&](std::size_t k, RowRange run) {
    std::ranges::copy(of_run[k], graph.to.begin() + first[k]);
    for (std::int32_t n = run.begin; n < run.end; ++n) graph.ptr[at(n) + 1] += first[k];
  });
}

// The graph as it is.
RowGraph listed(const EqualRows& rows) {
  RowGraph graph;
  graph.weight.resize(at(rows.nodes()));
  const auto nothing = [] { return 0; };
  list_neighbours(graph, rows.entries(), nothing, [&](int, std::int32_t n, auto&& add) {
    graph.weight[at(n)] = rows.weight_of(n);
    rows.each_neighbour(n, add);
  });
  graph.node = rows.node();
  return graph;
}

// The graph whose nodes are groups of `fine`'s.
template <class G>
RowGraph grouped(const G& fine, PageVector<std::int32_t> node, std::int64_t heaviest) {
  Groups<G> groups(fine, heaviest);
  RowGraph coarse;
  coarse.weight = groups.take_weights();
  // The last reader of each group.
  const std::int32_t count = coarse.nodes();
  const auto make = [&] { return std::vector<std::int32_t>(at(count), kNobody); };
  list_neighbours(coarse, fine.entries(), make, [&](auto& reader, std::int32_t g, auto&& add) {
    reader[at(g)] = g;
    groups.each_member(g, [&](std::int32_t member) {
      fine.each_neighbour(member, [&](std::int32_t n) {
        if (std::exchange(reader[at(groups.of(n))], g) != g) add(groups.of(n));
      });
    });
  });
  for_runs(runs_of(static_cast<std::int32_t>(node.size())), fine.entries(),
           [&](std::size_t, RowRange run) {
             for (std::int32_t row = run.begin; row < run.end; ++row)
               node[at(row)] = groups.of(node[at(row)]);
           });
  coarse.node = std::move(node);
  return coarse;
}

}  // namespace

RowGraph graph_of_rows(const RowPattern& rows, int parts) {
  const std::int64_t all = 12 * rows.entries() + row_weight(0) * rows.rows;
  const std::int64_t heaviest = all / parts / kShareOfPart;
  // A group is a node, its neighbours, and half as many that are left over.
  const auto enough = [&](std::int64_t nodes, std::int64_t entries) {
    const std::int64_t of_group = nodes + entries;
    return of_group > 0 && 2 * nodes * nodes / (3 * of_group) >= kNodesOfPart * parts;
  };
  const EqualRows equal(rows, heaviest);
  if (!enough(equal.nodes(), equal.entries() - equal.nodes())) return listed(equal);
  RowGraph graph = grouped(equal, equal.node(), heaviest);
  std::int32_t before = equal.nodes();
  while (graph.nodes() <= before / 2 && enough(graph.nodes(), graph.entries())) {
    before = graph.nodes();
    graph = grouped(graph, std::move(graph.node), heaviest);
  }
  return graph;
}

}  // namespace cpufree
