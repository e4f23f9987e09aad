#include "cpufree/problem/block_halo.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/partition.hpp"

namespace cpufree {

namespace {

// What becomes of the rows of one PE.
struct Grouping {
  std::vector<std::int32_t> old_row;  // of each new row
  std::vector<std::int32_t> new_row;  // of each old one
  std::vector<BlockPlan> blocks;
  std::int64_t reads = 0;  // packets that all blocks read
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

// The block of each row: contiguous pieces of `rows` of equal weight.
template <class T>
std::vector<std::int32_t> share_out(const LocalSystem<T>& local,
                                    const std::vector<std::int32_t>& rows, int blocks) {
  std::vector<std::int64_t> weight(rows.size() + 1, 0);
  for (std::size_t k = 0; k < rows.size(); ++k)
    weight[k + 1] = weight[k] + local.row_ptr[at(rows[k]) + 1] - local.row_ptr[at(rows[k])];
  const auto pieces = split_rows(weight, {0, local.rows()}, blocks);
  std::vector<std::int32_t> owner(rows.size());
  for (std::size_t b = 0; b < pieces.size(); ++b)
    for (std::int32_t k = pieces[b].begin; k < pieces[b].end; ++k)
      owner[at(rows[at(k)])] = static_cast<std::int32_t>(b);
  return owner;
}

// Finds the boundary rows. False: blocks read one another's rows in one direction only.
template <class T>
bool find_boundary(const LocalSystem<T>& local, const std::vector<std::int32_t>& owner, int blocks,
                   std::vector<char>& boundary) {
  boundary.assign(owner.size(), 0);
  std::vector<char> reads(at(blocks) * at(blocks), 0);
  for (std::int32_t row = 0; row < local.rows(); ++row) {
    const std::int32_t mine = owner[at(row)];
    if (row >= local.interior) boundary[at(row)] = 1;
    for (std::int64_t k = local.row_ptr[at(row)]; k < local.row_ptr[at(row) + 1]; ++k) {
      const std::int32_t column = local.col[at(k)];
      if (column >= local.rows() || owner[at(column)] == mine) continue;
      boundary[at(row)] = boundary[at(column)] = 1;
      reads[at(mine) * at(blocks) + at(owner[at(column)])] = 1;
    }
  }
  for (std::size_t a = 0; a < at(blocks); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (reads[a * at(blocks) + b] != reads[b * at(blocks) + a]) return false;
  return true;
}

// How many packets the blocks of a PE read: `rows` block after block, with their `owner`.
template <class T>
std::int64_t count_reads(const LocalSystem<T>& local, const std::vector<std::int32_t>& rows,
                         const std::vector<std::int32_t>& owner) {
  std::vector<std::int32_t> reader(at(local.rows()) + at(local.ghosts), -1);  // the last one
  std::int64_t count = 0;
  for (const std::int32_t row : rows) {
    const std::int32_t mine = owner[at(row)];
    for (std::int64_t k = local.row_ptr[at(row)]; k < local.row_ptr[at(row) + 1]; ++k) {
      const std::size_t column = at(local.col[at(k)]);
      if (column < owner.size() && owner[column] == mine) continue;
      count += std::exchange(reader[column], mine) != mine ? 1 : 0;
    }
  }
  return count;
}

// Groups the rows of one PE; empty `blocks` where that cannot be done.
template <class T>
Grouping group(const LocalSystem<T>& local, const std::vector<std::int32_t>& position, int blocks) {
  Grouping result;
  result.old_row = in_sequence(local, position);
  const auto owner = share_out(local, result.old_row, blocks);
  std::vector<char> boundary;
  if (!find_boundary(local, owner, blocks, boundary)) return result;
  result.reads = count_reads(local, result.old_row, owner);
  const auto rank = [&](std::int32_t row) {  // remote boundary, other boundary, interior
    const int kind = row >= local.interior ? 0 : boundary[at(row)] != 0 ? 1 : 2;
    return std::pair(owner[at(row)], kind);
  };
  std::ranges::stable_sort(result.old_row, {}, rank);
  result.blocks.resize(at(blocks));
  std::int32_t packet = local.ghosts;
  auto from = result.old_row.begin();
  for (int b = 0; b < blocks; ++b) {
    const auto end_of = [&](int kind) {
      from = std::ranges::upper_bound(from, result.old_row.end(), std::pair(b, kind), {}, rank);
      return static_cast<std::int32_t>(from - result.old_row.begin());
    };
    BlockPlan& block = result.blocks[at(b)];
    block.boundary.begin = static_cast<std::int32_t>(from - result.old_row.begin());
    block.remote = end_of(0) - block.boundary.begin;
    block.boundary.end = block.interior.begin = end_of(1);
    block.interior.end = end_of(2);
    block.first_packet = std::exchange(packet, packet + block.boundary.size());
  }
  result.new_row.resize(result.old_row.size());
  for (std::size_t k = 0; k < result.old_row.size(); ++k)
    result.new_row[at(result.old_row[k])] = static_cast<std::int32_t>(k);
  return result;
}

// The rows of the matrix in their new order, columns sorted anew.
template <class T>
void renumber_matrix(LocalSystem<T>& local, const Grouping& grouping) {
  const LocalSystem<T> old = local;
  std::vector<std::pair<std::int32_t, T>> entries;
  std::size_t to = 0;
  for (std::size_t row = 0; row < grouping.old_row.size(); ++row) {
    const std::size_t before = at(grouping.old_row[row]);
    entries.clear();
    for (std::int64_t k = old.row_ptr[before]; k < old.row_ptr[before + 1]; ++k) {
      const std::int32_t column = old.col[at(k)];
      entries.emplace_back(column < old.rows() ? grouping.new_row[at(column)] : column,
                           old.val[at(k)]);
    }
    std::ranges::sort(entries, {}, &std::pair<std::int32_t, T>::first);
    for (const auto& [column, value] : entries) {
      local.col[to] = column;
      local.val[to++] = value;
    }
    local.row_ptr[row + 1] = static_cast<std::int64_t>(to);
    local.global_row[row] = old.global_row[before];
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
  std::vector<std::vector<std::vector<std::int32_t>>> told(plan.local.size());
  for (std::size_t k = 0; k < told.size(); ++k) {
    const LocalSystem<T>& local = plan.local[k];
    told[k].resize(at(peers.all()));
    for (std::int32_t row = 0; row < local.boundary(); ++row)
      for (auto d = local.send_ptr[at(row)]; d < local.send_ptr[at(row) + 1]; ++d)
        told[k][at(local.destinations[at(d)].pe)].push_back(
            groupings[k].new_row[at(local.interior + row)]);
  }
  const auto heard = exchange_lists(peers, "rows of the ghosts", told);
  for (std::size_t k = 0; k < told.size(); ++k)
    for (const Neighbour& neighbour : plan.local[k].neighbours)
      std::ranges::copy(heard[k][at(neighbour.pe)],
                        plan.local[k].ghost_row.begin() + neighbour.first_ghost);
}

// The packets that each block reads.
template <class T>
void list_reads(const LocalSystem<T>& local, std::vector<BlockPlan>& blocks) {
  const auto packets = packets_of_rows(blocks);
  for (BlockPlan& block : blocks) {
    const RowRange own{block.boundary.begin, block.interior.end};
    const BlockColumns columns{own, local.rows(), packets.data(), {}};
    for (auto k = local.row_ptr[at(block.boundary.begin)];
         k < local.row_ptr[at(block.boundary.end)]; ++k) {
      const std::int32_t column = local.col[at(k)];
      if (column < own.begin || column >= own.end) block.reads.push_back(columns.packet(column));
    }
    std::ranges::sort(block.reads);
    const auto rest = std::ranges::unique(block.reads);
    block.reads.erase(rest.begin(), rest.end());
  }
}

}  // namespace

template <class T>
std::optional<BlockHalos> make_block_halos(HaloPlan<T>& plan, const Peers& peers,
                                           std::span<const std::int32_t> order, int blocks,
                                           std::int64_t most_reads) {
  std::vector<std::int32_t> position(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    position[at(order[k])] = static_cast<std::int32_t>(k);
  const std::size_t pes = plan.local.size();
  std::vector<Grouping> groupings(pes);
  in_parallel(static_cast<int>(pes),
              [&](int pe) { groupings[at(pe)] = group(plan.local[at(pe)], position, blocks); });
  std::vector<Count> counts;
  for (const Grouping& g : groupings) counts.push_back({g.reads, g.blocks.empty() ? 1 : 0});
  const Count all = sum_of_all(peers, "reads of the blocks", counts);
  if (all.impossible > 0 || all.reads > most_reads) return {};
  renumber_ghosts(plan, peers, groupings);  // while destinations go by the old numbers
  BlockHalos halos;
  in_parallel(static_cast<int>(pes), [&](int pe) {
    LocalSystem<T>& local = plan.local[at(pe)];
    renumber_matrix(local, groupings[at(pe)]);
    renumber_sends(local, groupings[at(pe)]);
    list_reads(local, groupings[at(pe)].blocks);
  });
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
                                                    std::int64_t);
template std::optional<BlockHalos> make_block_halos(HaloPlan<double>&, const Peers&,
                                                    std::span<const std::int32_t>, int,
                                                    std::int64_t);
template std::vector<std::int32_t> packet_sources(const LocalSystem<float>&, const BoundaryRanges&,
                                                  const std::vector<BlockPlan>&, int);
template std::vector<std::int32_t> packet_sources(const LocalSystem<double>&, const BoundaryRanges&,
                                                  const std::vector<BlockPlan>&, int);

}  // namespace cpufree
