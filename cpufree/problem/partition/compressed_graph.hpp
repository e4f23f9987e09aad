// The graph of a matrix in which rows of one pattern are one vertex, made on all cores.
//
// The unknowns of a node of a finite-element mesh have the same columns: as one vertex they make a
// graph with a third of the vertices and a ninth of the edges where there are three of them
// (Ashcraft 1995, "Compressed graphs and the minimum degree algorithm").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cpufree {

// An undirected graph without loops.
struct CompressedGraph {
  std::vector<std::int64_t> vertex;      // of each row: it does not decrease
  std::vector<std::int64_t> starts;      // vertices + 1: where the neighbours of each begin
  std::vector<std::int64_t> neighbours;  // of a vertex, in ascending order
  std::vector<std::int64_t> weights;     // of a vertex: the entries of its rows, at least 1
};

// The graph of a matrix with sorted columns and a symmetric pattern. Consecutive rows with the same
// columns are one vertex if `merge`, else each row is one.
CompressedGraph compressed_graph(std::span<const std::int64_t> row_ptr,
                                 std::span<const std::int32_t> col, bool merge);

}  // namespace cpufree
