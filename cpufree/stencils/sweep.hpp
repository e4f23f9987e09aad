// Sweeps of a tile: several iterations in one pass over memory.
//
// The halo has as many layers as there are iterations in the pass. Iteration j of `steps` computes
// the owned points and the steps - j layers around them; what it computes beyond its own points,
// its neighbours compute too, with the same arithmetic.
//
// The pass moves along axis 0 in a wavefront. At front f, iteration j computes the `thickness`
// planes from f - (j - 1) skew on, where skew = thickness + 1. All its iterations can be computed
// side by side: one block barrier a front, and values stay in the cache, or on the chip, from one
// iteration to the next.
//
// There is one copy of the values. Their planes lie in a ring of memory, and every iteration stores
// its planes `skew` places below those of the one before ("compressed grid"; Wellein, Hager,
// Zeiser, Wittmann, Fehske 2009, "Efficient temporal blocking for stencil computations by
// multicore-aware wavefront parallelization"). Plane i after j iterations of the pass lies at place
// i - j skew. At front f:
//   - j reads planes f - (j - 1) skew - 1 to f - (j - 1) skew + thickness after j - 1 iterations.
//     The last of them was computed at an earlier front: j - 1 is skew planes ahead, and computes
//     now the planes beyond it.
//   - j writes the places from f - (2 j - 1) skew on, `thickness` of them. After j - 1 iterations
//     these held the planes from f - j skew on, the last of which, f - (j - 1) skew - 2, is one
//     below the first that is still read. j + 1 reads the places up to f - 2 j skew + thickness,
//     one below the first that j writes.
//   - All that is alive lies between the last plane before the pass and the first after it: the
//     ring has room for all planes and `layers` times skew.
// Values on a Dirichlet boundary move along with their neighbours.
#pragma once

#include "cpufree/problem/tile_shape.hpp"
#include "cpufree/stencils/change.hpp"
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

// A tile's values after some iteration: where in the ring its first plane lies.
template <class T>
struct Layer {
  T* values;
  std::int32_t first;

  CPUFREE_KERNEL_FN T* row(const TileShape& s, std::int32_t i0, std::int32_t i1) const {
    const std::int32_t place = first + i0;
    return values + (place < s.planes ? place : place - s.planes) * s.plane + i1 * s.row;
  }
  // The values `iterations` <= layers later.
  CPUFREE_KERNEL_FN Layer after(const TileShape& s, std::int32_t iterations) const {
    const std::int32_t place = first - iterations * s.skew;
    return {values, place < 0 ? place + s.planes : place};
  }
};

template <int D, class T>
CPUFREE_KERNEL_FN RowsAround<T> rows_around(const TileShape& s, const Layer<T>& from,
                                            const T* source, std::int32_t i0, std::int32_t i1) {
  const T* const centre = from.row(s, i0, i1);
  const std::int64_t across = D == 3 ? s.row : 0;
  return {from.row(s, i0 - 1, i1),
          from.row(s, i0 + 1, i1),
          centre - across,
          centre + across,
          centre,
          source == nullptr ? nullptr : source + i0 * s.plane + i1 * s.row};
}

// The box with what keeps its values next to it.
CPUFREE_KERNEL_FN TileBox with_rim(const TileShape& s, const TileBox& box) {
  TileBox rim = box;
  CPUFREE_UNROLL
  for (int a = 0; a < 3; ++a) {
    if (box.lo[a] == s.bound_lo[a] && s.grid_lo[a] < s.bound_lo[a]) --rim.lo[a];
    if (box.hi[a] == s.bound_hi[a] && s.grid_hi[a] > s.bound_hi[a]) ++rim.hi[a];
  }
  return rim;
}

// One iteration on the planes [begin, end) of a box with its rim: compute(rows around, row to
// write) for the rows of the box, by one team each; the rim is copied.
template <int D, Port P, class T, class F>
CPUFREE_KERNEL_FN void sweep(P& port, const TileShape& s, const TileBox& box, std::int32_t begin,
                             std::int32_t end, const Layer<T>& from, const Layer<T>& to,
                             const T* source, F&& compute) {
  const TileBox rim = with_rim(s, box);
  const TileBox part{{begin, rim.lo[1], rim.lo[2]}, {end, rim.hi[1], rim.hi[2]}};
  each_row(port, part, [&](std::int32_t i0, std::int32_t i1) {
    T* const out = to.row(s, i0, i1);
    const T* const old = from.row(s, i0, i1);
    const bool kept = i0 < box.lo[0] || i0 >= box.hi[0] || i1 < box.lo[1] || i1 >= box.hi[1];
    if (kept) {
      each_point(port, rim.lo[2], rim.hi[2], [=](std::int32_t x) { out[x] = old[x]; });
      return;
    }
    compute(rows_around<D>(s, from, source, i0, i1), out);
    each_point(port, rim.lo[2], box.lo[2], [=](std::int32_t x) { out[x] = old[x]; });
    each_point(port, box.hi[2], rim.hi[2], [=](std::int32_t x) { out[x] = old[x]; });
  });
}

// `steps` iterations on a tile. Returns where the values are then. `change`: of the last iteration;
// null: not asked for. Ends with a block barrier.
template <int D, bool kSource, Port P, class T>
CPUFREE_KERNEL_FN Layer<T> advance(P& port, const TileShape& s, const Layer<T>& now,
                                   const T* source, std::int32_t steps, Change<P>* change) {
  const std::int32_t thickness = s.skew - 1;
  const std::int64_t end = with_rim(s, box_of(s, 0)).hi[0] + std::int64_t{steps - 1} * s.skew;
  const std::int32_t start = with_rim(s, box_of(s, steps - 1)).lo[0];
  for (std::int64_t front = start; front < end; front += thickness) {
    for (std::int32_t j = 1; j <= steps; ++j) {
      const TileBox box = box_of(s, steps - j);
      const TileBox rim = with_rim(s, box);
      const std::int64_t first = front - std::int64_t{j - 1} * s.skew;
      if (first >= rim.hi[0] || first + thickness <= rim.lo[0]) continue;
      const auto from = static_cast<std::int32_t>(first > rim.lo[0] ? first : rim.lo[0]);
      const auto to =
          static_cast<std::int32_t>(first + thickness < rim.hi[0] ? first + thickness : rim.hi[0]);
      const std::int32_t lo = box.lo[2], hi = box.hi[2];
      const auto plain = [&](const RowsAround<T>& rows, T* out) {
        each_point(port, lo, hi,
                   [=](std::int32_t x) { out[x] = jacobi_point<D, kSource>(rows, x); });
      };
      const auto measured = [&](const RowsAround<T>& rows, T* out) {
        each_point_and_lane(port, lo, hi, [&](std::int32_t x, int lane) {
          const T value = jacobi_point<D, kSource>(rows, x);
          change->add(lane, static_cast<double>(rows.centre[x]), static_cast<double>(value));
          out[x] = value;
        });
      };
      const Layer<T> before = now.after(s, j - 1);
      const Layer<T> after = now.after(s, j);
      if (j == steps && change != nullptr)
        sweep<D>(port, s, box, from, to, before, after, source, measured);
      else
        sweep<D>(port, s, box, from, to, before, after, source, plain);
    }
    port.sync_block();
  }
  return now.after(s, steps);
}

}  // namespace cpufree
