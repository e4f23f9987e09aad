#include "cpufree/problem/blocks/block_halo.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/cutting.hpp"
#include "cpufree/problem/blocks/piece_cuts.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/partition/row_graph.hpp"

namespace cpufree {

namespace {

// What becomes of the rows of one PE.
struct Grouping {
  std::vector<std::int32_t> old_row;  // of each new row
  std::vector<std::int32_t> new_row;  // of each old one
  std::vector<BlockPlan> blocks;
};

// Packets that blocks read, and PEs whose rows cannot be grouped.
struct Count {
  std::int64_t reads = 0;
  std::int64_t impossible = 0;
  Count& operator+=(const Count& other) {
    reads += other.reads;
    impossible += other.impossible;
    return *this;
  }
};

// The rows of a block in their new sequence: those that other PEs read, those that other blocks do,
// the interior.
struct BlockRows {
  std::vector<std::int32_t> rows;
  std::int32_t remote = 0;
  std::int32_t boundary = 0;  // with the remote ones
};

// Groups the rows of one block. In each group long rows come first, which saves padding; rows of
// equal lengths keep their sequence.
template <class T>
BlockRows group(const LocalSystem<T>& local, const Cutting& cutting, std::size_t block,
                std::int32_t slice) {
  std::vector<std::int32_t> rows[3];  // read by other PEs, by other blocks, by neither
  for (auto k = cutting.begin[block]; k < cutting.begin[block + 1]; ++k) {
    const std::int32_t row = cutting.rows[at(k)];
    rows[row >= local.interior ? 0 : cutting.boundary[at(row)] != 0 ? 1 : 2].push_back(row);
  }
  for (auto& kind : rows)
    std::ranges::stable_sort(kind, std::greater<>(), [&](std::int32_t row) {
      return local.row_ptr[at(row) + 1] - local.row_ptr[at(row)];
    });
  const auto size = [](const auto& v) { return static_cast<std::int32_t>(v.size()); };
  const auto same = [&](std::int32_t k) {
    return same_columns(local, rows[2][at(k - 1)], rows[2][at(k)]);
  };
  const std::int32_t filled =
      rows_to_fill(same, size(rows[0]) + size(rows[1]), size(rows[2]), slice);
  std::ranges::rotate(rows[2], rows[2].end() - filled);  // the shortest ones
  BlockRows result{{}, size(rows[0]), size(rows[0]) + size(rows[1]) + filled};
  for (const auto& kind : rows) result.rows.insert(result.rows.end(), kind.begin(), kind.end());
  return result;
}

// Where the rows of a PE's blocks go; the rows themselves come later.
template <class T>
Grouping place(const LocalSystem<T>& local, const std::vector<BlockRows>& blocks) {
  std::vector<BlockSize> sizes;
  for (const BlockRows& own : blocks)
    sizes.push_back({own.remote, own.boundary, static_cast<std::int32_t>(own.rows.size())});
  Grouping result;
  result.blocks = place_blocks(local.ghosts, sizes);
  result.old_row.resize(at(local.rows()));
  result.new_row.resize(at(local.rows()));
  return result;
}

// The groupings of all PEs.
template <class T>
std::vector<Grouping> group_all(const HaloPlan<T>& plan, const std::vector<Cutting>& cuttings,
                                int blocks, std::int32_t slice) {
  std::vector<std::vector<BlockRows>> rows(plan.local.size(), std::vector<BlockRows>(at(blocks)));
  for_blocks(plan, blocks, [&](int pe, int first, int end) {
    for (auto b = at(first); b < at(end); ++b)
      rows[at(pe)][b] = group(plan.local[at(pe)], cuttings[at(pe)], b, slice);
  });
  std::vector<Grouping> groupings;
  for (std::size_t pe = 0; pe < rows.size(); ++pe)
    groupings.push_back(place(plan.local[pe], rows[pe]));
  for_blocks(plan, blocks, [&](int pe, int first, int end) {
    Grouping& grouping = groupings[at(pe)];
    for (auto b = at(first); b < at(end); ++b) {
      std::int32_t next = grouping.blocks[b].boundary.begin;
      for (const std::int32_t row : rows[at(pe)][b].rows) {
        grouping.old_row[at(next)] = row;
        grouping.new_row[at(row)] = next++;
      }
    }
  });
  return groupings;
}

// The rows of a block in their new order, whose entries begin at `to`. A row's entries keep theirs,
// so that it has the same sum, to the last bit, whether there are halos of blocks or not.
template <class T>
void renumber_block(const LocalSystem<T>& old, const Grouping& grouping, const BlockPlan& block,
                    std::int64_t to, LocalSystem<T>& local) {
  for (auto row = block.boundary.begin; row < block.interior.end; ++row) {
    const std::size_t before = at(grouping.old_row[at(row)]);
    const std::int64_t begin = old.row_ptr[before], count = old.row_ptr[before + 1] - begin;
    local.row_ptr[at(row)] = to;
    local.global_row[at(row)] = old.global_row[before];
    std::copy_n(old.val.data() + begin, count, local.val.data() + to);
    std::transform(old.col.data() + begin, old.col.data() + begin + count, local.col.data() + to,
                   [&](std::int32_t column) {
                     return column < old.rows() ? grouping.new_row[at(column)] : column;
                   });
    to += count;
  }
}

// The rows of all matrices in their new order.
template <class T>
void renumber_matrices(HaloPlan<T>& plan, const std::vector<Grouping>& groupings, int blocks) {
  std::vector<LocalSystem<T>> renumbered(plan.local.size());
  std::vector<std::vector<std::int64_t>> begins(plan.local.size());  // of the blocks' entries
  for (std::size_t pe = 0; pe < renumbered.size(); ++pe) {
    const LocalSystem<T>& old = plan.local[pe];
    renumbered[pe].row_ptr.resize(old.row_ptr.size());
    renumbered[pe].row_ptr.back() = old.row_ptr.back();
    renumbered[pe].global_row.resize(old.global_row.size());
    renumbered[pe].col.resize(old.col.size());
    renumbered[pe].val.resize(old.val.size());
    begins[pe].assign(at(blocks) + 1, 0);
  }
  for_blocks(plan, blocks, [&](int pe, int first, int end) {
    const auto& ptr = plan.local[at(pe)].row_ptr;
    const Grouping& grouping = groupings[at(pe)];
    for (auto b = at(first); b < at(end); ++b)
      for (auto row = grouping.blocks[b].boundary.begin; row < grouping.blocks[b].interior.end;
           ++row) {
        const std::size_t before = at(grouping.old_row[at(row)]);
        begins[at(pe)][b + 1] += ptr[before + 1] - ptr[before];
      }
  });
  for (auto& of_pe : begins) std::partial_sum(of_pe.begin(), of_pe.end(), of_pe.begin());
  for_blocks(plan, blocks, [&](int pe, int first, int end) {
    for (auto b = at(first); b < at(end); ++b)
      renumber_block(plan.local[at(pe)], groupings[at(pe)], groupings[at(pe)].blocks[b],
                     begins[at(pe)][b], renumbered[at(pe)]);
  });
  for (std::size_t pe = 0; pe < renumbered.size(); ++pe) {
    LocalSystem<T>& local = plan.local[pe];
    local.row_ptr = std::move(renumbered[pe].row_ptr);
    local.global_row = std::move(renumbered[pe].global_row);
    local.col = std::move(renumbered[pe].col);
    local.val = std::move(renumbered[pe].val);
  }
}

// What the rows that other PEs read send, in their new order.
template <class T>
void renumber_sends(LocalSystem<T>& local, const std::vector<std::int32_t>& new_row) {
  const auto old_ptr = local.send_ptr;
  const auto old = local.destinations;
  std::vector<std::int32_t> rows(new_row.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::sort(rows, {}, [&](std::int32_t row) { return new_row[at(row)]; });
  std::size_t next = 0;
  auto to = local.destinations.begin();
  for (const std::int32_t row : rows) {
    to = std::copy(old.begin() + old_ptr[at(row)], old.begin() + old_ptr[at(row) + 1], to);
    local.send_ptr[++next] = to - local.destinations.begin();
  }
}

// The packets that blocks [first, end) of a PE with N rows read.
void list_reads(std::int32_t rows, const Cutting& cutting, int first, int end, Grouping& grouping,
                const std::vector<std::int32_t>& packets) {
  for (std::size_t b = at(first); b < at(end); ++b) {
    auto& reads = grouping.blocks[b].reads;
    for (const std::int32_t column : cutting.reads[b])
      reads.push_back(column >= rows ? column - rows : packets[at(grouping.new_row[at(column)])]);
    std::ranges::sort(reads);
  }
}

}  // namespace

template <class T>
std::optional<BlockHalos> make_block_halos(HaloPlan<T>& plan, const Peers& peers,
                                           std::span<const std::int32_t> order, int blocks,
                                           std::int64_t most_reads, std::int32_t slice) {
  std::vector<std::int32_t> position(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    position[at(order[k])] = static_cast<std::int32_t>(k);
  const std::size_t pes = plan.local.size();
  auto cuttings = cut_sequences(plan, position, blocks);
  std::vector<Count> counts;
  for (const Cutting& c : cuttings) counts.push_back({c.all_reads(), c.mutual ? 0 : 1});
  const Count all = sum_of_all(peers, "reads of the blocks", counts);
  if (all.impossible > 0 || all.reads > most_reads) return {};
  cut_graphs(plan, cuttings);
  auto groupings = group_all(plan, cuttings, blocks, slice);
  std::vector<std::vector<std::int32_t>> packets;
  for (const Grouping& grouping : groupings) packets.push_back(packets_of_rows(grouping.blocks));
  BlockHalos halos;
  for_blocks(plan, blocks, [&](int pe, int first, int end) {
    list_reads(plan.local[at(pe)].rows(), cuttings[at(pe)], first, end, groupings[at(pe)],
               packets[at(pe)]);
  });
  renumber_matrices(plan, groupings, blocks);
  std::vector<std::vector<std::int32_t>> sent(pes);
  for (std::size_t pe = 0; pe < pes; ++pe)
    sent[pe].assign(groupings[pe].new_row.begin() + plan.local[pe].interior,
                    groupings[pe].new_row.end());
  renumber_halos(plan, peers, sent);
  for (std::size_t pe = 0; pe < pes; ++pe) {
    const BlockPlan& last = groupings[pe].blocks.back();
    halos.packets.push_back(last.first_packet + last.boundary.size());
    halos.plans.push_back(std::move(groupings[pe].blocks));
  }
  return halos;
}

std::vector<BlockPlan> place_blocks(std::int32_t ghosts, const std::vector<BlockSize>& sizes) {
  std::vector<BlockPlan> blocks;
  std::int32_t packet = ghosts, row = 0;
  for (const BlockSize& own : sizes) {
    BlockPlan& block = blocks.emplace_back();
    block.boundary = {row, row + own.boundary};
    block.interior = {block.boundary.end, row + own.rows};
    block.remote = own.remote;
    block.first_packet = std::exchange(packet, packet + own.boundary);
    row = block.interior.end;
  }
  return blocks;
}

template <class T>
void renumber_halos(HaloPlan<T>& plan, const Peers& peers,
                    const std::vector<std::vector<std::int32_t>>& new_row) {
  // Each PE tells those that read its rows, in the order in which they have them as ghosts, which
  // is that of the old numbers: while destinations go by these.
  std::vector<std::vector<std::vector<std::int32_t>>> sent(plan.local.size());
  for (std::size_t k = 0; k < sent.size(); ++k) {
    const LocalSystem<T>& local = plan.local[k];
    sent[k].resize(at(peers.all()));
    for (std::int32_t row = 0; row < local.boundary(); ++row)
      for (auto d = local.send_ptr[at(row)]; d < local.send_ptr[at(row) + 1]; ++d)
        sent[k][at(local.destinations[at(d)].pe)].push_back(new_row[k][at(row)]);
  }
  const auto received = exchange_lists(peers, "rows of the ghosts", sent);
  for (std::size_t k = 0; k < sent.size(); ++k)
    for (const Neighbour& neighbour : plan.local[k].neighbours)
      std::ranges::copy(received[k][at(neighbour.pe)],
                        plan.local[k].ghost_row.begin() + neighbour.first_ghost);
  in_parallel(static_cast<int>(plan.local.size()),
              [&](int k) { renumber_sends(plan.local[at(k)], new_row[at(k)]); });
}

std::vector<std::int32_t> packets_of_rows(const std::vector<BlockPlan>& blocks) {
  std::vector<std::int32_t> packets(at(blocks.back().interior.end), -1);
  for (const BlockPlan& block : blocks)
    std::iota(packets.begin() + block.boundary.begin, packets.begin() + block.boundary.end,
              block.first_packet);
  return packets;
}

template <class T>
std::vector<std::int32_t> packet_sources(const LocalSystem<T>& local,
                                         const BoundaryRanges& boundaries,
                                         const std::vector<BlockPlan>& blocks, int pe) {
  auto sources = ghost_sources(local, boundaries);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    sources.insert(sources.end(), at(blocks[b].boundary.size()),
                   pe * static_cast<std::int32_t>(blocks.size()) + static_cast<std::int32_t>(b));
  return sources;
}

template std::optional<BlockHalos> make_block_halos(HaloPlan<float>&, const Peers&,
                                                    std::span<const std::int32_t>, int,
                                                    std::int64_t, std::int32_t);
template std::optional<BlockHalos> make_block_halos(HaloPlan<double>&, const Peers&,
                                                    std::span<const std::int32_t>, int,
                                                    std::int64_t, std::int32_t);
template void renumber_halos(HaloPlan<float>&, const Peers&,
                             const std::vector<std::vector<std::int32_t>>&);
template void renumber_halos(HaloPlan<double>&, const Peers&,
                             const std::vector<std::vector<std::int32_t>>&);
template std::vector<std::int32_t> packet_sources(const LocalSystem<float>&, const BoundaryRanges&,
                                                  const std::vector<BlockPlan>&, int);
template std::vector<std::int32_t> packet_sources(const LocalSystem<double>&, const BoundaryRanges&,
                                                  const std::vector<BlockPlan>&, int);

}  // namespace cpufree
