// Kernels that lay a matrix out on its GPUs: the rows of a PE in its own numbers (halo_plan.hpp),
// where PEs have consecutive rows.
#pragma once

#include <cstdint>

#include "cpufree/formats/layout/rows.hpp"

namespace cpufree::layout {

// Which rows read columns of other PEs, 1 or 0, and which columns of others are read.
template <class T>
struct MarkBoundary {
  PartRows<T> rows;
  std::int32_t* boundary = nullptr;
  std::int32_t* ghost = nullptr;  // of each row of the matrix; zeroed before

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows.count, [&](std::int64_t r) {
      std::int32_t far = 0;
      for (std::int64_t k = rows.ptr[r]; k < rows.ptr[r + 1]; ++k) {
        if (rows.has(rows.col[k])) continue;
        far = 1;
        port.set(&ghost[rows.col[k]], 1);
      }
      boundary[r] = far;
    });
  }
};

// Interior rows first, then boundary rows, each in their sequence.
template <class T>
struct NumberRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t interior = 0;
  const std::int32_t* boundary = nullptr;
  const std::int64_t* before = nullptr;  // boundary rows before each
  std::int32_t* local_row = nullptr;
  std::int32_t* global_row = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t r) {
      const std::int64_t to = boundary[r] != 0 ? interior + before[r] : r - before[r];
      local_row[r] = static_cast<std::int32_t>(to);
      global_row[to] = static_cast<std::int32_t>(first + r);
    });
  }
};

// The numbers of marked places, in order.
template <class T>
struct ListMarked {
  const std::int32_t* mark = nullptr;
  const std::int64_t* before = nullptr;
  std::int64_t count = 0;
  std::int32_t* list = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t i) {
      if (mark[i] != 0) list[before[i]] = static_cast<std::int32_t>(i);
    });
  }
};

// The entries of each row; row k is row_of[k] - first of `ptr`; no row_of: row k.
template <class T>
struct RowLengths {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* row_of = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int32_t* length = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t k) {
      const std::int64_t r = row_of == nullptr ? k : row_of[k] - first;
      length[k] = static_cast<std::int32_t>(ptr[r + 1] - ptr[r]);
    });
  }
};

// Copies rows, columns in local numbers and sorted by them: those of interior rows, of boundary
// rows, ghosts. Each of the three groups keeps its sequence, and is sorted then: interior rows and
// boundary rows are numbered in the matrix's sequence, and so are ghosts, as PEs have consecutive
// rows.
template <class T>
struct TakeRows {
  PartRows<T> from;
  std::int64_t interior = 0;
  const std::int32_t* global_row = nullptr;
  const std::int32_t* local_row = nullptr;
  const std::int64_t* ghost = nullptr;  // of each row of the matrix that is one: its number
  const std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;
  T* val = nullptr;
  Facts* facts = nullptr;

  CPUFREE_KERNEL_FN std::int64_t number(std::int64_t column) const {
    return from.has(column) ? local_row[column - from.first] : from.count + ghost[column];
  }
  CPUFREE_KERNEL_FN int group(std::int64_t number) const {
    return number < interior ? 0 : number < from.count ? 1 : 2;
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    std::uint64_t reads = 0;
    each_item(port, from.count, [&](std::int64_t row) {
      const std::int64_t r = global_row[row] - from.first;
      std::int64_t to = ptr[row];
      const int groups = row < interior ? 2 : 3;
      for (int g = 0; g < groups; ++g)
        for (std::int64_t k = from.ptr[r]; k < from.ptr[r + 1]; ++k) {
          const std::int64_t column = number(from.col[k]);
          if (group(column) != g) continue;
          col[to] = static_cast<std::int32_t>(column);
          val[to++] = from.val[k];
          reads += g == 2 ? 1 : 0;
        }
    });
    port.add_together(&facts->ghost_reads, reads);
  }
};

// Interior rows in another order: row k is row order[k]. Entries keep their sequence.
template <class T>
struct InvertOrder {
  const std::int32_t* order = nullptr;
  std::int64_t interior = 0;
  std::int64_t count = 0;
  const std::int32_t* old_global_row = nullptr;  // null: row k is `first` + k
  std::int64_t first = 0;
  std::int32_t* new_row = nullptr;     // of interior rows
  std::int32_t* old_row = nullptr;     // of all
  std::int32_t* global_row = nullptr;  // of all

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t k) {
      const std::int32_t old = k < interior ? order[k] : static_cast<std::int32_t>(k);
      if (k < interior) new_row[old] = static_cast<std::int32_t>(k);
      old_row[k] = old;
      global_row[k] =
          old_global_row == nullptr ? static_cast<std::int32_t>(first + old) : old_global_row[old];
    });
  }
};
template <class T>
struct MoveRows {
  const std::int64_t* from_ptr = nullptr;
  const std::int32_t* from_col = nullptr;
  const T* from_val = nullptr;
  std::int64_t interior = 0;
  std::int64_t count = 0;
  const std::int32_t* new_row = nullptr;
  const std::int32_t* old_row = nullptr;
  const std::int64_t* ptr = nullptr;
  std::int32_t* col = nullptr;
  T* val = nullptr;

  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, count, [&](std::int64_t row) {
      std::int64_t to = ptr[row];
      const std::int64_t r = old_row[row];
      for (std::int64_t k = from_ptr[r]; k < from_ptr[r + 1]; ++k, ++to) {
        const std::int32_t column = from_col[k];
        col[to] = column < interior ? new_row[column] : column;
        val[to] = from_val[k];
      }
    });
  }
};

// Which blocks' rows and ghosts each block reads. Blocks have ranges of interior and of boundary
// rows, one behind the other, of which the ends are given.
template <class T>
struct FindPartners {
  const std::int64_t* ptr = nullptr;
  const std::int32_t* col = nullptr;
  std::int32_t rows = 0;
  std::int32_t interior = 0;
  int blocks = 1;
  int slots = 1;                               // blocks of all PEs
  const std::int32_t* interior_end = nullptr;  // of each block
  const std::int32_t* boundary_end = nullptr;
  const std::int32_t* source = nullptr;   // of each ghost: the slot that sends it
  std::uint32_t* reads = nullptr;         // blocks x blocks; zeroed before
  std::uint32_t* reads_remote = nullptr;  // blocks x slots

  CPUFREE_KERNEL_FN int block_of(std::int32_t row) const {
    const std::int32_t* const end = row < interior ? interior_end : boundary_end;
    int low = 0, high = blocks - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (end[middle] <= row)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  template <class P>
  CPUFREE_KERNEL_FN void run(const P& port) const {
    each_item(port, rows, [&](std::int64_t row) {
      const int mine = block_of(static_cast<std::int32_t>(row));
      int before = -1;
      for (std::int64_t k = ptr[row]; k < ptr[row + 1]; ++k) {
        const std::int32_t column = col[k];
        if (column >= rows) {
          note(port, &reads_remote[std::int64_t{mine} * slots + source[column - rows]]);
          continue;
        }
        const int other = block_of(column);
        if (other == mine || other == before) continue;
        note(port, &reads[std::int64_t{mine} * blocks + other]);
        before = other;
      }
    });
  }
  template <class P>
  CPUFREE_KERNEL_FN static void note(const P& port, std::uint32_t* flag) {
    if (port.get(flag) == 0) port.join(flag, 1U);
  }
};

}  // namespace cpufree::layout
