#include "cpufree/problem/partition/compressed_graph.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "cpufree/base/index.hpp"
#include "harness.hpp"

using namespace cpufree;

namespace {

struct Pattern {
  std::vector<std::int64_t> row_ptr{0};
  std::vector<std::int32_t> col;
};

// A random symmetric pattern of nodes, each of which has one to three rows with the same columns.
// Some nodes have no entries at all.
Pattern random_nodes(int nodes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::set<int>> near(at(nodes));
  for (int k = 0; k < 3 * nodes; ++k) {
    const int a = static_cast<int>(random() % static_cast<unsigned>(nodes));
    const int b = static_cast<int>(random() % static_cast<unsigned>(nodes));
    near[at(a)].insert(b);
    near[at(b)].insert(a);
  }
  std::vector<std::int32_t> first{0};
  for (int a = 0; a < nodes; ++a)
    first.push_back(first.back() + 1 + static_cast<std::int32_t>(random() % 3));
  Pattern p;
  for (int a = 0; a < nodes; ++a)
    for (std::int32_t row = first[at(a)]; row < first[at(a) + 1]; ++row) {
      for (const int b : near[at(a)])
        for (std::int32_t j = first[at(b)]; j < first[at(b) + 1]; ++j) p.col.push_back(j);
      p.row_ptr.push_back(static_cast<std::int64_t>(p.col.size()));
    }
  return p;
}

std::vector<std::int32_t> columns(const Pattern& p, std::int64_t row) {
  return {p.col.begin() + p.row_ptr[at(row)], p.col.begin() + p.row_ptr[at(row) + 1]};
}

}  // namespace

TEST(vertices_are_runs_of_rows_with_the_same_columns) {
  const Pattern p = random_nodes(6000, 1);  // more rows than one thread takes at a time
  const CompressedGraph graph = compressed_graph(p.row_ptr, p.col, true);
  std::int64_t merged = 0;
  CHECK(graph.vertex.front() == 0);
  for (std::int64_t row = 1; row < static_cast<std::int64_t>(graph.vertex.size()); ++row) {
    const bool same = !columns(p, row).empty() && columns(p, row) == columns(p, row - 1);
    merged += same;
    CHECK(graph.vertex[at(row)] - graph.vertex[at(row) - 1] == (same ? 0 : 1));
  }
  CHECK(merged > 1000);
}

TEST(neighbours_are_the_vertices_of_columns_but_for_the_vertex_itself) {
  const Pattern p = random_nodes(6000, 2);
  for (const bool merge : {true, false}) {
    const CompressedGraph graph = compressed_graph(p.row_ptr, p.col, merge);
    const auto vertices = static_cast<std::int64_t>(graph.weights.size());
    CHECK(graph.vertex.back() == vertices - 1);
    CHECK(static_cast<std::int64_t>(graph.starts.size()) == vertices + 1);
    std::vector<std::set<std::int64_t>> expected(at(vertices));
    std::vector<std::int64_t> weight(at(vertices), 0);
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(graph.vertex.size()); ++row) {
      const std::int64_t v = graph.vertex[at(row)];
      for (const std::int32_t j : columns(p, row)) expected[at(v)].insert(graph.vertex[at(j)]);
      weight[at(v)] += p.row_ptr[at(row) + 1] - p.row_ptr[at(row)];
    }
    for (std::int64_t v = 0; v < vertices; ++v) {
      expected[at(v)].erase(v);
      const std::vector<std::int64_t> found(graph.neighbours.begin() + graph.starts[at(v)],
                                            graph.neighbours.begin() + graph.starts[at(v) + 1]);
      CHECK(found == std::vector<std::int64_t>(expected[at(v)].begin(), expected[at(v)].end()));
      CHECK(graph.weights[at(v)] == std::max<std::int64_t>(1, weight[at(v)]));
    }
  }
}

TEST(matrix_without_rows_has_a_graph_without_vertices) {
  const std::vector<std::int64_t> none{0};
  const CompressedGraph graph = compressed_graph(none, {}, true);
  CHECK(graph.vertex.empty());
  CHECK(graph.starts == none);
}
