#include "cpufree/problem/partition/compressed_graph.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"

namespace cpufree {

namespace {

// Rows or vertices of one turn of a thread.
constexpr std::int64_t kGraphChunk = 4096;

// Calls f(k) for every k in [0, count), on all cores.
template <class F>
void for_all(std::int64_t count, F&& f) {
  in_parallel(static_cast<int>((count + kGraphChunk - 1) / kGraphChunk), [&](int chunk) {
    const std::int64_t begin = chunk * kGraphChunk;
    const std::int64_t end = std::min(count, begin + kGraphChunk);
    for (std::int64_t k = begin; k < end; ++k) f(k);
  });
}

class Compressor {
 public:
  Compressor(std::span<const std::int64_t> row_ptr, std::span<const std::int32_t> col)
      : row_ptr_(row_ptr), col_(col), rows_(static_cast<std::int64_t>(row_ptr.size()) - 1) {}

  CompressedGraph compress(bool merge) {
    number_vertices(merge);
    const auto vertices = static_cast<std::int64_t>(first_.size());
    graph_.starts.resize(at(vertices) + 1);
    for_all(vertices, [&](std::int64_t v) {
      std::int64_t count = 0;
      for_neighbours(v, [&](std::int64_t) { ++count; });
      graph_.starts[at(v) + 1] = count;
    });
    for (std::int64_t v = 0; v < vertices; ++v) graph_.starts[at(v) + 1] += graph_.starts[at(v)];
    graph_.neighbours.resize(at(graph_.starts.back()));
    graph_.weights.resize(at(vertices));
    for_all(vertices, [&](std::int64_t v) {
      std::int64_t k = graph_.starts[at(v)];
      for_neighbours(v, [&](std::int64_t neighbour) { graph_.neighbours[at(k++)] = neighbour; });
      const std::int64_t end = v + 1 < vertices ? first_[at(v) + 1] : rows_;
      graph_.weights[at(v)] =
          std::max<std::int64_t>(1, row_ptr_[at(end)] - row_ptr_[at(first_[at(v)])]);
    });
    return std::move(graph_);
  }

 private:
  void number_vertices(bool merge) {
    graph_.vertex.assign(at(rows_), 1);
    if (merge)
      for_all(rows_, [&](std::int64_t row) {
        if (row > 0 && is_as_the_row_before(row)) graph_.vertex[at(row)] = 0;
      });
    // Each row now has a 1 where it begins a vertex; the sum of them up to it is its number + 1.
    std::int64_t number = -1;
    for (std::int64_t row = 0; row < rows_; ++row) {
      if (graph_.vertex[at(row)] == 1) first_.push_back(row);
      graph_.vertex[at(row)] = number += graph_.vertex[at(row)];
    }
  }

  bool is_as_the_row_before(std::int64_t row) const {
    const auto columns = col_.begin();
    const std::int64_t begin = row_ptr_[at(row)];
    const std::int64_t end = row_ptr_[at(row) + 1];
    return begin < end && std::equal(columns + begin, columns + end,
                                     columns + row_ptr_[at(row) - 1], columns + begin);
  }

  // Calls f for each neighbour of a vertex. Columns increase, so those of a vertex lie together.
  template <class F>
  void for_neighbours(std::int64_t v, F&& f) const {
    const std::int64_t row = first_[at(v)];
    std::int64_t before = -1;
    for (std::int64_t k = row_ptr_[at(row)]; k < row_ptr_[at(row) + 1]; ++k) {
      const std::int64_t neighbour = graph_.vertex[at(col_[at(k)])];
      if (neighbour != before && neighbour != v) f(neighbour);
      before = neighbour;
    }
  }

  std::span<const std::int64_t> row_ptr_;
  std::span<const std::int32_t> col_;
  std::int64_t rows_;
  CompressedGraph graph_;
  std::vector<std::int64_t> first_;  // row of each vertex
};

}  // namespace

CompressedGraph compressed_graph(std::span<const std::int64_t> row_ptr,
                                 std::span<const std::int32_t> col, bool merge) {
  return Compressor(row_ptr, col).compress(merge);
}

}  // namespace cpufree
