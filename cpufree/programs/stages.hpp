// Stages of a generated kernel: a box of points, row by row.
//
// A generated stage S has
//   dims            axes of its box; box[a] are the points of its field along each;
//   row(r...)       for the r of all axes but the last one: finds where its rows lie;
//   segment(r, e)   called before points r, ..., e - 1 of the last axis: up to where they can be
//                   done in one go (indices that wrap around have constant distances till there);
//   point(r)        computes the point, or returns its value to be reduced.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "cpufree/programs/functions.hpp"

namespace cpufree::programs {

template <class T, int D>
struct Array {
  T* base = nullptr;
  std::int64_t first = 0;  // the row at `base`
  std::int64_t stride[D] = {};
  std::int64_t rows = 0;
  std::int64_t below = 0;  // ghost rows before the own rows
  int id = 0;              // of its storage, for which an array of the caller stands

  CPUFREE_FN operator Array<const T, D>() const
    requires(!std::is_const_v<T>)
  {
    Array<const T, D> other;
    other.base = base, other.first = first, other.rows = rows, other.below = below, other.id = id;
    for (int a = 0; a < D; ++a) other.stride[a] = stride[a];
    return other;
  }
  // The value at indices along all axes, which are inside.
  template <class... I>
  CPUFREE_FN T& operator()(I... index) const {
    static_assert(sizeof...(I) == D);
    const std::int64_t all[] = {index...};
    std::int64_t at = all[D - 1];
    for (int a = 0; a + 1 < D; ++a) at += all[a] * stride[a];
    return base[at];
  }
  // Takes the storage of another one.
  CPUFREE_FN void take(const Array& other) { take_values(other), id = other.id; }
  // Takes the values of another one.
  CPUFREE_FN void take_values(const Array& other) { base = other.base; }
};

struct Points {
  std::int64_t start, step, count;
  CPUFREE_FN std::int64_t stop() const { return start + (count - 1) * step + 1; }
};

// The points lo <= r < hi of the last axis. Stages write no point that they read elsewhere, so the
// points are independent of one another.
template <class S>
CPUFREE_FN void run_points(const S stage, std::int64_t lo, std::int64_t hi) {
  CPUFREE_INDEPENDENT
  for (std::int64_t r = lo; r < hi; ++r) stage.point(r);
}

struct Max {
  template <class T>
  CPUFREE_FN T operator()(T a, T b) const {
    return maximum(a, b);
  }
};
struct Min {
  template <class T>
  CPUFREE_FN T operator()(T a, T b) const {
    return minimum(a, b);
  }
};
struct Plus {
  template <class T>
  CPUFREE_FN T operator()(T a, T b) const {
    return a + b;
  }
};

// The points of a row reduced by f, in eight parts; the order depends on the length alone.
template <class V, class S, class F>
CPUFREE_FN V reduce_points(const S stage, V start, std::int64_t lo, std::int64_t hi, F f) {
  constexpr int kParts = 8;
  V part[kParts];
  for (int k = 0; k < kParts; ++k) part[k] = start;
  std::int64_t r = lo;
  for (; r + kParts <= hi; r += kParts)
    for (int k = 0; k < kParts; ++k) part[k] = f(part[k], static_cast<V>(stage.point(r + k)));
  for (; r < hi; ++r) part[0] = f(part[0], static_cast<V>(stage.point(r)));
  for (int width = kParts / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) part[k] = f(part[k], part[k + width]);
  return part[0];
}

// Rows of a stage on a PE: those of its box that the PE owns, and `below`, `above` beyond.
template <class S>
struct Rows {
  S stage;
  std::int64_t lag = 0, below = 0, above = 0;
  std::int64_t from = 0, to = 0;

  CPUFREE_FN void place(std::int64_t lo, std::int64_t hi) {
    const Points& box = stage.box[0];
    from = box.start > lo - below ? box.start : lo - below;
    to = box.stop() < hi + above ? box.stop() : hi + above;
    for (const Points& axis : stage.box)
      if (axis.count <= 0) to = from;
  }
  // In rows of the group; an empty range where there is nothing to do.
  CPUFREE_FN std::int64_t begin() const {
    return from < to ? from + lag : std::numeric_limits<std::int64_t>::max();
  }
  CPUFREE_FN std::int64_t end() const {
    return from < to ? to + lag : std::numeric_limits<std::int64_t>::min();
  }
  // The rows of the group from i to e.
  CPUFREE_FN void rows(std::int64_t i, std::int64_t e) {
    const std::int64_t lo = i - lag > from ? i - lag : from;
    const std::int64_t hi = e - lag < to ? e - lag : to;
    if (lo >= hi) return;
    const Points& box = stage.box[0];
    // The least r whose row is lo or more, and hi or more.
    run(floor_division(lo - box.start + box.step - 1, box.step),
        floor_division(hi - box.start + box.step - 1, box.step));
  }

 private:
  CPUFREE_FN void run(std::int64_t r0, std::int64_t e0) {
    if constexpr (S::dims == 1) {
      stage.row();
      points(r0, e0);
    } else {
      for (std::int64_t r = r0; r < e0; ++r) {
        if constexpr (S::dims == 2) {
          stage.row(r);
          points(0, stage.box[1].count);
        } else {
          planes(r);
        }
      }
    }
  }
  CPUFREE_FN void planes(std::int64_t r0) {
    for (std::int64_t r1 = 0; r1 < stage.box[1].count; ++r1) {
      if constexpr (S::dims == 3) {
        stage.row(r0, r1);
        points(0, stage.box[2].count);
      } else {
        for (std::int64_t r2 = 0; r2 < stage.box[2].count; ++r2) {
          stage.row(r0, r1, r2);
          points(0, stage.box[3].count);
        }
      }
    }
  }
  CPUFREE_FN void points(std::int64_t lo, std::int64_t hi) {
    while (lo < hi) {
      const std::int64_t end = stage.segment(lo, hi);
      if constexpr (requires { stage.total; }) {
        stage.reduce(lo, end);
      } else {
        run_points(stage, lo, end);
      }
      lo = end;
    }
  }
};

}  // namespace cpufree::programs
