#include "cpufree/problem/blocks/block_halo.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/cutting.hpp"
#include "cpufree/problem/blocks/slice_width.hpp"
#include "cpufree/problem/row_graph.hpp"

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

// How many interior rows, the last ones, count as boundary, which costs a packet each: all, where
// they are fewer than a slice has and not worth a turn of their own; those that would begin one
// more slice, where the last slice of the boundary has room for them, and for the rest of their
// node.
template <class T>
std::int32_t rows_to_fill(const LocalSystem<T>& local, std::int32_t boundary,
                          const std::vector<std::int32_t>& interior, std::int32_t slice) {
  const auto count = static_cast<std::int32_t>(interior.size());
  if (count < slice) return count;
  const std::int32_t room = (slice - boundary % slice) % slice;
  std::int32_t over = count % slice;
  while (over > 0 && over <= room && over < count &&
         same_columns(local, interior[at(count - over - 1)], interior[at(count - over)]))
    ++over;
  return over <= room ? over : 0;
}

// Groups the rows of one PE. In each group long rows come first, which saves padding; rows of equal
// lengths keep their sequence.
template <class T>
Grouping group(const LocalSystem<T>& local, const Cutting& cutting, std::int32_t slice) {
  Grouping result;
  std::int32_t packet = local.ghosts;
  std::vector<std::int32_t> rows[3];  // that other PEs read, other blocks, nobody
  for (std::size_t b = 0; b < cutting.reads.size(); ++b) {
    for (auto& kind : rows) kind.clear();
    for (auto k = cutting.begin[b]; k < cutting.begin[b + 1]; ++k) {
      const std::int32_t row = cutting.rows[at(k)];
      rows[row >= local.interior ? 0 : cutting.boundary[at(row)] != 0 ? 1 : 2].push_back(row);
    }
    for (auto& kind : rows)
      std::ranges::stable_sort(kind, std::greater<>(), [&](std::int32_t row) {
        return local.row_ptr[at(row) + 1] - local.row_ptr[at(row)];
      });
    const auto size = [](const auto& v) { return static_cast<std::int32_t>(v.size()); };
    const std::int32_t filled = rows_to_fill(local, size(rows[0]) + size(rows[1]), rows[2], slice);
    std::ranges::rotate(rows[2], rows[2].end() - filled);  // the shortest ones
    BlockPlan block;
    block.boundary.begin = size(result.old_row);
    for (const auto& kind : rows)
      result.old_row.insert(result.old_row.end(), kind.begin(), kind.end());
    block.remote = size(rows[0]);
    block.boundary.end = block.boundary.begin + block.remote + size(rows[1]) + filled;
    block.interior = {block.boundary.end, size(result.old_row)};
    block.first_packet = std::exchange(packet, packet + block.boundary.size());
    result.blocks.push_back(std::move(block));
  }
  result.new_row.resize(result.old_row.size());
  for (std::size_t k = 0; k < result.old_row.size(); ++k)
    result.new_row[at(result.old_row[k])] = static_cast<std::int32_t>(k);
  return result;
}

// The rows of all matrices in their new order. A row's entries keep theirs, so that it has the same
// sum, to the last bit, whether there are halos of blocks or not.
template <class T>
void renumber_matrices(HaloPlan<T>& plan, const std::vector<Grouping>& groupings, int blocks) {
  std::vector<LocalSystem<T>> renumbered(plan.local.size());
  for (std::size_t pe = 0; pe < renumbered.size(); ++pe) {
    const LocalSystem<T>& old = plan.local[pe];
    LocalSystem<T>& local = renumbered[pe];
    local.row_ptr.assign(1, 0);
    for (const std::int32_t row : groupings[pe].old_row) {
      local.row_ptr.push_back(local.row_ptr.back() + old.row_ptr[at(row) + 1] -
                              old.row_ptr[at(row)]);
      local.global_row.push_back(old.global_row[at(row)]);
    }
    local.col.resize(old.col.size());
    local.val.resize(old.val.size());
  }
  for_blocks(plan, blocks, [&](int pe, int first, int end) {
    const LocalSystem<T>& old = plan.local[at(pe)];
    LocalSystem<T>& local = renumbered[at(pe)];
    const Grouping& grouping = groupings[at(pe)];
    const std::int32_t last = grouping.blocks[at(end - 1)].interior.end;
    for (auto row = grouping.blocks[at(first)].boundary.begin; row < last; ++row) {
      const auto before = old.row_ptr[at(grouping.old_row[at(row)])];
      const auto count = local.row_ptr[at(row) + 1] - local.row_ptr[at(row)];
      std::copy_n(old.val.data() + before, count, local.val.data() + local.row_ptr[at(row)]);
      std::transform(old.col.data() + before, old.col.data() + before + count,
                     local.col.data() + local.row_ptr[at(row)], [&](std::int32_t column) {
                       return column < old.rows() ? grouping.new_row[at(column)] : column;
                     });
    }
  });
  for (std::size_t pe = 0; pe < renumbered.size(); ++pe) {
    LocalSystem<T>& local = plan.local[pe];
    local.row_ptr = std::move(renumbered[pe].row_ptr);
    local.global_row = std::move(renumbered[pe].global_row);
    local.col = std::move(renumbered[pe].col);
    local.val = std::move(renumbered[pe].val);
  }
}

// What the remote rows send, in the order of the blocks.
template <class T>
void renumber_sends(LocalSystem<T>& local, const Grouping& grouping) {
  const auto old_ptr = local.send_ptr;
  const auto old = local.destinations;
  std::size_t row = 0;
  auto to = local.destinations.begin();
  for (const BlockPlan& block : grouping.blocks)
    for (std::int32_t k = 0; k < block.remote; ++k) {
      const std::size_t before =
          at(grouping.old_row[at(block.boundary.begin + k)] - local.interior);
      to = std::copy(old.begin() + old_ptr[before], old.begin() + old_ptr[before + 1], to);
      local.send_ptr[++row] = to - local.destinations.begin();
    }
}

// The new numbers of all ghosts: each PE tells those that read its rows, in the order in which they
// have them as ghosts, which is that of the old numbers.
template <class T>
void renumber_ghosts(HaloPlan<T>& plan, const Peers& peers,
                     const std::vector<Grouping>& groupings) {
  std::vector<std::vector<std::vector<std::int32_t>>> sent(plan.local.size());
  for (std::size_t k = 0; k < sent.size(); ++k) {
    const LocalSystem<T>& local = plan.local[k];
    sent[k].resize(at(peers.all()));
    for (std::int32_t row = 0; row < local.boundary(); ++row)
      for (auto d = local.send_ptr[at(row)]; d < local.send_ptr[at(row) + 1]; ++d)
        sent[k][at(local.destinations[at(d)].pe)].push_back(
            groupings[k].new_row[at(local.interior + row)]);
  }
  const auto received = exchange_lists(peers, "rows of the ghosts", sent);
  for (std::size_t k = 0; k < sent.size(); ++k)
    for (const Neighbour& neighbour : plan.local[k].neighbours)
      std::ranges::copy(received[k][at(neighbour.pe)],
                        plan.local[k].ghost_row.begin() + neighbour.first_ghost);
}

// The packets that blocks [first, end) of a PE with so many rows read.
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
                                           std::int64_t most_reads, std::int32_t slice,
                                           bool by_graph) {
  std::vector<std::int32_t> position(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    position[at(order[k])] = static_cast<std::int32_t>(k);
  const std::size_t pes = plan.local.size();
  auto cuttings = cut_sequences(plan, position, blocks);
  std::vector<Count> counts;
  for (const Cutting& c : cuttings) counts.push_back({c.all_reads(), c.mutual ? 0 : 1});
  const Count all = sum_of_all(peers, "reads of the blocks", counts);
  if (all.impossible > 0 || all.reads > most_reads) return {};
  if (by_graph) cut_graphs(plan, cuttings);
  std::vector<Grouping> groupings(pes);
  std::vector<std::vector<std::int32_t>> packets(pes);
  in_parallel(static_cast<int>(pes), [&](int pe) {
    groupings[at(pe)] = group(plan.local[at(pe)], cuttings[at(pe)], slice);
    packets[at(pe)] = packets_of_rows(groupings[at(pe)].blocks);
  });
  renumber_ghosts(plan, peers, groupings);  // while destinations go by the old numbers
  BlockHalos halos;
  for_blocks(plan, blocks, [&](int pe, int first, int end) {
    list_reads(plan.local[at(pe)].rows(), cuttings[at(pe)], first, end, groupings[at(pe)],
               packets[at(pe)]);
  });
  renumber_matrices(plan, groupings, blocks);
  in_parallel(static_cast<int>(pes),
              [&](int pe) { renumber_sends(plan.local[at(pe)], groupings[at(pe)]); });
  for (std::size_t pe = 0; pe < pes; ++pe) {
    const BlockPlan& last = groupings[pe].blocks.back();
    halos.packets.push_back(last.first_packet + last.boundary.size());
    halos.plans.push_back(std::move(groupings[pe].blocks));
  }
  return halos;
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
                                                    std::int64_t, std::int32_t, bool);
template std::optional<BlockHalos> make_block_halos(HaloPlan<double>&, const Peers&,
                                                    std::span<const std::int32_t>, int,
                                                    std::int64_t, std::int32_t, bool);
template std::vector<std::int32_t> packet_sources(const LocalSystem<float>&, const BoundaryRanges&,
                                                  const std::vector<BlockPlan>&, int);
template std::vector<std::int32_t> packet_sources(const LocalSystem<double>&, const BoundaryRanges&,
                                                  const std::vector<BlockPlan>&, int);

}  // namespace cpufree
