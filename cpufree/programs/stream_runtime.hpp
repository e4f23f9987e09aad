// What generated kernels are made of whose warps stream rows of memory through registers: several
// turns of a loop while a strip of columns is gone over once (passes/levels.py has the order of
// computing). The counterpart of grid_runtime.hpp, whose control flow and barriers it has.
//
// Fields that change have two copies. A round reads one and writes the other; a barrier with the
// neighbours lies between two rounds. So what a round reads was written before the barrier, and what
// it writes was read before it. Within a round no thread waits for another one but for its warp.
//
// Strips overlap by the columns that turns read beyond those that are stored, and so do the chunks
// of rows: what lies in an overlap is computed twice, with the same bits. Lanes whose columns, and
// steps whose rows, are not needed compute from whatever they have; nobody reads that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpufree/device/pack.hpp"
#include "cpufree/programs/functions.hpp"
#include "cpufree/programs/grid_runtime.hpp"
#include "cpufree/programs/stages.hpp"

namespace cpufree::programs {

// How a field of two dimensions lies in the heap.
struct RowsShape {
  std::int64_t n0, n1;  // of the whole field
  std::int64_t stride;
  int below, above;  // ghost rows
  bool ring1;        // its columns' ends are neighbours
};

// The rows of a field that a PE has in memory: global numbers low to high - 1.
template <class T>
struct HeapRows {
  T* base = nullptr;  // of row 0, column 0 of the whole field
  std::int64_t low = 0, high = 0, n0 = 0, n1 = 0, stride = 0;
  bool ring1 = false;
};

// A lane's columns of a row.
template <class T, int C>
struct Columns {
  T v[C] = {};
};

// Where a warp streams: rows [begin, end) are stored, of columns [first, last); x is the lane's
// first column, `start` the strip's.
struct Strip {
  std::int64_t begin, end;
  int first, last, start, x;
};

// How a PE's points are divided among warps.
struct Strips {
  int width;         // of the widest field
  int left, stored;  // columns of a strip before those that are stored, and of these
  int chunks;        // of the rows
};

template <GridPort P, class A>
class StreamRuntime : public GridRuntime<P, A> {
  using Base = GridRuntime<P, A>;

 public:
  using Base::Base;

  // The blocks of a PE copy so many values.
  template <class T>
  CPUFREE_KERNEL_FN void copy(T* to, const T* from, std::int64_t count) {
    const std::int64_t lanes = this->port_.lanes();
    std::int64_t k = this->port_.block() * lanes + this->port_.lane();
    for (; k < count; k += this->port_.blocks() * lanes) to[k] = from[k];
  }

  template <class T>
  CPUFREE_KERNEL_FN HeapRows<T> rows(T* heap, const RowsShape& s) const {
    const std::int64_t mine = this->rows_of(this->pe_, s.n0), lo = this->lo();
    return {heap + (s.below - lo) * s.stride, lo - s.below, lo + mine + s.above, s.n0, s.n1,
            s.stride, s.ring1};
  }

  // f(Strip) for each strip and chunk of my warp; `C` columns to a lane.
  template <int C, class F>
  CPUFREE_KERNEL_FN void stream(const Strips& s, F&& f) {
    constexpr int wide = P::warp_width;
    const int warps = this->port_.lanes() / wide;
    const int across = (s.width + s.stored - 1) / s.stored;
    const std::int64_t mine = this->hi() - this->lo();
    int unit = this->port_.block() * warps + this->port_.lane() / wide;
    CPUFREE_ONE_COPY
    for (; unit < across * s.chunks; unit += this->port_.blocks() * warps) {
      const int chunk = unit / across, first = (unit - chunk * across) * s.stored;
      Strip at;
      at.begin = this->lo() + mine * chunk / s.chunks;
      at.end = this->lo() + mine * (chunk + 1) / s.chunks;
      at.first = first, at.last = first + s.stored, at.start = first - s.left;
      at.x = at.start + C * (this->port_.lane() % wide);
      f(at);
    }
  }

  // The lane's columns of a row, what is there of them.
  template <int C, class T>
  CPUFREE_KERNEL_FN Columns<T, C> load(const HeapRows<T>& m, std::int64_t i, int x) const {
    Columns<T, C> r;
    if (i < m.low || i >= m.high) return r;
    const T* const from = m.base + i * m.stride;
    if (x >= 0 && x + C <= m.n1) {
      load_pack(from + x, r.v);
      return r;
    }
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) {
      const std::int64_t j = column_of(m, x + c);
      if (j >= 0 && j < m.n1) r.v[c] = from[j];
    }
    return r;
  }
  // What memory has at a point, where it has one.
  template <class T>
  CPUFREE_KERNEL_FN T at_rest(const HeapRows<T>& m, std::int64_t i, std::int64_t x) const {
    const std::int64_t j = column_of(m, x);
    const bool there = i >= m.low && i < m.high && j >= 0 && j < m.n1;
    return there ? m.base[i * m.stride + j] : T{};
  }
  // A value of an array that all PEs have; any where there is none at the index.
  template <class T>
  CPUFREE_KERNEL_FN static T factor(const T* base, std::int64_t k, std::int64_t count) {
    return base[k < 0 ? 0 : k < count ? k : count - 1];
  }

  // The lane's columns with so many of the lanes before and behind.
  template <int Left, int Right, class T, int C>
  CPUFREE_KERNEL_FN Columns<T, Left + C + Right> wide(const Columns<T, C>& r) {
    Columns<T, Left + C + Right> w;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) w.v[Left + c] = r.v[c];
    T lane[C];
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) lane[c] = r.v[c];
    CPUFREE_UNROLL
    for (int k = 0; k < Left; ++k) {  // column -1 - k
      const int c = C - 1 - k % C;
      lane[c] = up(lane[c]);
      w.v[Left - 1 - k] = lane[c];
    }
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) lane[c] = r.v[c];
    CPUFREE_UNROLL
    for (int k = 0; k < Right; ++k) {  // column C + k
      lane[k % C] = down(lane[k % C]);
      w.v[Left + C + k] = lane[k % C];
    }
    return w;
  }

  // Stores those columns of row i that are the strip's, and to the ghosts that PEs beside keep.
  template <class T, int C>
  CPUFREE_KERNEL_FN void store(T* heap, const RowsShape& s, const GhostRows& g, const Strip& at,
                               std::int64_t i, const Columns<T, C>& r) {
    if (i < at.begin || i >= at.end || i >= s.n0) return;
    const std::int64_t mine = i - this->lo();
    T* const to = heap + (mine + s.below) * s.stride + at.x;
    const int last = at.last < s.n1 ? at.last : static_cast<int>(s.n1);
    if (at.x >= at.first && at.x + C <= last) {
      store_pack(to, r.v);
      if (mine < g.low) put_pack(to + g.to_below, this->below_me(), r.v);
      if (mine >= g.high) put_pack(to + g.to_above, this->above_me(), r.v);
      return;
    }
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c)
      if (at.x + c >= at.first && at.x + c < last) Base::store(g, to + c, mine, r.v[c]);
  }

 private:
  template <class T>
  CPUFREE_KERNEL_FN static std::int64_t column_of(const HeapRows<T>& m, std::int64_t j) {
    if (!m.ring1) return j;
    return j < 0 ? j + m.n1 : j >= m.n1 ? j - m.n1 : j;
  }
  template <class T, int C>
  CPUFREE_KERNEL_FN void put_pack(T* to, int pe, const T (&values)[C]) {
    Pack<T, C> pack;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) pack.value[c] = values[c];
    this->port_.put(reinterpret_cast<Pack<T, C>*>(to), pe, pack);
    this->sent_ = true;
  }
  // Of the lane before, and of the one behind; anything where there is none.
  template <class T>
  CPUFREE_KERNEL_FN T up(T value) {
    if constexpr (P::warp_width > 1) return static_cast<T>(this->port_.warp_up(value));
    return T{};
  }
  template <class T>
  CPUFREE_KERNEL_FN T down(T value) {
    if constexpr (P::warp_width > 1) return static_cast<T>(this->port_.warp_down(value));
    return T{};
  }
};

}  // namespace cpufree::programs
