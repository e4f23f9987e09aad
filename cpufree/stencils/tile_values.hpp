// Copies between tiles and the grid.
#pragma once

#include "cpufree/stencils/args.hpp"
#include "cpufree/stencils/sweep.hpp"

namespace cpufree {

// Copies the points next to owned ones that keep their values from `start` to `out`.
template <Port P, class T>
CPUFREE_KERNEL_FN void keep_rim(P& port, const TileShape& s, const GridView<const T>& start,
                                const GridView<T>& out) {
  const TileBox box{{s.out_lo[0], s.out_lo[1], s.out_lo[2]},
                    {s.out_hi[0], s.out_hi[1], s.out_hi[2]}};
  each_row(port, box, [&](std::int32_t i0, std::int32_t i1) {
    const bool owned = i0 >= s.lo[0] && i0 < s.hi[0] && i1 >= s.lo[1] && i1 < s.hi[1];
    const auto keep = [&](std::int32_t begin, std::int32_t end) {
      each_point(port, begin, end, [&](std::int32_t x) {
        const std::int64_t g0 = s.origin[0] + i0, g1 = s.origin[1] + i1, g2 = s.origin[2] + x;
        out(g0, g1, g2) = start(g0, g1, g2);
      });
    };
    keep(box.lo[2], owned ? s.lo[2] : box.hi[2]);
    if (owned) keep(s.hi[2], box.hi[2]);
  });
}

}  // namespace cpufree
