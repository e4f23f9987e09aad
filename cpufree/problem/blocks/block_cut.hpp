// Cuts the rows of PEs among blocks so that blocks read little of one another.
//
// Recursive bisection of the graph of a PE's rows (row_graph.hpp) by distances: u and v are nodes
// far from one another, and nodes nearer to u come before nodes nearer to v. Parts are about as
// long as they are wide, where pieces of a sequence of rows are strips: of thermomech_dM on eight
// GPUs a block of 193 rows then reads 67 rows of others, instead of 669.
// Distances from nodes far apart: George and Liu 1978, "An automatic nested dissection algorithm
// for irregular finite element problems"; the difference of two of them makes cuts straighter.
#pragma once

#include <cstdint>
#include <vector>

#include "cpufree/problem/partition/row_graph.hpp"

namespace cpufree {

// The block of every row, of each PE: blocks of equal weight, as near as the nodes of the graph
// allow. The same on however many cores.
std::vector<std::vector<std::int32_t>> cut_among_blocks(const std::vector<RowPattern>& pes,
                                                        int blocks);
template <class T>
std::vector<std::vector<std::int32_t>> cut_among_blocks(const HaloPlan<T>& plan, int blocks) {
  std::vector<RowPattern> pes;
  for (const LocalSystem<T>& local : plan.local) pes.push_back(RowPattern::of(local));
  return cut_among_blocks(pes, blocks);
}

}  // namespace cpufree
