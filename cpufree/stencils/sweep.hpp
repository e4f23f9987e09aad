// Sweeps of a tile: several iterations in one pass over memory.
//
// The halo has as many layers as there are iterations in the pass. Iteration j of `steps` computes
// the owned points and the steps - j layers around them; what it computes beyond its own points,
// its neighbours compute too, with the same arithmetic.
//
// The pass moves along axis 0 in a wavefront. At front f, iteration j computes the `thickness`
// planes from f - (j - 1) (thickness + 1) on, so that all its iterations can be computed side by
// side: one block barrier a front, and values stay in the cache from one iteration to the next.
// Two buffers suffice, iteration j reading the one that j + 1 writes:
//   - j reads planes of j - 1 up to one behind its own; those were written at earlier fronts, for
//     j - 1 is thickness + 1 planes ahead and writes, at this front, the planes beyond that one;
//   - j overwrites planes of j - 2, the last of which j - 1 needed for its plane one further on,
//     computed at an earlier front too.
// With the thickness of the tile, iterations are computed one after the other.
#pragma once

#include "cpufree/device/block.hpp"
#include "cpufree/problem/grid.hpp"
#include "cpufree/stencils/local.hpp"

namespace cpufree {

// A box of a tile, in the tile's numbers.
struct TileBox {
  std::int32_t lo[3], hi[3];
};

// What a tile computes while `left` iterations of the pass are still to come.
CPUFREE_KERNEL_FN TileBox box_of(const TileShape& s, std::int32_t left) {
  TileBox box;
  CPUFREE_UNROLL
  for (int a = 0; a < 3; ++a) {
    const std::int32_t lo = s.lo[a] - left;
    const std::int32_t hi = s.hi[a] + left;
    box.lo[a] = lo > s.bound_lo[a] ? lo : s.bound_lo[a];
    box.hi[a] = hi < s.bound_hi[a] ? hi : s.bound_hi[a];
  }
  return box;
}

// Rows are shared among teams of threads: warps on a GPU, the one thread of a block elsewhere.
template <Port P>
inline constexpr int kTeamSize = P::width == 1 ? 32 : 1;

// f(i0, i1) for all rows of the box, by one team each.
template <Port P, class F>
CPUFREE_KERNEL_FN void each_row(P& port, const TileBox& box, F&& f) {
  if constexpr (kTeamSize<P> == 1) {
    for (std::int32_t i0 = box.lo[0]; i0 < box.hi[0]; ++i0)
      for (std::int32_t i1 = box.lo[1]; i1 < box.hi[1]; ++i1) f(i0, i1);
  } else {
    const std::int32_t rows = box.hi[1] - box.lo[1];
    const std::int32_t all = (box.hi[0] - box.lo[0]) * rows;
    for (std::int32_t q = port.lane() / kTeamSize<P>; q < all; q += port.lanes() / kTeamSize<P>)
      f(box.lo[0] + q / rows, box.lo[1] + q % rows);
  }
}

// f(x) for all points of a row, by the threads of a team. f must not depend on the order.
template <Port P, class F>
CPUFREE_KERNEL_FN void each_point(P& port, std::int32_t begin, std::int32_t end, F&& f) {
  constexpr std::int32_t size = kTeamSize<P>;
  if constexpr (size > 1) {
    for (std::int32_t x = begin + port.lane() % size; x < end; x += size) f(x);
  } else {
    CPUFREE_INDEPENDENT
    for (std::int32_t x = begin; x < end; ++x) f(x);
  }
}

// The same with SIMD lanes, for sums: f(x, lane).
template <Port P, class F>
CPUFREE_KERNEL_FN void each_point_and_lane(P& port, std::int32_t begin, std::int32_t end, F&& f) {
  if constexpr (kTeamSize<P> > 1) {
    each_point(port, begin, end, [&](std::int32_t x) { f(x, 0); });
  } else {
    std::int32_t x = begin;
    for (; x + P::width <= end; x += P::width) {
      CPUFREE_INDEPENDENT
      for (int l = 0; l < P::width; ++l) f(x + l, l);
    }
    for (int l = 0; x + l < end; ++l) f(x + l, l);
  }
}

// How much an iteration has changed the points of one thread.
template <Port P>
struct Change {
  double tolerance;
  Lanes<P> above;    // points that changed by more than the tolerance, or are no numbers
  Lanes<P> squares;  // of the changes
  Lanes<P> largest;

  CPUFREE_KERNEL_FN void add(int lane, double before, double after) {
    const double change = before < after ? after - before : before - after;
    above[lane] += change <= tolerance ? 0.0 : 1.0;
    squares[lane] += change * change;
    largest[lane] = change > largest[lane] ? change : largest[lane];
  }
  // NaN where some point is none.
  CPUFREE_KERNEL_FN double most() const {
    double most = 0.0;
    for (int l = 0; l < P::width; ++l) most = largest.value[l] > most ? largest.value[l] : most;
    const double sum = squares.sum();
    return sum == sum ? most : sum;
  }
};

template <class T>
CPUFREE_KERNEL_FN T* row_of(const TileShape& s, T* values, std::int32_t i0, std::int32_t i1) {
  return values + i0 * s.plane + i1 * s.row;
}

template <int D, class T>
CPUFREE_KERNEL_FN RowsAround<T> rows_around(const TileShape& s, const T* from, const T* source,
                                            std::int32_t i0, std::int32_t i1) {
  const T* const centre = row_of(s, from, i0, i1);
  const std::int64_t across = D == 3 ? s.row : 0;
  return {centre - s.plane, centre + s.plane,
          centre - across,  centre + across,
          centre,           source == nullptr ? nullptr : row_of(s, source, i0, i1)};
}

// One iteration on a box.
template <int D, bool kSource, Port P, class T>
CPUFREE_KERNEL_FN void sweep(P& port, const TileShape& s, const TileBox& box, const T* from, T* to,
                             const T* source) {
  each_row(port, box, [&](std::int32_t i0, std::int32_t i1) {
    const RowsAround<T> rows = rows_around<D>(s, from, source, i0, i1);
    T* const out = row_of(s, to, i0, i1);
    each_point(port, box.lo[2], box.hi[2],
               [=](std::int32_t x) { out[x] = jacobi_point<D, kSource>(rows, x); });
  });
}

// The same, and how much it changes.
template <int D, bool kSource, Port P, class T>
CPUFREE_KERNEL_FN void measured_sweep(P& port, const TileShape& s, const TileBox& box,
                                      const T* from, T* to, const T* source, Change<P>& change) {
  each_row(port, box, [&](std::int32_t i0, std::int32_t i1) {
    const RowsAround<T> rows = rows_around<D>(s, from, source, i0, i1);
    T* const out = row_of(s, to, i0, i1);
    each_point_and_lane(port, box.lo[2], box.hi[2], [&](std::int32_t x, int lane) {
      const T value = jacobi_point<D, kSource>(rows, x);
      change.add(lane, static_cast<double>(rows.centre[x]), static_cast<double>(value));
      out[x] = value;
    });
  });
}

// `steps` iterations on a tile whose values lie in buffer[now]; those of the last one lie in
// buffer[(now + steps) % 2]. `change`: of the last iteration; null: not asked for. Ends with a
// block barrier.
template <int D, bool kSource, Port P, class T>
CPUFREE_KERNEL_FN void advance(P& port, const TileShape& s, T* const (&buffer)[2], const T* source,
                               unsigned now, std::int32_t steps, std::int32_t thickness,
                               Change<P>* change) {
  const std::int64_t skew = std::int64_t{thickness} + 1;
  const std::int64_t end = box_of(s, 0).hi[0] + (steps - 1) * skew;
  for (std::int64_t front = box_of(s, steps - 1).lo[0]; front < end; front += thickness) {
    for (std::int32_t j = 1; j <= steps; ++j) {
      TileBox box = box_of(s, steps - j);
      const std::int64_t first = front - (j - 1) * skew;
      if (first >= box.hi[0] || first + thickness <= box.lo[0]) continue;
      if (first > box.lo[0]) box.lo[0] = static_cast<std::int32_t>(first);
      if (first + thickness < box.hi[0]) box.hi[0] = static_cast<std::int32_t>(first + thickness);
      const unsigned from = (now + static_cast<unsigned>(j) - 1U) & 1U;
      if (j == steps && change != nullptr)
        measured_sweep<D, kSource>(port, s, box, buffer[from], buffer[from ^ 1U], source, *change);
      else
        sweep<D, kSource>(port, s, box, buffer[from], buffer[from ^ 1U], source);
    }
    port.sync_block();
  }
}

}  // namespace cpufree
