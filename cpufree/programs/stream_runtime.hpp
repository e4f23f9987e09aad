// What generated kernels are made of whose warps stream rows of memory through registers: several
// turns of a loop while a strip of columns is gone over once (passes/levels.py has the order of
// computing). The counterpart of grid_runtime.hpp, whose control flow and barriers it has.
//
// Fields that change have two copies. A round reads one and writes the other; a barrier with the
// neighbours lies between two rounds. So what a round reads was written before the barrier, and
// what it writes was read before it. Within a round no thread waits for another one but for its
// warp.
//
// Strips overlap by the columns that turns read beyond those that are stored, and so do the chunks
// of rows: what lies in an overlap is computed twice, with the same bits. Lanes whose columns, and
// steps whose rows, are not needed compute from whatever they have; their values are never read.
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
  int low = 0, high = 0, n0 = 0, n1 = 0;
  std::int64_t stride = 0;
  bool ring1 = false;
};

// A lane's columns of a row.
template <class T, int C>
struct Columns {
  T v[C] = {};
};

// Rows of a field that a warp takes one after another: `next` is the lane's place in row `row`, or
// in the nearest row that there is.
template <class T>
struct Source {
  HeapRows<T> rows;
  const T* next;
  int row, x;
  bool whole, part;  // all of the lane's columns are there; some are
};

// Where a warp stores rows of a field.
template <class T>
struct Target {
  T* next;                // the lane's place in row `row`
  int row, begin, count;  // rows [begin, begin + count) are stored
  int first, last, x;     // and columns [first, last)
  std::int64_t stride;
  GhostRows ghosts;
  bool whole;  // all of the lane's columns
};

// Whether i is one of `count` numbers from `start` on: one comparison.
CPUFREE_FN bool within(int i, int start, unsigned count) {
  return static_cast<unsigned>(i) - static_cast<unsigned>(start) < count;
}

// A row beyond all, to which a few may be added.
inline constexpr int kFar = 1 << 30;

CPUFREE_FN int most(int a, int b) { return a > b ? a : b; }
CPUFREE_FN int least(int a, int b) { return a < b ? a : b; }
// The least multiple of `step` that is not below n.
CPUFREE_FN int up_to(int n, int step) { return n <= 0 ? 0 : (n + step - 1) / step * step; }

// Where steps that may go on before `limit` end, from `from` on; where `to` is not beyond it, all.
CPUFREE_FN int end_between(int from, int to, int limit, int step) {
  return to <= limit ? from + up_to(to - from, step) : from + (limit - from) / step * step;
}

// Where a warp streams: rows [begin, end) are stored, of columns [first, last); x is the lane's
// first column, `start` the strip's.
struct Strip {
  int begin, end;
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

  // The blocks of a PE copy N values.
  template <class T>
  CPUFREE_KERNEL_FN void copy(T* to, const T* from, std::int64_t count) {
    const std::int64_t lanes = this->port_.lanes();
    std::int64_t k = this->port_.block() * lanes + this->port_.lane();
    for (; k < count; k += this->port_.blocks() * lanes) to[k] = from[k];
  }

  template <class T>
  CPUFREE_KERNEL_FN HeapRows<T> rows(T* heap, const RowsShape& s) const {
    const int mine = static_cast<int>(this->rows_of(this->pe_, s.n0));
    const int lo = static_cast<int>(this->lo());
    return {heap + (s.below - lo) * s.stride,
            lo - s.below,
            lo + mine + s.above,
            static_cast<int>(s.n0),
            static_cast<int>(s.n1),
            s.stride,
            s.ring1};
  }

  // f(Strip) for each strip and chunk of my warp; `C` columns to a lane. The first strip and the
  // last one, which have edges all along, are in twice as many chunks: a row takes longer there.
  template <int C, class F>
  CPUFREE_KERNEL_FN void stream(const Strips& s, F&& f) {
    constexpr int wide = P::warp_width;
    const int warps = this->port_.lanes() / wide;
    const int across = (s.width + s.stored - 1) / s.stored;
    const std::int64_t mine = this->hi() - this->lo();
    const int inner = across > 2 ? across - 2 : 0, outer = across - inner;
    const int before = outer * 2 * s.chunks;  // units of strips with edges
    int unit = this->port_.block() * warps + this->port_.lane() / wide;
    CPUFREE_ONE_COPY
    for (; unit < before + inner * s.chunks; unit += this->port_.blocks() * warps) {
      const bool is_outer = unit < before;
      const int k = is_outer ? unit : unit - before, beside = is_outer ? outer : inner;
      const int chunk = k / beside, strip = k - chunk * beside;
      const int chunks = is_outer ? 2 * s.chunks : s.chunks;
      const int first = (!is_outer ? 1 + strip : strip == 0 ? 0 : across - 1) * s.stored;
      Strip at;
      at.begin = static_cast<int>(this->lo() + mine * chunk / chunks);
      at.end = static_cast<int>(this->lo() + mine * (chunk + 1) / chunks);
      at.first = first, at.last = first + s.stored, at.start = first - s.left;
      at.x = at.start + C * (this->port_.lane() % wide);
      f(at);
    }
  }

  // Rows from `row` on.
  template <int C, class T>
  CPUFREE_KERNEL_FN static Source<T> source(const HeapRows<T>& m, int row, const Strip& at) {
    const int near = row < m.low ? m.low : row < m.high ? row : m.high - 1;
    const bool whole = at.x >= 0 && at.x + C <= m.n1;
    const bool part = !whole && (m.ring1 || (at.x + C > 0 && at.x < m.n1));
    return {m, m.base + near * m.stride + at.x, row, at.x, whole, part};
  }
  // The lane's columns of the next row. `Edges`: what is there of them; else all are there, but of
  // rows that are not needed.
  template <int C, bool Edges, class T>
  CPUFREE_KERNEL_FN static Columns<T, C> take(Source<T>& s) {
    Columns<T, C> r;
    const bool there = s.row >= s.rows.low && s.row < s.rows.high;
    if constexpr (Edges) {
      if (there && s.whole) load_pack(s.next, r.v);
      if (there && s.part) r = load<C>(s.rows, s.row, s.x);
    } else {
      load_pack(s.next, r.v);
    }
    s.next += s.row >= s.rows.low && s.row + 1 < s.rows.high ? s.rows.stride : 0;
    ++s.row;
    return r;
  }
  // The lane's columns of row i, what is there of them.
  template <int C, class T>
  CPUFREE_KERNEL_FN static Columns<T, C> row(const HeapRows<T>& m, int i, int x) {
    return i >= m.low && i < m.high ? load<C>(m, i, x) : Columns<T, C>{};
  }
  // A value of an array that all PEs have; any where there is none at the index.
  template <class T>
  CPUFREE_KERNEL_FN static T factor(const T* base, std::int64_t k, std::int64_t count) {
    return base[k < 0 ? 0 : k < count ? k : count - 1];
  }

  // The lane's columns with N of the lanes before and behind.
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

  // Rows from `row` on, of which those of the strip are stored.
  template <int C, class T>
  CPUFREE_KERNEL_FN Target<T> target(T* heap, const RowsShape& s, const GhostRows& g, int row,
                                     const Strip& at) const {
    const int lo = static_cast<int>(this->lo());
    const int end = at.end < s.n0 ? at.end : static_cast<int>(s.n0);
    const int last = at.last < s.n1 ? at.last : static_cast<int>(s.n1);
    return {heap + (row - lo + s.below) * s.stride + at.x,
            row,
            at.begin,
            end > at.begin ? end - at.begin : 0,
            at.first,
            last,
            at.x,
            s.stride,
            g,
            at.x >= at.first && at.x + C <= last};
  }
  // Rows from this one on, up to the next, are kept by no PE beside; far ones where none is there.
  CPUFREE_KERNEL_FN int first_unsent(const GhostRows& g) const {
    return g.low > 0 ? static_cast<int>(this->lo() + g.low) : -kFar;
  }
  CPUFREE_KERNEL_FN int end_of_unsent(const GhostRows& g) const {
    return this->lo() + g.high < this->hi() ? static_cast<int>(this->lo() + g.high) : kFar;
  }
  // Stores those columns of the next row that are the strip's, and to the ghosts that PEs beside
  // keep. Without `Edges` a lane of a warp has all of its columns stored, or none.
  template <bool Edges, bool Ghosts, class T, int C>
  CPUFREE_KERNEL_FN void store(Target<T>& t, const Columns<T, C>& r) {
    if (within(t.row, t.begin, static_cast<unsigned>(t.count))) {
      if (t.whole) {
        store_pack(t.next, r.v);
        if constexpr (Ghosts) {
          const std::int64_t mine = t.row - this->lo();
          if (mine < t.ghosts.low) put_pack(t.next + t.ghosts.to_below, this->below_me(), r.v);
          if (mine >= t.ghosts.high) put_pack(t.next + t.ghosts.to_above, this->above_me(), r.v);
        }
      } else if constexpr (Edges || P::warp_width == 1) {
        CPUFREE_UNROLL
        for (int c = 0; c < C; ++c) {
          if (t.x + c < t.first || t.x + c >= t.last) continue;
          if constexpr (Ghosts)
            Base::store(t.ghosts, t.next + c, t.row - this->lo(), r.v[c]);
          else
            t.next[c] = r.v[c];
        }
      }
    }
    t.next += t.stride;
    ++t.row;
  }

 private:
  // The lane's columns of a row, of which not all are there.
  template <int C, class T>
  CPUFREE_KERNEL_FN static Columns<T, C> load(const HeapRows<T>& m, int i, int x) {
    Columns<T, C> r;
    const T* const from = m.base + i * m.stride;
    CPUFREE_UNROLL
    for (int c = 0; c < C; ++c) {
      const int j = column_of(m, x + c);
      if (j >= 0 && j < m.n1) r.v[c] = from[j];
    }
    return r;
  }
  template <class T>
  CPUFREE_KERNEL_FN static int column_of(const HeapRows<T>& m, int j) {
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
