// Fills the box of a PE with values of the grid. Plain data, for host and kernels.
#pragma once

#include <cstdint>

#include "cpufree/base/annotate.hpp"

namespace cpufree {

template <class T>
struct BoxFill {
  const T* from = nullptr;  // all of the grid, in the order of its axes
  std::int64_t n[3] = {};
  bool periodic[3] = {};
  T* to = nullptr;              // the first stored point
  std::int64_t origin[3] = {};  // its number in the grid; may be negative
  std::int64_t extent[3] = {};  // stored points
  std::int64_t row = 0, plane = 0;
  T* begin = nullptr;  // all that there is of the box, zeroed before
  std::int64_t values = 0;

  CPUFREE_FN std::int64_t rows() const { return extent[0] * extent[1]; }
  // Thread `lane` of `lanes` that write row r. Points that are none of the grid's stay as they are.
  CPUFREE_FN void fill_row(std::int64_t r, std::int64_t lane, std::int64_t lanes) const {
    const std::int64_t i0 = r / extent[1], i1 = r % extent[1];
    const std::int64_t g0 = number(0, i0), g1 = number(1, i1);
    if (g0 < 0 || g1 < 0) return;
    const T* const line = from + (g0 * n[1] + g1) * n[2];
    T* const out = to + i0 * plane + i1 * row;
    for (std::int64_t x = lane; x < extent[2]; x += lanes) {
      const std::int64_t g2 = number(2, x);
      if (g2 >= 0) out[x] = line[g2];
    }
  }

 private:
  // Number in the grid of stored point i; negative: none.
  CPUFREE_FN std::int64_t number(int a, std::int64_t i) const {
    const std::int64_t g = origin[a] + i;
    return periodic[a] ? (g % n[a] + n[a]) % n[a] : g < n[a] ? g : -1;
  }
};

}  // namespace cpufree
