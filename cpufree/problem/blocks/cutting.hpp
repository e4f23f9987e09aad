// The blocks of a PE's rows, and what they see of one another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/halo_plan.hpp"
#include "cpufree/problem/partition/partition.hpp"

namespace cpufree {

// What decides between two cuttings of the rows of one PE.
struct CutFacts {
  std::int64_t reads = 0;      // columns that blocks read of others
  std::int32_t most_rows = 0;  // of a block: what all blocks have room for on chip
  bool mutual = false;         // no block reads rows of one that does not read its own
};

// Whether every block reads those that read it: pairs[a * blocks + b] is 1 where block a reads rows
// of block b, else 0.
bool are_mutual(const std::vector<std::uint32_t>& pairs, std::size_t blocks);

// Whether parts of the graph of rows (block_cut.hpp) are better than pieces of their sequence:
// where blocks read less, and have room for it. Blocks of equal weight may have very different
// numbers of rows where rows that are coupled with few others, such as those of clamped nodes, come
// to lie in the same ones.
bool graph_pays(const CutFacts& parts, const CutFacts& pieces);

// The blocks of the rows of one PE, and what they see of one another. Columns and rows go by the
// numbers of the halo plan.
struct Cutting {
  std::vector<std::int32_t> owner;  // the block of each row
  std::vector<std::int32_t> rows;   // block after block
  std::vector<std::int32_t> begin;  // blocks + 1: where those of each begin
  std::vector<char> boundary;       // of each row: read by another block, or reads one or a ghost
  std::vector<std::vector<std::int32_t>> reads;  // of each block: columns of others
  bool mutual = false;                           // as in CutFacts

  std::int64_t all_reads() const {
    std::int64_t all = 0;
    for (const auto& columns : reads) all += static_cast<std::int64_t>(columns.size());
    return all;
  }
  CutFacts facts() const {
    CutFacts facts{all_reads(), 0, mutual};
    for (std::size_t b = 0; b + 1 < begin.size(); ++b)
      facts.most_rows = std::max(facts.most_rows, begin[b + 1] - begin[b]);
    return facts;
  }
};

// Blocks are contiguous pieces of the sequence of rows, of equal weight. `position`: of each row of
// the matrix in the sequence; empty where that is the natural one.
template <class T>
std::vector<Cutting> cut_sequences(const HaloPlan<T>& plan,
                                   const std::vector<std::int32_t>& position, int blocks);

// Cuts the graph of rows instead, of those PEs for which that pays.
template <class T>
void cut_graphs(const HaloPlan<T>& plan, std::vector<Cutting>& cuttings);

// Calls f(pe, first block, end) for runs of blocks that are together those of all PEs, on all
// cores.
template <class T, class F>
void for_blocks(const HaloPlan<T>& plan, int blocks, F&& f) {
  const int pes = static_cast<int>(plan.local.size());
  std::int64_t entries = 0;
  for (const auto& local : plan.local) entries += local.row_ptr.back();
  const int runs = std::clamp(parts_for_threads(entries) / pes, 1, blocks);
  in_parallel(pes * runs, [&](int k) {
    const int run = k / pes;
    f(k % pes, blocks * run / runs, blocks * (run + 1) / runs);
  });
}

}  // namespace cpufree
