#include "cpufree/problem/blocks/cutting.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "cpufree/problem/blocks/block_cut.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/partition/row_graph.hpp"

namespace cpufree {

namespace {

// A PE's rows in the sequence given: merges interior and boundary rows, each of which are.
template <class T>
std::vector<std::int32_t> in_sequence(const LocalSystem<T>& local,
                                      const std::vector<std::int32_t>& position) {
  std::vector<std::int32_t> rows(at(local.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  const auto place = [&](std::int32_t row) {
    const std::int32_t global = local.global_row[at(row)];
    return position.empty() ? global : position[at(global)];
  };
  std::ranges::inplace_merge(rows, rows.begin() + local.interior, {}, place);
  return rows;
}

// The block of each row: contiguous pieces of `rows` of equal weight, as near as nodes allow.
template <class T>
std::vector<std::int32_t> share_out(const LocalSystem<T>& local,
                                    const std::vector<std::int32_t>& rows, int blocks) {
  std::vector<std::int64_t> weight(rows.size() + 1, 0);
  for (std::size_t k = 0; k < rows.size(); ++k)
    weight[k + 1] = weight[k] + local.row_ptr[at(rows[k]) + 1] - local.row_ptr[at(rows[k])];
  const auto pieces = split_rows(weight, {0, local.rows()}, blocks);
  const auto same = [&](std::int32_t k) {
    return same_columns(local, rows[at(k - 1)], rows[at(k)]);
  };
  std::vector<std::int32_t> owner(rows.size());
  std::int32_t k = 0;
  for (std::size_t b = 0; b < pieces.size(); ++b)
    for (const auto end = cut_between_nodes(same, pieces[b].end, local.rows()); k < end; ++k)
      owner[at(rows[at(k)])] = static_cast<std::int32_t>(b);
  return owner;
}

// `rows` block after block, each in the sequence that it has.
Cutting cutting_of(std::vector<std::int32_t> owner, const std::vector<std::int32_t>& rows,
                   int blocks) {
  Cutting cutting;
  cutting.owner = std::move(owner);
  cutting.begin.assign(at(blocks) + 1, 0);
  for (const std::int32_t block : cutting.owner) ++cutting.begin[at(block) + 1];
  std::partial_sum(cutting.begin.begin(), cutting.begin.end(), cutting.begin.begin());
  auto next = cutting.begin;
  cutting.rows.resize(rows.size());
  for (const std::int32_t row : rows) cutting.rows[at(next[at(cutting.owner[at(row)])]++)] = row;
  cutting.boundary.assign(rows.size(), 0);
  cutting.reads.resize(at(blocks));
  return cutting;
}

// Finds what blocks [first, end) of a PE read of others, and marks rows as boundary.
template <class T>
void inspect_neighbours(const LocalSystem<T>& local, int first, int end, Cutting& cutting) {
  const auto mark = [&](std::int32_t row) {
    std::atomic_ref(cutting.boundary[at(row)]).store(1, std::memory_order_relaxed);
  };
  std::vector<std::int32_t> reader(at(local.rows()) + at(local.ghosts), -1);  // the last one
  for (std::int32_t block = first; block < end; ++block)
    for (auto k = cutting.begin[at(block)]; k < cutting.begin[at(block) + 1]; ++k) {
      const std::int32_t row = cutting.rows[at(k)];
      for (auto e = local.row_ptr[at(row)]; e < local.row_ptr[at(row) + 1]; ++e) {
        const std::int32_t column = local.col[at(e)];
        const bool ghost = column >= local.rows();
        if (!ghost && cutting.owner[at(column)] == block) continue;
        mark(row);
        if (std::exchange(reader[at(column)], block) == block) continue;
        if (!ghost) mark(column);
        cutting.reads[at(block)].push_back(column);
      }
    }
}

// Which blocks each block reads of.
std::vector<std::uint32_t> pairs_of(const Cutting& cutting, std::int32_t rows) {
  const std::size_t blocks = cutting.reads.size();
  std::vector<std::uint32_t> reads(blocks * blocks, 0);
  for (std::size_t block = 0; block < blocks; ++block)
    for (const std::int32_t column : cutting.reads[block])
      if (column < rows) reads[block * blocks + at(cutting.owner[at(column)])] = 1;
  return reads;
}

// Finds what all blocks see of one another.
template <class T>
void survey(const HaloPlan<T>& plan, std::vector<Cutting>& cuttings) {
  for_blocks(plan, static_cast<int>(cuttings.front().reads.size()),
             [&](int pe, int first, int end) {
               inspect_neighbours(plan.local[at(pe)], first, end, cuttings[at(pe)]);
             });
  for (std::size_t pe = 0; pe < cuttings.size(); ++pe)
    cuttings[pe].mutual =
        are_mutual(pairs_of(cuttings[pe], plan.local[pe].rows()), cuttings[pe].reads.size());
}

// The rows that a block may have where it would have `rows`: a tenth more, and a whole slice.
std::int32_t rows_with_room(std::int32_t rows) {
  return std::max(rows + rows / 10, (rows + kSliceRows - 1) / kSliceRows * kSliceRows);
}

}  // namespace

bool are_mutual(const std::vector<std::uint32_t>& pairs, std::size_t blocks) {
  for (std::size_t a = 0; a < blocks; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (pairs[a * blocks + b] != pairs[b * blocks + a]) return false;
  return true;
}

bool graph_pays(const CutFacts& parts, const CutFacts& pieces) {
  return parts.mutual && parts.reads < pieces.reads &&
         parts.most_rows <= rows_with_room(pieces.most_rows);
}

template <class T>
std::vector<Cutting> cut_sequences(const HaloPlan<T>& plan,
                                   const std::vector<std::int32_t>& position, int blocks) {
  std::vector<Cutting> pieces(plan.local.size());
  in_parallel(static_cast<int>(pieces.size()), [&](int pe) {
    const LocalSystem<T>& local = plan.local[at(pe)];
    const auto rows = in_sequence(local, position);
    pieces[at(pe)] = cutting_of(share_out(local, rows, blocks), rows, blocks);
  });
  survey(plan, pieces);
  return pieces;
}

template <class T>
void cut_graphs(const HaloPlan<T>& plan, std::vector<Cutting>& cuttings) {
  const std::size_t pes = plan.local.size();
  const int blocks = static_cast<int>(cuttings.front().reads.size());
  auto owner = cut_among_blocks(plan, blocks);
  std::vector<Cutting> parts(pes);
  in_parallel(static_cast<int>(pes), [&](int pe) {
    // Pieces of a sequence, one after the other, are that sequence.
    parts[at(pe)] = cutting_of(std::move(owner[at(pe)]), cuttings[at(pe)].rows, blocks);
  });
  survey(plan, parts);
  for (std::size_t pe = 0; pe < pes; ++pe)
    if (graph_pays(parts[pe].facts(), cuttings[pe].facts())) cuttings[pe] = std::move(parts[pe]);
}

template std::vector<Cutting> cut_sequences(const HaloPlan<float>&,
                                            const std::vector<std::int32_t>&, int);
template std::vector<Cutting> cut_sequences(const HaloPlan<double>&,
                                            const std::vector<std::int32_t>&, int);
template void cut_graphs(const HaloPlan<float>&, std::vector<Cutting>&);
template void cut_graphs(const HaloPlan<double>&, std::vector<Cutting>&);

}  // namespace cpufree
