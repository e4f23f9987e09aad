// Kernels that lay a matrix out on its GPUs: the rows of a PE among blocks that exchange packets,
// as problem/blocks/block_halo.hpp says.
#pragma once

#include <cstdint>

#include "cpufree/formats/layout/rows.hpp"
#include "cpufree/problem/blocks/piece_cuts.hpp"
#include "cpufree/problem/row_range.hpp"

namespace cpufree::layout {

inline constexpr int kSortedRun = 32;  // keys that are sorted before runs are merged
inline constexpr int kMostBlocks = 1 << 16;

// Rows of a PE, by its numbers: columns from `count` on are ghosts.
struct OwnPattern {
  std::int32_t count = 0, ghosts = 0;
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
};

// Where a value belongs in `count` increasing ones: before the first that is not less or, if
// `behind`, that is greater.
template <class V>
CPUFREE_FN std::int64_t place_in(const V* values, std::int64_t count, V value, bool behind) {
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const bool after = values[middle] < value || (behind && values[middle] == value);
    (after ? low : high) = after ? middle + 1 : middle;
  }
  return low;
}

// The row of a PE at each place of the matrix's sequence: null where row r is the r-th.
struct Sequence {
  const std::int32_t* row_at = nullptr;
  CPUFREE_FN std::int32_t operator()(std::int64_t k) const {
    return row_at == nullptr ? static_cast<std::int32_t>(k) : row_at[k];
  }
};

// Makes it of rows that are named in the matrix, from `first` on.
template <class T>
struct ListSequence {
  const std::int32_t* name = nullptr;
  std::int64_t first = 0, count = 0;
  std::int32_t* row_at = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count,
              [&](std::int64_t r) { row_at[name[r] - first] = static_cast<std::int32_t>(r); });
  }
};

// Where pieces of equal weight of the sequence end, but for nodes that would be torn.
template <class T>
struct EndPieces {
  OwnPattern rows;
  Sequence row_at;
  const std::int64_t* before = nullptr;  // entries before each place of the sequence
  std::int64_t nnz_weight = 1, row_weight = 0;
  int pieces = 1;
  std::int32_t* end = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    const auto weight = [this](std::int32_t i) { return nnz_weight * before[i] + row_weight * i; };
    const auto same = [this](std::int32_t k) {
      return same_columns(rows.ptr, rows.col, row_at(k - 1), row_at(k));
    };
    each_item(port, pieces, [&](std::int64_t piece) {
      const std::int64_t goal = piece_goal(weight(rows.count), static_cast<int>(piece), pieces);
      const bool last = piece + 1 == pieces;
      const std::int32_t cut = last ? rows.count : nearest_cut(weight, goal, 0, rows.count);
      end[piece] = cut_between_nodes(same, cut, rows.count);
    });
  }
};

// The piece of each row, where pieces end so.
template <class T>
struct OwnRows {
  Sequence row_at;
  std::int64_t count = 0;
  const std::int32_t* end = nullptr;  // does not decrease
  int pieces = 1;
  std::int32_t* owner = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t k) {
      owner[row_at(k)] =
          static_cast<std::int32_t>(place_in(end, pieces, static_cast<std::int32_t>(k), true));
    });
  }
};

// What blocks see of one another: the columns that each one reads of others, how many, of which
// blocks, and the rows on boundaries. All zeroed before.
template <class T>
struct SurveyBlocks {
  OwnPattern rows;
  const std::int32_t* owner = nullptr;
  int blocks = 1;
  std::uint32_t* read = nullptr;     // of each block: a bit for each row and ghost
  std::uint64_t* reads = nullptr;    // bits that are set
  std::uint32_t* pairs = nullptr;    // blocks x blocks: 1 where one reads rows of the other
  std::int32_t* boundary = nullptr;  // of each row: 1 where it is read by another, or reads one

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    const std::int64_t words = (std::int64_t{rows.count} + rows.ghosts + 31) / 32;
    std::uint64_t count = 0;
    each_item(port, rows.count, [&](std::int64_t row) {
      const std::int64_t mine = owner[row];
      for (std::int64_t k = rows.ptr[row]; k < rows.ptr[row + 1]; ++k) {
        const std::int32_t column = rows.col[k];
        const bool ghost = column >= rows.count;
        if (!ghost && owner[column] == mine) continue;
        port.set(&boundary[row], 1);
        const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(column % 32);
        std::uint32_t* const word = &read[mine * words + column / 32];
        if ((port.get(word) & bit) != 0 || (port.join(word, bit) & bit) != 0) continue;
        ++count;
        if (ghost) continue;
        port.set(&boundary[column], 1);
        std::uint32_t* const pair = &pairs[mine * blocks + owner[column]];
        if (port.get(pair) == 0) port.join(pair, 1U);
      }
    });
    port.add_together(reads, count);
  }
};

// By what rows are sorted: by block; those that other PEs read, then others of the boundary, then
// the interior; long ones first. What is equal keeps its sequence.
template <class T>
struct MakeKeys {
  OwnPattern rows;
  std::int32_t interior = 0;  // rows from here on are read by other PEs
  Sequence row_at;
  const std::int32_t* owner = nullptr;
  const std::int32_t* boundary = nullptr;
  std::uint64_t* key = nullptr;
  std::int32_t* row = nullptr;

  static constexpr std::uint64_t kLongest = (std::uint64_t{1} << 32U) - 1;
  CPUFREE_FN static std::uint64_t key_of(std::int64_t block, std::uint64_t kind,
                                         std::uint64_t length = kLongest) {
    return static_cast<std::uint64_t>(block) << 48U | kind << 46U | (kLongest - length);
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows.count, [&](std::int64_t k) {
      const std::int32_t r = row_at(k);
      const std::uint64_t kind = r >= interior ? 0 : boundary[r] != 0 ? 1 : 2;
      key[k] = key_of(owner[r], kind, static_cast<std::uint64_t>(rows.ptr[r + 1] - rows.ptr[r]));
      row[k] = r;
    });
  }
};

// Keys with their rows, sorted from one pair of arrays into the other: runs of kSortedRun by
// themselves, then each two runs into one. Each key finds its place: a thread for each has less to
// do than one that sorts a run.
struct KeyedRows {
  const std::uint64_t* from_key = nullptr;
  const std::int32_t* from_row = nullptr;
  std::uint64_t* key = nullptr;
  std::int32_t* row = nullptr;
  std::int64_t count = 0;

  CPUFREE_FN void put(std::int64_t place, std::int64_t k) const {
    key[place] = from_key[k];
    row[place] = from_row[k];
  }
};
template <class T>
struct SortRuns {
  KeyedRows rows;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows.count, [&](std::int64_t k) {
      const std::int64_t begin = k / kSortedRun * kSortedRun;
      const std::int64_t end = begin + kSortedRun < rows.count ? begin + kSortedRun : rows.count;
      const std::uint64_t mine = rows.from_key[k];
      std::int64_t place = begin;
      for (std::int64_t other = begin; other < end; ++other)
        if (rows.from_key[other] < mine || (rows.from_key[other] == mine && other < k)) ++place;
      rows.put(place, k);
    });
  }
};
template <class T>
struct MergeRuns {
  KeyedRows rows;
  std::int64_t length = kSortedRun;  // of runs, the last one excepted

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows.count, [&](std::int64_t k) {
      const std::int64_t begin = k / (2 * length) * (2 * length);
      const std::int64_t middle = begin + length < rows.count ? begin + length : rows.count;
      const std::int64_t end = middle + length < rows.count ? middle + length : rows.count;
      const std::uint64_t mine = rows.from_key[k];
      if (k < middle)
        rows.put(k + place_in(rows.from_key + middle, end - middle, mine, false), k);
      else
        rows.put(k - length + place_in(rows.from_key + begin, length, mine, true), k);
    });
  }
};

// What a block has of the sorted rows.
struct BlockOfRows {
  std::int32_t begin = 0;     // of its rows
  std::int32_t remote = 0;    // rows that other PEs read
  std::int32_t boundary = 0;  // rows of its boundary, these and those that fill it included
  std::int32_t filled = 0;    // that fill it, the last ones of its interior
  std::int32_t end = 0;
};
template <class T>
struct SizeBlocks {
  OwnPattern rows;
  const std::uint64_t* key = nullptr;
  const std::int32_t* row = nullptr;
  int blocks = 1;
  std::int32_t slice = 32;
  BlockOfRows* of_block = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, blocks, [&](std::int64_t b) {
      const auto begin_of = [&](std::int64_t block, std::uint64_t kind) {
        return static_cast<std::int32_t>(
            place_in(key, rows.count, MakeKeys<T>::key_of(block, kind), false));
      };
      BlockOfRows mine;
      mine.begin = begin_of(b, 0);
      const std::int32_t inside = begin_of(b, 2);
      mine.end = begin_of(b + 1, 0);
      mine.remote = begin_of(b, 1) - mine.begin;
      const auto same = [&](std::int32_t k) {
        return same_columns(rows.ptr, rows.col, row[inside + k - 1], row[inside + k]);
      };
      mine.filled = rows_to_fill(same, inside - mine.begin, mine.end - inside, slice);
      mine.boundary = inside - mine.begin + mine.filled;
      of_block[b] = mine;
    });
  }
};

// The sorted rows, those that fill boundaries behind these.
template <class T>
struct OrderRows {
  std::int64_t count = 0;
  const std::int32_t* row = nullptr;
  const std::int32_t* owner = nullptr;
  const BlockOfRows* of_block = nullptr;
  std::int32_t* order = nullptr;    // the row at each place
  std::int32_t* new_row = nullptr;  // the place of each row

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t k) {
      const BlockOfRows& block = of_block[owner[row[k]]];
      const std::int32_t inside = block.begin + block.boundary - block.filled;
      std::int64_t place = k;
      if (k >= block.end - block.filled)
        place = inside + k - (block.end - block.filled);
      else if (k >= inside)
        place = k + block.filled;
      order[place] = row[k];
      new_row[row[k]] = static_cast<std::int32_t>(place);
    });
  }
};

// Blocks of rows in their new numbers, by which packets go.
struct PacketBlock {
  RowRange rows;  // the boundary, then the interior
  std::int32_t first_packet = 0;
};
struct PacketBlocks {
  const PacketBlock* block = nullptr;
  int count = 1;

  CPUFREE_FN int of(std::int32_t row) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (block[middle].rows.end <= row)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  // Of a column that is another block's.
  CPUFREE_FN std::int32_t packet(const OwnPattern& rows, std::int32_t column) const {
    if (column >= rows.count) return column - rows.count;
    const PacketBlock& owner = block[of(column)];
    return owner.first_packet + column - owner.rows.begin;
  }
};

// The packets that blocks read: a bit for each, zeroed before.
template <class T>
struct MarkPackets {
  OwnPattern rows;
  PacketBlocks blocks;
  std::int64_t words = 0;  // of each block
  std::uint32_t* read = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows.count, [&](std::int64_t row) {
      const int mine = blocks.of(static_cast<std::int32_t>(row));
      const RowRange own = blocks.block[mine].rows;
      for (std::int64_t k = rows.ptr[row]; k < rows.ptr[row + 1]; ++k) {
        const std::int32_t column = rows.col[k];
        if (column >= own.begin && column < own.end) continue;
        const std::int32_t packet = blocks.packet(rows, column);
        const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(packet % 32);
        std::uint32_t* const word = &read[mine * words + packet / 32];
        if ((port.get(word) & bit) == 0) port.join(word, bit);
      }
    });
  }
};
template <class T>
struct CountBits {
  const std::uint32_t* word = nullptr;
  std::int64_t count = 0;
  std::int32_t* bits = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t w) {
      std::int32_t set = 0;
      for (std::uint32_t left = word[w]; left != 0; left &= left - 1) ++set;
      bits[w] = set;
    });
  }
};
// The numbers of the bits that are set, of each row of `words`.
template <class T>
struct ListBits {
  const std::uint32_t* word = nullptr;
  std::int64_t words = 1;
  std::int64_t count = 0;
  const std::int64_t* before = nullptr;  // bits set before each word
  std::int32_t* list = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t w) {
      std::int64_t to = before[w];
      for (int bit = 0; bit < 32; ++bit)
        if ((word[w] >> static_cast<unsigned>(bit) & 1U) != 0)
          list[to++] = static_cast<std::int32_t>(w % words * 32 + bit);
    });
  }
};

// What kernels call columns and rows (BlockColumns).
template <class T>
struct NameEntries {
  OwnPattern rows;
  PacketBlocks blocks;
  const std::int32_t* reads = nullptr;  // packets of the blocks, increasing in each
  const std::int64_t* first = nullptr;  // where each block's begin, and the last one's end
  std::int32_t* entry_name = nullptr;
  std::int32_t* row_name = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows.count, [&](std::int64_t row) {
      const int mine = blocks.of(static_cast<std::int32_t>(row));
      const RowRange own = blocks.block[mine].rows;
      row_name[row] = static_cast<std::int32_t>(row) - own.begin;
      for (std::int64_t k = rows.ptr[row]; k < rows.ptr[row + 1]; ++k) {
        const std::int32_t column = rows.col[k];
        const bool is_own = column >= own.begin && column < own.end;
        entry_name[k] = is_own ? column - own.begin
                               : own.size() + place_among_reads(mine, blocks.packet(rows, column));
      }
    });
  }
  CPUFREE_KERNEL_FN std::int32_t place_among_reads(int block, std::int32_t packet) const {
    return static_cast<std::int32_t>(
        place_in(reads + first[block], first[block + 1] - first[block], packet, false));
  }
};

}  // namespace cpufree::layout
