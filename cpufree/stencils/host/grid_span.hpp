// A box of a grid in memory of its own; numbers outside a periodic grid stand for those inside.
#pragma once

#include <algorithm>
#include <vector>

#include "cpufree/base/index.hpp"
#include "cpufree/problem/grid.hpp"
#include "cpufree/stencils/args.hpp"

namespace cpufree {

struct GridSpan {
  std::int64_t lo[3], hi[3];

  std::int64_t extent(int a) const { return hi[a] - lo[a]; }
  std::int64_t points() const { return extent(0) * extent(1) * extent(2); }
  void join(const TileShape& s, const std::int32_t (&from)[3], const std::int32_t (&to)[3]) {
    for (int a = 0; a < 3; ++a) {
      lo[a] = std::min(lo[a], s.origin[a] + from[a]);
      hi[a] = std::max(hi[a], s.origin[a] + to[a]);
    }
  }
  template <class T>
  GridView<T> view(const Grid& grid, T* data) const {
    GridView<T> v;
    v.data = data;
    for (int a = 0; a < 3; ++a) {
      v.origin[a] = lo[a];
      v.extent[a] = extent(a);
      v.n[a] = grid.n[a];
    }
    v.row = extent(2);
    v.plane = v.row * extent(1);
    return v;
  }
  // f(place in the box, place in the grid) for all points.
  template <class F>
  void each(const Grid& grid, F&& f) const {
    const auto wrapped = [&](int a, std::int64_t i) {
      return (i % grid.n[a] + grid.n[a]) % grid.n[a];
    };
    std::vector<std::int64_t> column(at(extent(2)));
    for (std::size_t x = 0; x < column.size(); ++x)
      column[x] = wrapped(2, lo[2] + static_cast<std::int64_t>(x));
    std::size_t k = 0;
    for (std::int64_t i0 = lo[0]; i0 < hi[0]; ++i0)
      for (std::int64_t i1 = lo[1]; i1 < hi[1]; ++i1) {
        const std::int64_t row = (wrapped(0, i0) * grid.n[1] + wrapped(1, i1)) * grid.n[2];
        for (const std::int64_t x : column) f(k++, at(row + x));
      }
  }
};

// All that the tiles store, or all that they write to the result.
inline GridSpan span_of(const std::vector<Tile>& tiles, bool stored) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  GridSpan span{{kFar, kFar, kFar}, {-kFar, -kFar, -kFar}};
  for (const Tile& tile : tiles) {
    const TileShape& s = tile.shape;
    stored ? span.join(s, s.grid_lo, s.grid_hi) : span.join(s, s.out_lo, s.out_hi);
  }
  return span;
}

}  // namespace cpufree
