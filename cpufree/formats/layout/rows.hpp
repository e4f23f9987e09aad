// Kernels that lay a matrix out on its GPUs: rows of a PE, and what is found in them.
//
// Each kernel is a struct of its arguments, run(port) its body. A grid of any size does it: threads
// take items (rows, slices, places) in turns and never wait. `port` says which thread this is
// (lane() of lanes() in block() of blocks()) and has atomics: add, raise and lower a number in
// memory, join bits to one, set one; swap_if(place, expected, value) returns what was there. What
// all threads add to one number they add_together, past each_item; before_lane is what the lanes of
// a team before this one have together.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cpufree/base/annotate.hpp"

namespace cpufree::layout {

inline constexpr int kThreads = 128;         // of a block
inline constexpr int kMostParts = 64;        // PEs of a matrix
inline constexpr std::int64_t kScan = 1024;  // numbers that a team adds up

// Calls f(i) for the items of [0, count) that are this thread's.
template <class P, class F>
CPUFREE_KERNEL_FN void each_item(const P& port, std::int64_t count, F&& f) {
  const std::int64_t threads = std::int64_t{port.blocks()} * port.lanes();
  for (std::int64_t i = std::int64_t{port.block()} * port.lanes() + port.lane(); i < count;
       i += threads)
    f(i);
}

// Items for teams: f(item), for all lanes of one. At most `most` teams take part.
template <class P, class F>
CPUFREE_KERNEL_FN void each_team_item(const P& port, std::int64_t most, std::int64_t count, F&& f) {
  const std::int64_t teams = port.teams() < most ? port.teams() : most;
  if (port.team() >= teams) return;
  for (std::int64_t i = port.team(); i < count; i += teams) f(i);
}

// Consecutive rows of a matrix, in the memory of a GPU. Columns go by the matrix's numbers.
template <class T>
struct PartRows {
  std::int64_t first = 0;  // of them, in the matrix
  std::int64_t count = 0;
  const std::int64_t* ptr = nullptr;  // count + 1, from 0
  const std::int32_t* col = nullptr;
  const T* val = nullptr;

  CPUFREE_FN std::int64_t end() const { return first + count; }
  CPUFREE_FN bool has(std::int64_t row) const { return row >= first && row < end(); }
  // The first entry of row `row` of these whose column is not before `column`, or the row's end.
  CPUFREE_FN std::int64_t entry_from(std::int64_t row, std::int64_t column) const {
    std::int64_t low = ptr[row], high = ptr[row + 1];
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (col[middle] < column)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  // Where `column` is in row `row` of these, or -1.
  CPUFREE_FN std::int64_t find(std::int64_t row, std::int64_t column) const {
    const std::int64_t k = entry_from(row, column);
    return k < ptr[row + 1] && col[k] == column ? k : -1;
  }
};

// Whether two rows have the same columns.
CPUFREE_FN bool same_columns(const std::int64_t* ptr, const std::int32_t* col, std::int32_t a,
                             std::int32_t b) {
  const std::int64_t length = ptr[a + 1] - ptr[a];
  if (ptr[b + 1] - ptr[b] != length) return false;
  for (std::int64_t k = 0; k < length; ++k)
    if (col[ptr[a] + k] != col[ptr[b] + k]) return false;
  return true;
}

// What there is to see in the rows of a PE; zeroed before.
struct Facts {
  std::uint32_t unsound = 0;     // columns do not increase, or are none of the matrix
  std::uint32_t not_finite = 0;  // some value
  std::uint32_t bad_diagonal = 0;
  std::uint32_t asymmetric = 0;
  std::uint32_t unmirrored = 0;
  std::uint32_t reserved = 0;
  std::uint64_t above = 0, below = 0;  // entries beside the diagonal
  std::uint64_t distance = 0;          // sum of |row - column|
  std::uint64_t pattern = 0;           // differs between patterns, most likely
  std::uint64_t asymmetry = 0;         // bits of a number that is not negative
  std::uint64_t bound = 0;             // likewise, of the spectrum
  std::uint64_t ghost_reads = 0;
};

// Those of numbers that are not negative are in the order of the numbers.
CPUFREE_FN std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}
CPUFREE_FN std::uint64_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

// Where rows begin, from 0, in 64 bits; of `wide` numbers or 32-bit ones.
template <class T>
struct RebaseRows {
  const void* from = nullptr;
  bool wide = true;
  std::int64_t count = 0;  // rows + 1
  std::int64_t* to = nullptr;
  Facts* facts = nullptr;

  CPUFREE_KERNEL_FN std::int64_t at(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(from)[i]
                : static_cast<const std::int32_t*>(from)[i];
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t i) {
      to[i] = at(i) - at(0);
      if (i > 0 && at(i) < at(i - 1)) port.join(&facts->unsound, 1U);
    });
  }
};

// Looks at each entry by itself.
template <class T>
struct CheckRows {
  PartRows<T> rows;
  std::int64_t all_rows = 0;
  Facts* facts = nullptr;

  CPUFREE_KERNEL_FN static std::uint64_t mixed(std::uint64_t row, std::uint64_t column) {
    std::uint64_t x = (row << 32U | column) + 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27U) * 0x94d049bb133111ebU;
    return x ^ x >> 31U;
  }
  CPUFREE_KERNEL_FN static bool finite(T value) { return value - value == T{0}; }

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    Facts seen;
    each_item(port, rows.count, [&](std::int64_t r) {
      const std::int64_t row = rows.first + r;
      std::int64_t before = -1;
      bool positive = false;
      for (std::int64_t k = rows.ptr[r]; k < rows.ptr[r + 1]; ++k) {
        const std::int64_t column = rows.col[k];
        const T value = rows.val[k];
        if (column <= before || column >= all_rows) seen.unsound = 1;
        before = column;
        if (!finite(value)) seen.not_finite = 1;
        if (column == row) positive = value > T{0};
        seen.below += column < row ? 1 : 0;
        seen.above += column > row ? 1 : 0;
        seen.distance += static_cast<std::uint64_t>(column < row ? row - column : column - row);
        seen.pattern += mixed(static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(column));
      }
      if (!positive) seen.bad_diagonal = 1;
    });
    if (seen.unsound != 0) port.join(&facts->unsound, 1U);
    if (seen.not_finite != 0) port.join(&facts->not_finite, 1U);
    if (seen.bad_diagonal != 0) port.join(&facts->bad_diagonal, 1U);
    port.add_together(&facts->above, seen.above);
    port.add_together(&facts->below, seen.below);
    port.add_together(&facts->distance, seen.distance);
    port.add_together(&facts->pattern, seen.pattern);
  }
};

// Looks for the mirror images of entries: of all above the diagonal, and of those in columns of
// other PEs, or of the latter alone.
template <class T>
struct CheckMirrors {
  PartRows<T> part[kMostParts];
  int parts = 1;
  int own = 0;
  bool all = true;
  Facts* facts = nullptr;

  CPUFREE_KERNEL_FN const PartRows<T>& part_of(std::int64_t row) const {
    int low = 0, high = parts - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (part[middle].end() <= row)
        low = middle + 1;
      else
        high = middle;
    }
    return part[low];
  }
  CPUFREE_KERNEL_FN static double root_of_diagonal(const PartRows<T>& of, std::int64_t row) {
    const std::int64_t k = of.find(row - of.first, row);
    return k < 0 ? 0.0 : std::sqrt(std::fabs(static_cast<double>(of.val[k])));
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    const PartRows<T>& mine = part[own];
    each_item(port, mine.count, [&](std::int64_t r) {
      const std::int64_t row = mine.first + r;
      for (std::int64_t k = mine.ptr[r]; k < mine.ptr[r + 1]; ++k) {
        const std::int64_t column = mine.col[k];
        const bool far = !mine.has(column);
        if (!far && (!all || column <= row)) continue;
        const PartRows<T>& there = far ? part_of(column) : mine;
        const std::int64_t mirror = there.find(column - there.first, row);
        if (mirror < 0)
          port.join(&facts->unmirrored, 1U);
        else if (all && column > row && !(mine.val[k] == there.val[mirror]))
          compare(port, row, column, there, mine.val[k], there.val[mirror]);
      }
    });
  }
  template <class P>
  CPUFREE_KERNEL_FN void compare(const P& port, std::int64_t row, std::int64_t column,
                                 const PartRows<T>& there, T a, T b) const {
    port.join(&facts->asymmetric, 1U);
    // Roots first: the product of two diagonal entries may overflow.
    const double scale = root_of_diagonal(part[own], row) * root_of_diagonal(there, column);
    const double apart = std::fabs(static_cast<double>(a) - static_cast<double>(b)) / scale;
    if (apart > 0.0) port.raise(&facts->asymmetry, bits_of(apart));  // false for a NaN
  }
};

// Writes what comes before each of the numbers [begin, end), from `before` on, to `to`, by all
// lanes of a team. Returns what comes after them.
template <class P, class N>
CPUFREE_KERNEL_FN std::int64_t scan_by_team(const P& port, const N* number, std::int64_t begin,
                                            std::int64_t end, std::int64_t before,
                                            std::int64_t* to) {
  for (std::int64_t first = begin; first < end; first += P::team_lanes()) {
    const std::int64_t i = first + port.team_lane();
    const std::int64_t mine = i < end ? std::int64_t{number[i]} : 0;
    std::int64_t all = 0;
    const std::int64_t of_lanes = port.before_lane(mine, all);
    if (i < end) to[i] = before + of_lanes;
    before += all;
  }
  return before;
}
// Sums of kScan numbers each;
template <class T>
struct SumNumbers {
  const std::int32_t* number = nullptr;
  std::int64_t count = 0;
  std::int64_t* sums = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    const std::int64_t chunks = (count + kScan - 1) / kScan;
    each_team_item(port, chunks, chunks, [&](std::int64_t c) {
      const std::int64_t end = (c + 1) * kScan < count ? (c + 1) * kScan : count;
      std::int64_t mine = 0, all = 0;
      for (std::int64_t i = c * kScan + port.team_lane(); i < end; i += P::team_lanes())
        mine += number[i];
      port.before_lane(mine, all);
      if (port.team_lane() == 0) sums[c] = all;
    });
  }
};
// from these, in place, the sums before each, by one team, and of all;
template <class T>
struct ScanSums {
  std::int64_t count = 0;
  std::int64_t* sums = nullptr;
  std::int64_t* all = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    if (port.team() > 0) return;
    const std::int64_t found = scan_by_team(port, sums, 0, count, 0, sums);
    if (port.team_lane() == 0) *all = found;
  }
};
// and the sums before each number.
template <class T>
struct ScanNumbers {
  const std::int32_t* number = nullptr;
  std::int64_t count = 0;
  const std::int64_t* before = nullptr;  // of each kScan numbers
  std::int64_t* to = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    const std::int64_t chunks = (count + kScan - 1) / kScan;
    each_team_item(port, chunks, chunks, [&](std::int64_t c) {
      const std::int64_t end = (c + 1) * kScan < count ? (c + 1) * kScan : count;
      scan_by_team(port, number, c * kScan, end, before[c], to);
    });
  }
};

// Some of the numbers, listed by place.
template <class T>
struct TakeNumbers {
  const std::int64_t* from = nullptr;
  const std::int32_t* list = nullptr;
  std::int64_t count = 0;
  std::int64_t* to = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t i) { to[i] = from[list[i]]; });
  }
};

}  // namespace cpufree::layout
