// One Jacobi iteration on a slab: planes of axis 0 that one GPU owns, as a functor that is called
// for every thread of a launch, and a second one that sends and computes nothing.
//
// A thread has 16 bytes of a row (in three dimensions of two rows) and goes along axis 0 through a
// chunk of planes. The values before, here and after stay in registers, and the plane beyond is on
// its way while this one is computed: of a chunk of d planes d + 2 are read. What lies beside a
// thread, its neighbours have read a moment ago: it comes from the caches. Rows and columns that
// are periodic are read on the other side of the grid; along axis 0 there are ghost planes.
//
// Chunks 0 and 1 are the first and the last plane, the slab's edges; those between follow. So the
// first blocks of a launch compute what others wait for.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"
#include "cpufree/baselines/slices.hpp"
#include "cpufree/device/pack.hpp"
#include "cpufree/device/types.hpp"
#include "cpufree/stencils/local.hpp"

namespace cpufree::baselines {

// Columns and rows of a thread.
template <class T>
inline constexpr int kStepColumns = 16 / static_cast<int>(sizeof(T));
template <int D>
inline constexpr int kStepRows = D == 3 ? 2 : 1;

// How the threads of a launch fall to the points.
struct StepTiles {
  std::int32_t wide = 1;    // threads of a block along a row
  std::int32_t across = 1;  // blocks along a row
  std::int32_t down = 1;    // blocks over the rows
  std::int32_t depth = 1;   // planes of a chunk
  std::int32_t first = 0;   // chunk
  std::int32_t chunks = 0;
};

// Copies of the edges in other slabs, stored with them: where plane begins. Null: none.
template <class T>
struct StepCopies {
  T* before = nullptr;  // of the first plane
  T* after = nullptr;   // of the last one
};

// How the blocks that compute edges wait for the neighbours' of the step before, and tell them.
// The flag of a side holds the number of steps that the neighbour there has ended.
//
// Step e reads ghosts that the neighbours stored in their step e - 1, before they set their flags
// to e (read after write). It stores into ghosts that the neighbours read last in their step e - 1:
// they set the flag after that (write after read). One writer a flag. The epoch is counted up by
// the last of the blocks, when all of them have read it.
struct StepSync {
  std::int32_t blocks = 0;  // number of blocks that wait, from the first; 0: none
  std::int32_t sides = 0;
  const Flag* arrived[2] = {};
  Flag* tell[2] = {};
  Epoch* epoch = nullptr;     // steps that this slab has ended
  unsigned* ended = nullptr;  // blocks; 0 between steps
  WaitBound bound;
};

// A kernel of one thread between two steps: tells the neighbours that those before it on the stream
// have ended, and waits until they say the same.
struct StepMeeting {
  std::int32_t sides = 0;
  Epoch epoch = 0;  // steps that have ended
  const Flag* arrived[2] = {};
  Flag* tell[2] = {};
  WaitBound bound;
};

template <int D, class T>
struct JacobiStep {
  const T* from = nullptr;  // first owned plane
  T* to = nullptr;
  std::int64_t plane = 0;  // values from one to the next
  std::int32_t row = 0;
  std::int32_t planes = 0;
  std::int32_t row_begin = 0, row_end = 1;  // that are updated
  std::int32_t columns = 0;
  bool wraps_rows = false, wraps_columns = false;
  StepTiles tiles;
  StepCopies<T> copies;
  StepSync sync;

  static constexpr int C = kStepColumns<T>;
  static constexpr int R = kStepRows<D>;
  static constexpr int kResident = D == 3 ? 3 : 5;  // blocks that registers are to leave room for
  using Values = T[R][C];

  CPUFREE_KERNEL_FN void operator()(std::int32_t block, std::int32_t thread) const {
    const std::int32_t lines = kThreads / tiles.wide;
    const std::int32_t rest = block / tiles.across;
    const std::int32_t line = thread / tiles.wide;
    Place p;
    p.column = ((block - rest * tiles.across) * tiles.wide + thread - line * tiles.wide) * C;
    std::int32_t chunk = rest * lines + line;
    std::int32_t y = row_begin;
    if constexpr (D == 3) {
      chunk = rest / tiles.down;
      y += ((rest - chunk * tiles.down) * lines + line) * R;
    }
    if (p.column >= columns || y >= row_end || chunk >= tiles.chunks) return;
    find(p, y);
    chunk += tiles.first;
    const std::int32_t edges = planes > 1 ? 2 : 1;
    if (chunk < edges) {
      const std::int32_t z = chunk == 0 ? 0 : planes - 1;
      march(p, z, z + 1);
    } else {
      const std::int32_t begin = 1 + (chunk - edges) * tiles.depth;
      const std::int32_t end = begin + tiles.depth;
      march(p, begin, end < planes - 1 ? end : planes - 1);
    }
  }

 private:
  // Where a thread is in a plane, and how far away what it needs lies.
  struct Place {
    std::int64_t first;               // of its values
    std::int64_t left, right;         // from the first of its values in a row
    std::int64_t north, south;        // from its first row, from its last one
    std::int32_t column, rows, last;  // last: of its columns that the grid has
    bool keeps_first, keeps_last;
  };

  CPUFREE_KERNEL_FN void find(Place& p, std::int32_t y) const {
    p.first = y * row + p.column;
    p.rows = row_end - y < R ? row_end - y : R;
    p.last = columns - p.column < C ? columns - p.column - 1 : C - 1;
    const bool ends = p.column + p.last == columns - 1;
    p.keeps_first = p.column == 0 && !wraps_columns;
    p.keeps_last = ends && !wraps_columns;
    p.left = p.column > 0 ? -1 : wraps_columns ? columns - 1 : 0;
    p.right = !ends ? C : wraps_columns ? -p.column : 0;
    p.north = wraps_rows && y == 0 ? (row_end - 1) * row : -row;
    const std::int32_t bottom = y + p.rows - 1;
    p.south = wraps_rows && bottom == row_end - 1 ? -bottom * row : row;
  }

  CPUFREE_KERNEL_FN void march(const Place& p, std::int32_t begin, std::int32_t end) const {
    const T* here = from + begin * plane + p.first;
    T* out = to + begin * plane + p.first;
    Values before = {}, centre = {}, after = {}, beyond = {}, value = {};
    load(p, here - plane, before);
    load(p, here, centre);
    load(p, here + plane, after);
    for (std::int32_t z = begin; z < end; ++z) {
      if (z + 1 < end) load(p, here + 2 * plane, beyond);
      compute(p, here, before, centre, after, value);
      store(p, value, out);
      if (z == 0 && copies.before != nullptr) store(p, value, copies.before + p.first);
      if (z == planes - 1 && copies.after != nullptr) store(p, value, copies.after + p.first);
      CPUFREE_UNROLL
      for (int r = 0; r < R; ++r) {
        CPUFREE_UNROLL
        for (int c = 0; c < C; ++c)
          before[r][c] = centre[r][c], centre[r][c] = after[r][c], after[r][c] = beyond[r][c];
      }
      here += plane;
      out += plane;
    }
  }

  CPUFREE_KERNEL_FN void load(const Place& p, const T* at, Values& values) const {
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r)
      if (r < p.rows) load_pack(at + r * row, values[r]);
  }

  CPUFREE_KERNEL_FN void compute(const Place& p, const T* here, const Values& before,
                                 const Values& centre, const Values& after, Values& value) const {
    T north[C] = {}, south[C] = {};
    if constexpr (D == 3) {
      load_pack(here + p.north, north);
      load_pack(here + (p.rows - 1) * row + p.south, south);
    }
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      if (r >= p.rows) break;
      const T left = here[r * row + p.left], right = here[r * row + p.right];
      const bool bottom = r == p.rows - 1;
      CPUFREE_UNROLL
      for (int c = 0; c < C; ++c) {
        const ValuesAround<T> u{before[r][c],
                                after[r][c],
                                r == 0 ? north[c] : centre[r == 0 ? 0 : r - 1][c],
                                bottom ? south[c] : centre[r == R - 1 ? r : r + 1][c],
                                c == 0 ? left : centre[r][c == 0 ? 0 : c - 1],
                                c == p.last ? right : centre[r][c == C - 1 ? c : c + 1],
                                T{}};
        const T fresh = kJacobiWeight<D, T> * jacobi_sum<D, false>(u);
        const bool keeps = (c == 0 && p.keeps_first) || (c == p.last && p.keeps_last);
        value[r][c] = keeps ? centre[r][c] : fresh;
      }
    }
  }

  CPUFREE_KERNEL_FN void store(const Place& p, const Values& value, T* at) const {
    CPUFREE_UNROLL
    for (int r = 0; r < R; ++r) {
      if (r >= p.rows) break;
      if (p.last == C - 1) {
        store_pack(at + r * row, value[r]);
      } else {
        CPUFREE_UNROLL
        for (int c = 0; c < C; ++c)
          if (c <= p.last) at[r * row + c] = value[r][c];
      }
    }
  }
};

// What is left of a step without computing: the edges, as they are, go where copies of them are.
template <class T>
struct SendEdges {
  const T* from = nullptr;
  std::int64_t plane = 0;
  std::int32_t planes = 0;
  StepCopies<T> copies;
  StepSync sync;
  static constexpr int kResident = 4;

  CPUFREE_KERNEL_FN void operator()(std::int32_t block, std::int32_t thread) const {
    const std::int64_t i = (std::int64_t{block} * kThreads + thread) * kStepColumns<T>;
    if (i >= plane) return;
    T values[kStepColumns<T>];
    if (copies.before != nullptr) {
      load_pack(from + i, values);
      store_pack(copies.before + i, values);
    }
    if (copies.after != nullptr) {
      load_pack(from + (planes - 1) * plane + i, values);
      store_pack(copies.after + i, values);
    }
  }
};

}  // namespace cpufree::baselines
