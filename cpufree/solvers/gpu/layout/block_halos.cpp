#include "cpufree/solvers/gpu/layout/block_halos.hpp"

#include <algorithm>
#include <utility>

#include "cpufree/base/index.hpp"
#include "cpufree/base/parallel.hpp"
#include "cpufree/problem/blocks/block_cut.hpp"
#include "cpufree/problem/blocks/cutting.hpp"
#include "cpufree/problem/partition/partition.hpp"
#include "cpufree/solvers/gpu/kernels/layout.hpp"
#include "cpufree/solvers/gpu/layout/staging.hpp"

namespace cpufree {

namespace {

using gpu::DeviceArray;
using gpu::OnDevice;
using Int32s = DeviceArray<std::int32_t>;
using Int64s = DeviceArray<std::int64_t>;
using Words = DeviceArray<std::uint32_t>;

// The blocks of the rows of one PE.
struct Cut {
  Int32s owner;     // of each row
  Int32s boundary;  // of each row, 1 or 0
  CutFacts facts;
};

// What becomes of the rows of a PE.
struct Grouped {
  Int32s order;                       // the old row at each place
  std::vector<std::int32_t> new_row;  // of the rows that other PEs read
  std::vector<BlockPlan> blocks;
};

// Rows of one PE on their way to blocks.
template <class T>
class BlockMaker {
 public:
  BlockMaker(GpuRows<T>& rows, std::int32_t ghosts, int blocks)
      : mine_(rows), ghosts_(ghosts), blocks_(blocks) {}

  // Contiguous pieces of the sequence of the matrix.
  Cut cut_sequence() {
    const Int64s sums = list_sequence();
    const Int32s end = Int32s::uninitialised(device(), at(blocks_));
    layout::EndPieces<T> pieces;
    pieces.rows = pattern();
    pieces.row_at = sequence();
    pieces.before = sums.size() == 0 ? mine_.ptr.data() : sums.data();
    pieces.nnz_weight = row_weight(1) - row_weight(0);
    pieces.row_weight = row_weight(0);
    pieces.pieces = blocks_;
    pieces.end = end.data();
    launch(pieces, blocks_);
    auto ends = fetch(mine_.stream, end.data(), at(blocks_));
    for (std::size_t b = 1; b < ends.size(); ++b) ends[b] = std::max(ends[b], ends[b - 1]);
    end.upload(mine_.stream, ends.data(), ends.size());
    Int32s owner = Int32s::uninitialised(device(), at(mine_.rows));
    launch(layout::OwnRows<T>{sequence(), mine_.rows, end.data(), blocks_, owner.data()},
           mine_.rows);
    std::int32_t most = ends.front();
    for (std::size_t b = 1; b < ends.size(); ++b) most = std::max(most, ends[b] - ends[b - 1]);
    return survey(std::move(owner), most);
  }
  Cut cut_so(const std::vector<std::int32_t>& owner) {
    std::vector<std::int32_t> rows(at(blocks_), 0);
    for (const std::int32_t block : owner) ++rows[at(block)];
    return survey({mine_.stream, owner}, *std::ranges::max_element(rows));
  }

  Grouped group(const Cut& cut) {
    Grouped grouped;
    const Int32s rows = sorted_rows(cut);
    const auto of_block = DeviceArray<layout::BlockOfRows>::uninitialised(device(), at(blocks_));
    launch(layout::SizeBlocks<T>{pattern(), key_.data(), rows.data(), blocks_, kSliceRows,
                                 of_block.data()},
           blocks_);
    grouped.order = Int32s::uninitialised(device(), at(mine_.rows));
    const Int32s new_row = Int32s::uninitialised(device(), at(mine_.rows));
    launch(layout::OrderRows<T>{mine_.rows, rows.data(), cut.owner.data(), of_block.data(),
                                grouped.order.data(), new_row.data()},
           mine_.rows);
    std::vector<BlockSize> sizes;
    for (const layout::BlockOfRows& b : fetch(mine_.stream, of_block.data(), at(blocks_)))
      sizes.push_back({b.remote, b.boundary, b.end - b.begin});
    grouped.blocks = place_blocks(ghosts_, sizes);
    grouped.new_row =
        fetch(mine_.stream, new_row.data() + mine_.interior, at(mine_.rows - mine_.interior));
    return grouped;
  }

  // The packets that blocks read, once rows have their new numbers.
  void list_reads(std::vector<BlockPlan>& blocks) {
    const auto there = send_blocks(blocks);
    const BlockPlan& last = blocks.back();
    const std::int64_t words = (std::int64_t{last.first_packet} + last.boundary.size() + 31) / 32;
    const std::int64_t all = words * blocks_;
    require(all < std::int64_t{1} << 31, "too many packets among blocks: leave out halo");
    const Words read{mine_.stream, at(all)};
    launch(layout::MarkPackets<T>{pattern(), {there.data(), blocks_}, words, read.data()},
           mine_.rows);
    const Int32s bits = Int32s::uninitialised(device(), at(all));
    launch(layout::CountBits<T>{read.data(), all, bits.data()}, all);
    const Int64s before = scan_numbers<T>(mine_.stream, bits.data(), all);
    const auto first = first_of_blocks(before, words);
    const Int32s list = Int32s::uninitialised(device(), at(first.back()));
    launch(layout::ListBits<T>{read.data(), words, all, before.data(), list.data()}, all);
    const auto packets = fetch(mine_.stream, list.data(), at(first.back()));
    for (std::size_t b = 0; b < blocks.size(); ++b)
      blocks[b].reads.assign(packets.begin() + first[b], packets.begin() + first[b + 1]);
  }

  void name(const std::vector<BlockPlan>& blocks) {
    const auto there = send_blocks(blocks);
    std::vector<std::int32_t> reads;
    std::vector<std::int64_t> first{0};
    for (const BlockPlan& block : blocks) {
      reads.insert(reads.end(), block.reads.begin(), block.reads.end());
      first.push_back(static_cast<std::int64_t>(reads.size()));
    }
    const Int32s packets{mine_.stream, reads};
    const Int64s begin{mine_.stream, first};
    mine_.entry_name = Int32s::uninitialised(device(), at(mine_.nnz));
    mine_.row_name = Int32s::uninitialised(device(), at(mine_.rows));
    launch(layout::NameEntries<T>{pattern(),
                                  {there.data(), blocks_},
                                  packets.data(),
                                  begin.data(),
                                  mine_.entry_name.data(),
                                  mine_.row_name.data()},
           mine_.rows);
    mine_.stream.wait("the names of entries");
  }

 private:
  int device() const { return mine_.device(); }
  layout::OwnPattern pattern() const {
    return {mine_.rows, ghosts_, mine_.ptr.data(), mine_.col.data()};
  }
  template <class K>
  void launch(const K& kernel, std::int64_t items) const {
    launch_layout(kernel, items, mine_.stream);
  }

  layout::Sequence sequence() const { return {row_at_.size() == 0 ? nullptr : row_at_.data()}; }
  // The row at each place, and the entries before it; none where rows lie in that sequence.
  Int64s list_sequence() {
    if (mine_.names() == nullptr) return {};
    row_at_ = Int32s::uninitialised(device(), at(mine_.rows));
    launch(layout::ListSequence<T>{mine_.names(), mine_.first, mine_.rows, row_at_.data()},
           mine_.rows);
    const Int32s length = Int32s::uninitialised(device(), at(mine_.rows));
    launch(layout::RowLengths<T>{mine_.ptr.data(), row_at_.data(), 0, mine_.rows, length.data()},
           mine_.rows);
    return scan_numbers<T>(mine_.stream, length.data(), mine_.rows);
  }

  Cut survey(Int32s owner, std::int32_t most_rows) {
    const std::int64_t words = (std::int64_t{mine_.rows} + ghosts_ + 31) / 32;
    Cut cut{std::move(owner), {mine_.stream, at(mine_.rows)}, {}};
    const Words read{mine_.stream, at(words * blocks_)}, pairs{mine_.stream, at(blocks_ * blocks_)};
    const DeviceArray<std::uint64_t> reads{mine_.stream, std::size_t{1}};
    launch(layout::SurveyBlocks<T>{pattern(), cut.owner.data(), blocks_, read.data(), reads.data(),
                                   pairs.data(), cut.boundary.data()},
           summing_threads(mine_.rows));
    cut.facts.reads = static_cast<std::int64_t>(fetch(mine_.stream, reads.data(), 1)[0]);
    cut.facts.most_rows = most_rows;
    cut.facts.mutual = are_mutual(fetch(mine_.stream, pairs.data(), pairs.size()), at(blocks_));
    return cut;
  }

  // By their keys, which are then in key_.
  Int32s sorted_rows(const Cut& cut) {
    const auto keys = [&] {
      return DeviceArray<std::uint64_t>::uninitialised(device(), at(mine_.rows));
    };
    const auto rows = [&] { return Int32s::uninitialised(device(), at(mine_.rows)); };
    DeviceArray<std::uint64_t> from_key = keys();
    Int32s from = rows(), to = rows();
    key_ = keys();
    launch(layout::MakeKeys<T>{pattern(), mine_.interior, sequence(), cut.owner.data(),
                               cut.boundary.data(), from_key.data(), from.data()},
           mine_.rows);
    const auto arrays = [&] {
      return layout::KeyedRows{from_key.data(), from.data(), key_.data(), to.data(), mine_.rows};
    };
    launch(layout::SortRuns<T>{arrays()}, mine_.rows);
    for (std::int64_t length = layout::kSortedRun; length < mine_.rows; length *= 2) {
      std::swap(from_key, key_), std::swap(from, to);
      launch(layout::MergeRuns<T>{arrays(), length}, mine_.rows);
    }
    mine_.stream.wait("the order of rows in blocks");
    return to;
  }

  DeviceArray<layout::PacketBlock> send_blocks(const std::vector<BlockPlan>& blocks) const {
    std::vector<layout::PacketBlock> list;
    for (const BlockPlan& block : blocks)
      list.push_back({{block.boundary.begin, block.interior.end}, block.first_packet});
    return {mine_.stream, list};
  }

  // Where the bits of blocks begin among those that are set, and the last one's end.
  std::vector<std::int64_t> first_of_blocks(const Int64s& before, std::int64_t words) const {
    std::vector<std::int32_t> places;
    for (int b = 0; b <= blocks_; ++b) places.push_back(static_cast<std::int32_t>(b * words));
    const Int32s list{mine_.stream, places};
    const Int64s first = Int64s::uninitialised(device(), places.size());
    const auto count = static_cast<std::int64_t>(places.size());
    launch(layout::TakeNumbers<T>{before.data(), list.data(), count, first.data()}, count);
    return fetch(mine_.stream, first.data(), places.size());
  }

  GpuRows<T>& mine_;
  std::int32_t ghosts_;
  int blocks_;
  Int32s row_at_;  // the row at each place of the sequence; empty: they are in it
  DeviceArray<std::uint64_t> key_;
};

template <class T>
using Makers = std::vector<BlockMaker<T>>;

// Calls f(k) for all PEs, each with its GPU current, side by side.
template <class T, class F>
void for_each_pe(const std::vector<GpuRows<T>>& rows, F&& f) {
  in_parallel(static_cast<int>(rows.size()), [&](int k) {
    const OnDevice here(rows[at(k)].device());
    f(at(k));
  });
}

// The blocks of all rows, by the graphs of these.
template <class T>
std::vector<std::vector<std::int32_t>> cut_graphs_of(const std::vector<GpuRows<T>>& rows,
                                                     int blocks) {
  struct Pattern {
    PageVector<std::int64_t> ptr;
    PageVector<std::int32_t> col;
  };
  std::vector<Pattern> patterns(rows.size());
  std::vector<StagedCopy> copies;
  std::vector<RowPattern> pes;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const GpuRows<T>& mine = rows[k];
    auto& [ptr, col] = patterns[k];
    ptr.resize(mine.ptr.size());
    col.resize(at(mine.nnz));
    copies.push_back({mine.device(), ptr.data(), mine.ptr.data(), ptr.size() * 8});
    copies.push_back({mine.device(), col.data(), mine.col.data(), col.size() * 4});
    pes.push_back({mine.rows, ptr.data(), col.data()});
  }
  fetch_staged(copies);
  return cut_among_blocks(pes, blocks);
}

// Cuts the graphs of rows instead, of those PEs for which that pays (cut_graphs).
template <class T>
void cut_better(const std::vector<GpuRows<T>>& rows, Makers<T>& makers, int blocks,
                std::vector<Cut>& cuts) {
  const auto owners = cut_graphs_of(rows, blocks);
  for_each_pe(rows, [&](std::size_t k) {
    Cut other = makers[k].cut_so(owners[k]);
    if (graph_pays(other.facts, cuts[k].facts)) cuts[k] = std::move(other);
  });
}

}  // namespace

template <class T>
std::optional<HalosOnGpus> make_block_halos(HaloPlan<T>& plan, std::vector<GpuRows<T>>& rows,
                                            int blocks, std::int64_t most_reads) {
  require(blocks < layout::kMostBlocks, "a GPU has fewer blocks than these: leave out blocks");
  Makers<T> makers;
  for (std::size_t k = 0; k < rows.size(); ++k)
    makers.emplace_back(rows[k], plan.local[k].ghosts, blocks);
  std::vector<Cut> cuts(rows.size());
  for_each_pe(rows, [&](std::size_t k) { cuts[k] = makers[k].cut_sequence(); });
  std::int64_t reads = 0;
  for (const Cut& cut : cuts) reads += cut.facts.reads;
  if (reads > most_reads || !std::ranges::all_of(cuts, [](const Cut& c) { return c.facts.mutual; }))
    return {};
  cut_better(rows, makers, blocks, cuts);
  HalosOnGpus made;
  std::vector<Grouped> grouped(rows.size());
  for_each_pe(rows, [&](std::size_t k) {
    grouped[k] = makers[k].group(cuts[k]);
    reorder_rows(rows[k], grouped[k].order, rows[k].rows);
    makers[k].list_reads(grouped[k].blocks);
    makers[k].name(grouped[k].blocks);
  });
  std::vector<std::vector<std::int32_t>> new_row;
  for (Grouped& of_pe : grouped) {
    const BlockPlan& last = of_pe.blocks.back();
    made.halos.packets.push_back(last.first_packet + last.boundary.size());
    made.halos.plans.push_back(std::move(of_pe.blocks));
    made.order.push_back(std::move(of_pe.order));
    new_row.push_back(std::move(of_pe.new_row));
  }
  renumber_halos(plan, AllHere(rows.size()), new_row);
  return made;
}

template <class T>
void take_block_halos(std::vector<GpuRows<T>>& rows, const std::vector<Int32s>& order,
                      const std::vector<std::vector<BlockPlan>>& plans) {
  for_each_pe(rows, [&](std::size_t k) {
    reorder_rows(rows[k], order[k], rows[k].rows);
    const auto ghosts = plans[k].front().first_packet;  // packets of ghosts come first
    BlockMaker<T>(rows[k], ghosts, static_cast<int>(plans[k].size())).name(plans[k]);
  });
}

#define CPUFREE_BLOCK_HALOS(T)                                                                 \
  template std::optional<HalosOnGpus> make_block_halos(HaloPlan<T>&, std::vector<GpuRows<T>>&, \
                                                       int, std::int64_t);                     \
  template void take_block_halos(std::vector<GpuRows<T>>&, const std::vector<Int32s>&,         \
                                 const std::vector<std::vector<BlockPlan>>&);
CPUFREE_BLOCK_HALOS(float)
CPUFREE_BLOCK_HALOS(double)

}  // namespace cpufree
